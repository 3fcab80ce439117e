package work

import (
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/builtin"
)

// TestRendered: a control token at the beginning of a text is seen, the tokenizer's own or another's.
func TestRendered(t *testing.T) {
	gpt2, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	w := New(Config{Tokenizer: gpt2})
	for text, want := range map[string][2]bool{
		"<|endoftext|>a": {true, false}, "<|im_start|>user\n": {true, true}, "<s>[INST] a": {true, true},
		"[INST] a": {true, true}, "<｜User｜>a": {true, true}, "<bos>": {true, true},
		"": {}, "<": {}, "<p>a": {}, "<|": {}, "[1] a": {}, "a<s>": {}, "< | a|>": {}, "<|a b|>": {}, "<a|b>": {}, "<|>": {},
		"<||>": {}, "[|a|]": {}, "<html lang=en>": {},
	} {
		if yes, foreign := w.rendered([]byte(text)); yes != want[0] || foreign != want[1] {
			t.Errorf("%q: %v and %v, want %v", text, yes, foreign, want)
		}
	}
}

// TestSeparators: a text that is a control token alone is told from one that begins with it.
func TestSeparators(t *testing.T) {
	for text, want := range map[string]bool{"<|endoftext|>": true, "[SEP]": true, "<s> \r\n": true, "<s>a": false,
		"<s></s>": false, "<" + strings.Repeat("a", maxOpener) + ">": false} {
		if got := isToken([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
