package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/refdata"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// TestOffsets compares ids and byte offsets with those that testdata/gen/offsets.py had from
// Hugging Face's library: of the shared tokenizers, and of the random pipelines of
// testdata/huggingface.
func TestOffsets(t *testing.T) {
	effort.OneGoroutine(t)
	data, err := os.ReadFile("testdata/offsets.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	cases, without := 0, 0
	for line := range bytes.Lines(data) {
		var row struct {
			Name, File string
			Seed       int
			Cases      [][3]json.RawMessage
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		name := row.Name
		if row.File != "" {
			name = fmt.Sprintf("%s-%d", row.File, row.Seed)
		}
		t.Run(name, func(t *testing.T) {
			tok, misplaced := offsetTokenizer(t, row.Name, row.File, row.Seed)
			for _, c := range row.Cases {
				var text string
				var ids []uint32
				var spans *[][2]int
				for i, to := range []any{&text, &ids, &spans} {
					if err := json.Unmarshal(c[i], to); err != nil {
						t.Fatal(err)
					}
				}
				cases++
				got, offsets, err := tok.AppendTokensOffsets(nil, nil, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, ids) {
					t.Errorf("%q: ids %d, want %d", text, got, ids)
					continue
				}
				if spans == nil || misplaced {
					without++
					continue
				}
				for i, s := range *spans {
					if offsets[i] != (Offset{s[0], s[1]}) {
						token, _ := tok.Token(ids[i])
						t.Errorf("%+q: token %d %q at %d, want %d", text, i, token, offsets[i], s)
						break
					}
				}
			}
		})
	}
	t.Logf("%d texts, %d without offsets of the library's", cases, without)
	least := 600
	if refdata.Dir() == "" {
		least = 480 // the pipelines of testdata alone
	}
	if cases < least || without > 60 {
		t.Error("too few texts were compared")
	}
}

// offsetTokenizer loads a shared tokenizer, or a pipeline of testdata/huggingface. misplaced
// reports that the library's offsets have nothing to do with the text: bytes of a
// continuing_subword_prefix or end_of_word_suffix count as if they stood in the piece.
func offsetTokenizer(t *testing.T, name, file string, seed int) (tok *Tokenizer, misplaced bool) {
	t.Helper()
	if file == "" {
		tok, err := Load(refdata.Path(t, "tokenizers/"+name))
		if err != nil {
			t.Fatal(err)
		}
		return tok, false
	}
	data, err := os.ReadFile("testdata/huggingface/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var row struct {
			Seed      int
			Tokenizer json.RawMessage
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if row.Seed == seed {
			tok, err := Parse(row.Tokenizer, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := readSpec(row.Tokenizer, Options{}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, ok := s.Model.(*spec.BPE)
			return tok, ok && m.ByteFallback && m.Prefix+m.Suffix != ""
		}
	}
	t.Fatalf("no pipeline %d in %s", seed, file)
	return nil, false
}

// TestOffsetsOfRanks checks that the offsets of byte-level ranks cut the text into the tokens'
// bytes, ill-formed parts included.
func TestOffsetsOfRanks(t *testing.T) {
	for _, pattern := range []string{"gpt2", "kimi"} {
		tok, err := Parse(rankFile(3000), Options{Pattern: pattern, Special: map[string]uint32{"<s>": 3001}})
		if err != nil {
			t.Fatal(err)
		}
		text := []byte("Hello w100 漢字<s>\xff\xe6\xbc x")
		ids, offsets, err := tok.AppendTokensOffsets(nil, nil, text)
		if err != nil {
			t.Fatal(err)
		}
		if want := tok.NewEncoder(EncoderOptions{}).AppendTokens(nil, text); !slices.Equal(ids, want) {
			t.Errorf("%s: ids %d, want %d", pattern, ids, want)
		}
		at := 0
		for i, o := range offsets {
			if token, _ := tok.Token(ids[i]); o.Start < at-3 || len(token) == 1 && token[0] < 0x80 &&
				token != string(text[o.Start:o.End]) {
				t.Errorf("%s: token %d %q at %d", pattern, i, token, o)
			}
			at = o.End
		}
		if at != len(text) {
			t.Errorf("%s: the last token ends at %d of %d", pattern, at, len(text))
		}
	}
}

// TestOffsetsUnsupported: SentencePiece models have no offsets.
func TestOffsetsUnsupported(t *testing.T) {
	data, err := os.ReadFile("testdata/sentencepiece/" + firstModel(t))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tok.AppendTokensOffsets(nil, nil, []byte("a")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
}

func firstModel(t *testing.T) string {
	entries, err := os.ReadDir("testdata/sentencepiece")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := e.Name(); len(n) > 6 && n[len(n)-6:] == ".model" {
			return n
		}
	}
	t.Fatal("no model")
	return ""
}
