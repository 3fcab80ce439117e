package charsmap

import (
	"testing"

	"github.com/dsload/dsload/tokenize/internal/enginetest"
)

func makeMap(t *testing.T, m map[string]string) *Map {
	c, err := Parse(enginetest.Charsmap(m))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What stems from the first characters of a text, with clusters that are replaced as a whole,
// character by character, and not at all. The first two rows are what Hugging Face's alignments
// give for U+1FFE alone and with a mark after it.
func TestLeading(t *testing.T) {
	cm := makeMap(t, map[string]string{"\u1ffe": " \u0314", "e\u0301": "\u00e9", "x": "", "\ufdfa": "a b",
		"\uff21": "A"})
	for _, c := range []struct {
		text string
		n    int
		want int
	}{
		{"\u1ffe a", 3, 3},
		{"\u1ffe\u05bf a", 3, 1},
		{"\u1ffe\u05bf a", 5, 3},
		{"\u1ffe\u05bf\u05bf a", 3, 3}, // too long a cluster: character by character
		{"e\u0301a", 1, 2},             // the whole replacement is its first character
		{"ab", 1, 1},
		{"ab", 2, 2},
		{"xa", 1, 1},
		{"x\ufdfac", 1, 3},
		{"xxx\u1ffe\u05bf", 1, 1},
		{"xx", 1, 0},
		{"xa", 2, 1},
		{"\uff21\u05bf", 3, 1},
	} {
		if got := cm.Leading([]byte(c.text), c.n); got != c.want {
			t.Errorf("%q, %d bytes: %d of %q, want %d", c.text, c.n, got, cm.Append(nil, []byte(c.text)), c.want)
		}
	}
	for _, text := range []string{"", "e\u0301\u0301\u0301\u0301x", "\r\n\u0301e\u0301", "a\u1ffe\x00\u0301"} {
		if got, want := cm.Leading([]byte(text), len(text)), len(cm.Append(nil, []byte(text))); got != want {
			t.Errorf("all of %q gives %d bytes, want %d", text, got, want)
		}
	}
}
