package tokenize

import (
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// TestTiktokenFiles checks .tiktoken ranks against the golden ids of tokenizer.json files with the
// same vocabulary.
func TestTiktokenFiles(t *testing.T) {
	effort.OneGoroutine(t)
	for _, c := range []struct{ file, twin string }{{"gpt2.tiktoken", "gpt2"}, {"cl100k_base.tiktoken", "cl100k-hf"}} {
		t.Run(c.file, func(t *testing.T) {
			tok, err := Load(refdata.Path(t, "tokenizers/"+c.file))
			if err != nil {
				t.Fatal(err)
			}
			enc := tok.NewEncoder(EncoderOptions{})
			twin, err := Load(refdata.Path(t, "tokenizers/"+c.twin))
			if err != nil {
				t.Fatal(err)
			}
			differ := 0
			for _, w := range enginetest.Cases(t, c.twin) {
				got := enc.AppendTokens(nil, []byte(w.Text))
				same := len(got) == len(w.IDs)
				for k := 0; same && k < len(got); k++ {
					a, _ := tok.Token(got[k])
					b, _ := twin.Token(w.IDs[k])
					raw := []byte(b)
					if t, ok := byteText(twin, w.IDs[k]); ok {
						raw = t
					}
					same = a == string(raw)
				}
				if !same {
					differ++
					if differ < 4 {
						t.Logf("case %d %.60q: %v, twin %v", w.ID, w.Text, got, w.IDs)
					}
				}
				if d := tok.Decode(got); d != w.Text {
					t.Errorf("case %d: decoded %.60q, want %.60q", w.ID, d, w.Text)
				}
			}
			// The files know other special tokens than their twins.
			if differ > 12 {
				t.Errorf("%d cases differ", differ)
			}
		})
	}
}

func byteText(t *Tokenizer, id uint32) ([]byte, bool) {
	b, ok := t.tokens.Token(id)
	if !ok {
		return nil, false
	}
	return charclass.AppendBytes(nil, b)
}

func TestTiktokenBad(t *testing.T) {
	for _, s := range []string{"", "x", "IQ== ", "IQ== -1", "IQ== 99999999999", "IQ== 0\nIQ== 0", "IQ== 0\nIg== 0",
		"IQ==0", "!! 0", "IQ== 16000000"} {
		if _, err := Parse([]byte(s), Options{Pattern: "gpt2"}); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	if _, err := Parse([]byte("IQ== 0\n"), Options{}); err == nil {
		t.Error("a vocabulary without a known pattern was accepted")
	}
}

// TestTiktokenDigest checks the speed path over a whole corpus against the same vocabulary's
// tokenizer.json.
func TestTiktokenDigest(t *testing.T) {
	effort.OneGoroutine(t)
	data := refdata.Read(t, "corpora/wikitext-2/test.txt")
	a, err := Load(refdata.Path(t, "tokenizers/gpt2.tiktoken"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(refdata.Path(t, "tokenizers/gpt2"))
	if err != nil {
		t.Fatal(err)
	}
	if x, y := a.NewEncoder(EncoderOptions{}).AppendTokens(nil, data),
		b.NewEncoder(EncoderOptions{}).AppendTokens(nil, data); !slices.Equal(x, y) {
		t.Error("ids of ranks and tokenizer.json differ")
	}
}
