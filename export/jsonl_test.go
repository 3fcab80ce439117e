package export

import (
	"encoding/json"
	"testing"
)

// TestQuoted compares strings with those of encoding/json: every character below U+3000, and each after
// and before others.
func TestQuoted(t *testing.T) {
	text := "begin\u2028\u2029\u202a"
	for r := range rune(0x3000) {
		if r < 0xd800 || r > 0xdfff {
			text += string(r) + "x"
		}
	}
	for _, text := range []string{"", text, "\u2029", "<a & b>", "\U0001f600\x7f"} {
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendQuoted([]byte("before"), text); string(got) != "before"+string(want) {
			t.Errorf("%.40q: got %.80s, want %.80s", text, got[6:], want)
		}
	}
}
