package tokenize

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// An addedToken is a token of added_tokens.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// byteLevelFile returns a tokenizer.json with every byte, a few merges, the added tokens, the normalizer NFC or none,
// and the given add_prefix_space.
func byteLevelFile(t testing.TB, added []addedToken, nfc, prefixSpace bool) []byte {
	t.Helper()
	vocab, merges := map[string]int{}, []string{}
	for b := range 256 {
		vocab[charclass.ByteChar(byte(b))] = len(vocab)
	}
	for _, m := range []string{"t h", "th e", "Ġ the", "Ã ©", "e Ì", "Ġ Ġ"} {
		vocab[strings.ReplaceAll(m, " ", "")] = len(vocab)
		merges = append(merges, m)
	}
	file := map[string]any{"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": merges},
		"added_tokens": added, "pre_tokenizer": map[string]any{"type": "ByteLevel", "use_regex": true,
			"add_prefix_space": prefixSpace, "trim_offsets": true}}
	if nfc {
		file["normalizer"] = map[string]any{"type": "NFC"}
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var (
	plainTokens    = []addedToken{{ID: 262, Content: "<s>", Special: true}, {ID: 263, Content: "é", Normalized: true}}
	strippingToken = []addedToken{{ID: 262, Content: "<s>", LStrip: true}}
)

// Where a text is verbatim, the widths of its ids add up to it, and an id is the same bytes wherever it stands. What
// changes a text is noticed.
func TestVerbatim(t *testing.T) {
	for _, c := range []struct {
		name             string
		added            []addedToken
		nfc, prefixSpace bool
		text             string
		want             bool
	}{
		{"bytes", plainTokens, false, false, "the thé <s> e\u0301\x00", true},
		{"added", plainTokens, false, false, "<s><s>", true},
		{"empty", plainTokens, false, false, "", true},
		{"stripped", strippingToken, false, false, "the <s>the", false},
		{"no added token", strippingToken, false, false, "the ", true},
		{"normal", plainTokens, true, false, "the thé <s>", true},
		{"not normal", plainTokens, true, false, "the e\u0301", false},
		{"ill-formed", plainTokens, true, false, "the \xff", false},
		{"ill-formed bytes", plainTokens, false, false, "the \xff", true},
		{"prefix space", plainTokens, false, true, "the", false},
		{"space", plainTokens, false, true, " the", true},
		{"space after added", plainTokens, false, true, " the<s>the", false},
	} {
		tok, err := Parse(byteLevelFile(t, c.added, c.nfc, c.prefixSpace), Options{})
		if err != nil {
			t.Fatal(c.name, err)
		}
		enc := tok.NewEncoder(EncoderOptions{})
		if checkVerbatim(t, tok, enc, map[uint32]string{}, c.text); enc.Verbatim() != c.want {
			t.Errorf("%s: verbatim is %t", c.name, enc.Verbatim())
		}
	}
}

// checkVerbatim checks the widths of a text's ids, of which known is what they stood for before.
func checkVerbatim(t *testing.T, tok *Tokenizer, enc *Encoder, known map[uint32]string, text string) {
	t.Helper()
	ids := enc.AppendTokens(nil, []byte(text))
	if !enc.Verbatim() {
		return
	}
	widths, rest := tok.Widths(), text
	for i, id := range ids {
		n := int(widths[id])
		if n == 0 { // not known: only the end is
			return
		}
		if n > len(rest) {
			t.Fatalf("%q: id %d, number %d, is %d bytes of %q", text, id, i, n, rest)
		}
		if before, ok := known[id]; ok && before != rest[:n] {
			t.Fatalf("%q: id %d is %q, and was %q", text, id, rest[:n], before)
		}
		known[id], rest = rest[:n], rest[n:]
	}
	if rest != "" {
		t.Fatalf("%q: %q is not in the text of its ids %d", text, rest, ids)
	}
}

// The same of random texts and every tokenizer.
func TestVerbatimRandom(t *testing.T) {
	effort.OneGoroutine(t)
	tokenizers := map[string]*Tokenizer{}
	load := func(name string, data []byte, o Options) {
		tok, err := Parse(data, o)
		if err != nil {
			t.Fatal(name, err)
		}
		tokenizers[name] = tok
	}
	load("ranks", rankFile(3000), Options{Pattern: "gpt2", Special: map[string]uint32{"<s>": 3001}})
	load("other pattern", rankFile(3000), Options{Pattern: "kimi", Special: map[string]uint32{"<s>": 3001}})
	load("bytes", byteLevelFile(t, append(plainTokens, addedToken{ID: 261, Content: "<t>"}), true, false), Options{})
	if refdata.Dir() != "" {
		for _, name := range append(goldenNames(t), "gpt2.tiktoken", "cl100k_base.tiktoken") {
			tok, err := Load(refdata.Path(t, "tokenizers/"+name))
			if err != nil {
				t.Fatal(err)
			}
			tokenizers[name] = tok
		}
	}
	alphabet := []string{"the", " the", "w100", "é", "Ã", "<s>", "<t>", "<|endoftext|>", "<mask>", "Hello", " world",
		"e", "\u0301", "漢", "1", "\x00", "don't"}
	rng := rand.New(rand.NewPCG(5, 8))
	for name, tok := range tokenizers {
		enc, known, verbatim := tok.NewEncoder(EncoderOptions{}), map[uint32]string{}, 0
		texts := effort.Of(150, 400, 400)
		for range texts {
			text := enginetest.Text(rng, alphabet)
			if checkVerbatim(t, tok, enc, known, text); enc.Verbatim() {
				verbatim++
			}
		}
		possible := tok.Widths() != nil
		if possible != (verbatim > 0) || possible && verbatim < texts/8 || possible && tok.Family() != "bytelevel-bpe" {
			t.Errorf("%s: %d of %d texts are verbatim, of the family %s", name, verbatim, texts, tok.Family())
		}
		t.Logf("%s: %d texts, %d ids", name, verbatim, len(known))
	}
}
