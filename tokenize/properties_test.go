package tokenize

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/pipeline"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// loadGeneral loads a tokenizer.json with the plain models, whatever engine would fit.
func loadGeneral(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := readSpec(data, Options{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := newTokenizer(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tok.pipeline, err = pipeline.New(s, pipeline.Options{Plain: true}); err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestGeneralPipeline checks the general pipeline against the golden cases and one corpus: it is
// what the engines stand for.
func TestGeneralPipeline(t *testing.T) {
	if testing.Short() {
		t.Skip("short: TestGoldenCorpora hashes the same corpora")
	}
	for _, name := range goldenNames(t) {
		if strings.HasSuffix(name, ".model") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tok := loadGeneral(t, refdata.Path(t, "tokenizers/"+name+"/tokenizer.json"))
			enc := tok.NewEncoder(EncoderOptions{})
			enginetest.CheckCases(t, name, enc.AppendTokens)
			fast, err := Load(refdata.Path(t, "tokenizers/"+name))
			if err != nil {
				t.Fatal(err)
			}
			text := refdata.Read(t, "corpora/wikitext-2/test.txt")
			_, a := enginetest.Digest(text, enc.AppendTokens)
			if _, b := enginetest.Digest(text, fast.NewEncoder(EncoderOptions{}).AppendTokens); a != b {
				t.Error("the general pipeline and the engine differ on a corpus")
			}
		})
	}
}

// TestSafeCutCorpora cuts whole corpora into pieces wherever SafeCut allows near every few hundred
// bytes.
func TestSafeCutCorpora(t *testing.T) {
	if testing.Short() {
		t.Skip("short: TestGoldenCorpora hashes the same corpora")
	}
	for _, name := range append(goldenNames(t), "gpt2.tiktoken", "cl100k_base.tiktoken") {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(refdata.Path(t, "tokenizers/"+name))
			if err != nil {
				t.Fatal(err)
			}
			enc := tok.NewEncoder(EncoderOptions{})
			for _, file := range []string{"corpora/wikitext-2/test.txt", "corpora/multilingual/tldr.txt"} {
				data := refdata.Read(t, file)
				data = data[:min(len(data), 1<<20)]
				want := enc.AppendTokens(nil, data)
				var got []uint32
				rest, first, pieces := data, true, 0
				for size := 100; len(rest) > size; {
					n := tok.SafeCut(rest[:size])
					if n == 0 {
						size += 500
						continue
					}
					// The encoder must not see what follows.
					got = enc.AppendPiece(got, bytes.Clone(rest[:n]), Piece{First: first})
					rest, first = rest[n:], false
					pieces++
					size = (size*7+pieces)%1900 + 100
				}
				got = enc.AppendPiece(got, rest, Piece{First: first, Last: true})
				if !slices.Equal(got, want) {
					t.Errorf("%s: %d ids in %d pieces, %d in one", file, len(got), pieces, len(want))
				}
				if pieces < 200 {
					t.Errorf("%s: only %d cuts", file, pieces)
				}
			}
		})
	}
}

// TestSmallTokenizers checks the general pipeline's steady state: no allocations, equal ids from
// any number of goroutines.
func TestSmallTokenizers(t *testing.T) {
	for _, s := range smallFiles {
		tok, err := Parse([]byte(s), Options{})
		if err != nil {
			t.Fatalf("%.80s: %v", s, err)
		}
		text := []byte("a ab  b Hello, a-b é漢 ab aab\nb a")
		want := tok.NewEncoder(EncoderOptions{}).AppendTokens(nil, text)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				enc := tok.NewEncoder(EncoderOptions{CacheBytes: 64 << 10})
				for range 20 {
					if got := enc.AppendTokens(nil, text); !slices.Equal(got, want) {
						t.Errorf("%v, want %v", got, want)
					}
				}
			})
		}
		wg.Wait()
		enc := tok.NewEncoder(EncoderOptions{})
		ids := enc.AppendTokens(nil, text)
		if tok.pipeline.Kind != "general" || effort.Raced() {
			// the engines have such tests of their own; under the race detector sync.Pool drops what it is given
			continue
		}
		if n := testing.AllocsPerRun(50, func() { ids = enc.AppendTokens(ids[:0], text) }); n != 0 {
			t.Errorf("%s: %v allocations a document", tok.pipeline.Kind, n)
		}
	}
}

// TestRefused lists files that must give an error, and a word of it.
func TestRefused(t *testing.T) {
	const bpe = `"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`
	for _, c := range []struct{ file, word string }{
		{``, "SentencePiece"},
		{`{`, "key"},
		{`{}`, "model"},
		{`{"version":"2.0",` + bpe + `}`, "version"},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}}`, "dropout"},
		{`{"model":{"type":"Mamba","vocab":{"a":0}}}`, "Mamba"},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`, "not in the vocabulary"},
		{`{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}`, "belongs to both"},
		{`{"model":{"type":"BPE","vocab":{"a":4000000000},"merges":[]}}`, "integer"},
		{`{"model":{"type":"BPE","vocab":{"a":9000000},"merges":[]}}`, "vocabulary of 1"},
		{`{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`, "integer"},
		{`{"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":1}}`, "unk_id"},
		{`{"model":{"type":"WordPiece","unk_token":"u","continuing_subword_prefix":"","max_input_chars_per_word":1,"vocab":{"a":0}}}`, "unk_token"},
		{`{"normalizer":{"type":"Sparkle"},` + bpe + `}`, "Sparkle"},
		{`{"normalizer":{"type":"Replace","pattern":{"Glob":"*"},"content":""},` + bpe + `}`, "pattern"},
		{`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"},` + bpe + `}`, "Precompiled"},
		{`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated","invert":false},` + bpe +
			`}`, "(a"},
		{`{"pre_tokenizer":{"type":"FixedLength","length":0},` + bpe + `}`, "length"},
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"often"},` + bpe + `}`, "often"},
		{`{"decoder":{"type":"Rot13"},` + bpe + `}`, "Rot13"},
		{`{"post_processor":{"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{}},` + bpe + `}`,
			"single"},
		{`{"added_tokens":[{"id":1,"content":"x"}],` + bpe + `}`, "lacks a field"},
		{`{"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 200) + strings.Repeat(`]}`, 200) +
			`,` + bpe + `}`, "deep"},
		{`{"model_type":"gpt2"}`, "a tokenizer.json has one"},
		{"#version: 0.2\na b\n", "a tokenizer is a tokenizer.json"},
		{"{\"model\":\"\xff\"}", "UTF-8"},
		{`{` + bpe + `} x`, "after the value"},
		{`{"model":{"type":"BPE","vocab":{"\ud800":0},"merges":[]}}`, "escape"},
	} {
		_, err := parse([]byte(c.file), Options{}, &beside{}, nil)
		if err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%.100s: error %v, want one with %q", c.file, err, c.word)
		}
	}
}

// TestHostileTexts encodes a megabyte of what makes naive algorithms quadratic, in every kind of
// pipeline; it must end.
func TestHostileTexts(t *testing.T) {
	effort.OneGoroutine(t)
	for _, s := range smallFiles {
		tok, err := Parse([]byte(s), Options{})
		if err != nil {
			t.Fatal(err)
		}
		enc := tok.NewEncoder(EncoderOptions{})
		for _, unit := range []string{"a", " ", "ab", "<", "\u0301", "▁", "👨‍", "\xff", "1", "a\u0327\u0301"} {
			text := bytes.Repeat([]byte(unit), effort.Of(1<<16, 1<<18, 1<<18)/len(unit))
			ids := enc.AppendTokens(nil, text)
			if unit == "a" && len(ids) == 0 {
				t.Errorf("%.60s: no ids", s)
			}
			tok.SafeCut(text)
		}
	}
}
