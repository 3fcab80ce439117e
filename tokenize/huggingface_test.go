package tokenize

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/pipeline"
)

// TestHuggingFace runs the random pipelines that testdata/gen/huggingface.py made with Hugging
// Face's library, and the vocabularies with repeated pieces of huggingface_duplicates.py: ids,
// special tokens, decoding, and pieces cut by SafeCut against the whole. More of them are read from
// the files that DSLOAD_HF_CASES matches.
func TestHuggingFace(t *testing.T) {
	effort.OneGoroutine(t)
	files, _ := filepath.Glob("testdata/huggingface/*.jsonl")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	if pattern := os.Getenv("DSLOAD_HF_CASES"); pattern != "" {
		more, _ := filepath.Glob(pattern)
		files = append(files, more...)
	}
	pipelines, cases, bad, cuts := 0, 0, 0, 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(f)
		for {
			line, err := r.ReadBytes('\n')
			if len(line) > 0 {
				p := hfPipeline{t: t, maxBad: 3}
				p.run(line)
				pipelines++
				cases += p.cases
				bad += p.bad
				cuts += p.cuts
			}
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
	t.Logf("%d pipelines, %d cases, %d differ, %d cut", pipelines, cases, bad, cuts)
}

type hfPipeline struct {
	t                        *testing.T
	maxBad, bad, cases, cuts int
}

func (p *hfPipeline) errorf(format string, args ...any) {
	if p.bad++; p.bad <= p.maxBad {
		p.t.Errorf(format, args...)
	}
}

func (p *hfPipeline) run(line []byte) {
	var row struct {
		Seed      int
		Tokenizer json.RawMessage
		Vocab     *hfVocab
		Cases     [][]json.RawMessage
	}
	if err := json.Unmarshal(line, &row); err != nil {
		p.t.Fatal(err)
	}
	tok, err := Parse(row.Tokenizer, Options{})
	if err != nil {
		p.errorf("seed %d: %v", row.Seed, err)
		return
	}
	c := tok.names
	what := c.Normalizer + " | " + c.PreTokenizer + " | " + c.Model + " (" + tok.pipeline.Kind + ")"
	if row.Vocab != nil {
		p.checkVocab(row.Seed, tok, row.Vocab)
	}
	s, err := readSpec(row.Tokenizer, Options{}, nil, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	byDefinition, err := pipeline.New(s, pipeline.Options{Plain: true})
	if err != nil {
		p.t.Fatal(err)
	}
	plain := byDefinition.NewEncoder(1 << 16)
	enc, small := tok.NewEncoder(EncoderOptions{}), tok.NewEncoder(EncoderOptions{CacheBytes: -1})
	for _, raw := range row.Cases {
		var text string
		var ids, special []uint32
		var decoded, skipped *string
		for i, to := range []any{&text, &ids, &special, &decoded, &skipped} {
			if err := json.Unmarshal(raw[i], to); err != nil {
				p.t.Fatal(err)
			}
		}
		p.cases++
		got := enc.AppendTokens(nil, []byte(text))
		if !slices.Equal(got, ids) {
			p.errorf("seed %d, %s: %+q: ids %v, want %v", row.Seed, what, text, got, ids)
			continue
		}
		if again := small.AppendTokens(nil, []byte(text)); !slices.Equal(again, ids) {
			p.errorf("seed %d, %s: %+q: ids with a small cache %v, want %v", row.Seed, what, text, again, ids)
		}
		if again, _ := plain.AppendPiece(nil, []byte(text), true, true, 0); !slices.Equal(again, ids) {
			p.errorf("seed %d, %s: %+q: ids of the plain model %v, want %v", row.Seed, what, text, again, ids)
		}
		if whole := slices.Concat(tok.Prefix(), got, tok.Suffix()); !slices.Equal(whole, special) {
			p.errorf("seed %d, %s: %+q: with special tokens %v, want %v", row.Seed, what, text, whole, special)
		}
		if d := tok.Decode(ids); decoded != nil && d != *decoded {
			p.errorf("seed %d, %s: %v decoded %+q, want %+q", row.Seed, c.Decoder, ids, d, *decoded)
		}
		if d := string(tok.AppendText(nil, ids, DecodeOptions{SkipSpecial: true})); skipped != nil && d != *skipped {
			p.errorf("seed %d, %s: %v decoded without special tokens %+q, want %+q", row.Seed, c.Decoder, ids,
				d, *skipped)
		}
		if cut := encodeCut(tok, enc, []byte(text), &p.cuts); !slices.Equal(cut, ids) {
			p.errorf("seed %d, %s: %+q: in pieces %v, want %v", row.Seed, what, text, cut, ids)
		}
	}
}

// hfVocab is a vocabulary as the library gives it: how many ids, the id of each token, the token of
// each id.
type hfVocab struct {
	Size   int
	IDs    map[string]uint32
	Tokens []string
}

func (p *hfPipeline) checkVocab(seed int, tok *Tokenizer, want *hfVocab) {
	if got := tok.VocabSize(); got != want.Size {
		p.errorf("seed %d: %d ids, want %d", seed, got, want.Size)
	}
	for token, id := range want.IDs {
		if got, ok := tok.ID(token); !ok || got != id {
			p.errorf("seed %d: the id of %+q is %d, want %d", seed, token, got, id)
		}
	}
	for id, token := range want.Tokens {
		if got, ok := tok.Token(uint32(id)); !ok || got != token {
			p.errorf("seed %d: token %d is %+q, want %+q", seed, id, got, token)
		}
	}
}

// encodeCut encodes text in pieces, cut as early as SafeCut allows when it sees a little more of
// the text each time.
func encodeCut(tok *Tokenizer, enc *Encoder, text []byte, cuts *int) (ids []uint32) {
	first := true
	for seen := 1; seen <= len(text); seen++ {
		n := tok.SafeCut(text[:seen])
		if n == 0 {
			continue
		}
		ids = enc.AppendPiece(ids, bytes.Clone(text[:n]), Piece{First: first})
		text, first, seen = text[n:], false, 0
		*cuts++
	}
	return enc.AppendPiece(ids, text, Piece{First: first, Last: true})
}
