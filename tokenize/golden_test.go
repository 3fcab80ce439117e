package tokenize

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// goldenNames lists the tokenizers with reference ids.
func goldenNames(t testing.TB) []string {
	files, _ := filepath.Glob(filepath.Join(refdata.Path(t, "golden"), "*.corpora.json"))
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".corpora.json"))
	}
	return names
}

// eachGolden runs a test with every tokenizer that has reference ids.
func eachGolden(t *testing.T, test func(t *testing.T, name string, tok *Tokenizer)) {
	effort.OneGoroutine(t)
	for _, name := range goldenNames(t) {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(refdata.Path(t, "tokenizers/"+name))
			if err != nil {
				t.Fatal(err)
			}
			test(t, name, tok)
		})
	}
}

// TestGoldenCases compares ids and decoded text of every case with the reference's.
func TestGoldenCases(t *testing.T) {
	eachGolden(t, func(t *testing.T, name string, tok *Tokenizer) {
		t.Logf("%s: %s", tok.Family(), tok.pipeline.Kind)
		enc := tok.NewEncoder(EncoderOptions{})
		for _, w := range enginetest.Cases(t, name) {
			got := enc.AppendTokens(nil, []byte(w.Text))
			if !slices.Equal(got, w.IDs) {
				t.Errorf("case %d %.60q: ids %v, want %v", w.ID, w.Text, got, w.IDs)
			}
			whole := slices.Concat(tok.Prefix(), got, tok.Suffix())
			if w.Special != nil && !slices.Equal(whole, w.Special) {
				t.Errorf("case %d: with special tokens %v, want %v", w.ID, whole, w.Special)
			}
			if w.Decoded == nil {
				continue
			}
			if d := tok.Decode(got); d != *w.Decoded {
				t.Errorf("case %d: decoded %.80q, want %.80q", w.ID, d, *w.Decoded)
			}
		}
	})
}

// TestGoldenCorpora compares the digests of all ids of whole corpora.
func TestGoldenCorpora(t *testing.T) {
	eachGolden(t, func(t *testing.T, name string, tok *Tokenizer) {
		enginetest.CheckCorpora(t, name, tok.NewEncoder(EncoderOptions{}).AppendTokens)
	})
}
