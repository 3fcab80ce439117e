package spelling

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"suffle", "shuffle", 1}, {"shufle", "shuffle", 1},
		{"batchsiz", "batchsize", 1},
		{"kitten", "sitting", 3}, {"ab", "ba", 1}, {"gtp2", "gpt2", 1}, {"same", "same", 0}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"none", "exact", "near", "batch_size", "pad_to_multiple_of", "jsonl", "json", "bfd", "bfd_split"}
	for typed, want := range map[string]string{"exct": "exact", "Near": "near", "batch-sise": "batch_size",
		"non": "none", "bfd_splt": "bfd_split", "bfds": "bfd",
		"pad_to_multiple": "pad_to_multiple_of", "jsnl": "jsonl", "jsonlines": "jsonl", "zebra": "", "": "", "x": "",
		strings.Repeat("near", 1000): ""} {
		if got := Nearest(typed, words); got != want {
			t.Errorf("%.20q: %q, want %q", typed, got, want)
		}
	}
}
