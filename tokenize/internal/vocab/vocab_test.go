package vocab

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTable holds tables of random tokens of every length against a map.
func TestTable(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var tokens [][]byte
		want := map[string]uint32{}
		for range r.IntN(3000) {
			text := strings.Repeat("ab", r.IntN(12)) + string(rune(r.IntN(0x3000)))
			text = text[r.IntN(len(text)):]
			if _, ok := want[text]; ok || r.IntN(20) == 0 {
				tokens = append(tokens, nil)
				continue
			}
			want[text] = uint32(len(tokens))
			tokens = append(tokens, []byte(text))
		}
		v := New(tokens)
		if _, _, ok := v.Twice(); ok || v.Len() != len(tokens) {
			t.Fatalf("seed %d: %d ids, two equal: %v", seed, v.Len(), ok)
		}
		for id, token := range v.Tokens() {
			if _, ok := v.Token(uint32(id)); ok != (tokens[id] != nil) || string(token) != string(tokens[id]) {
				t.Fatalf("seed %d: token %d is %q, want %q", seed, id, token, tokens[id])
			}
		}
		for text, id := range want {
			if got, ok := v.ID([]byte(text)); !ok || got != id {
				t.Fatalf("seed %d: id of %q is %d, want %d", seed, text, got, id)
			}
			if _, ok := v.ID([]byte(text + "~")); ok {
				t.Fatalf("seed %d: %q was found", seed, text+"~")
			}
		}
		ids, joined := make([]uint32, r.IntN(500)), "dst"
		for i := range ids {
			ids[i] = uint32(r.IntN(len(tokens) + 3)) // some have no token, or do not exist
			token, _ := v.Token(ids[i])
			joined += string(token)
		}
		for _, room := range []int{0, 7, 100_000} {
			if got := v.AppendTokens(append(make([]byte, 0, 3+room), "dst"...), ids); string(got) != joined {
				t.Fatalf("seed %d: %d ids give %q, want %q", seed, len(ids), got, joined)
			}
		}
	}
}

// TestTwice: equal tokens are reported, the last is found, and each id keeps its text.
func TestTwice(t *testing.T) {
	for _, c := range []struct {
		tokens       string
		first, again uint32
		ok           bool
	}{{"", 0, 0, false}, {"a b c", 0, 0, false}, {"a b a", 0, 2, true}, {"a b b a", 1, 2, true},
		{"abcdefghijk x abcdefghijk", 0, 2, true},
		{"a b b a b a c", 1, 2, true}} {
		list := strings.Fields(c.tokens)
		tokens := make([][]byte, len(list))
		var blob []byte
		offsets := []uint32{0}
		for i, s := range list {
			tokens[i] = []byte(s)
			blob = append(blob, s...)
			offsets = append(offsets, uint32(len(blob)))
		}
		for _, v := range []*Table{New(tokens), FromBlob(blob, offsets)} {
			if first, again, ok := v.Twice(); first != c.first || again != c.again || ok != c.ok {
				t.Errorf("%q: %d, %d, %v", c.tokens, first, again, ok)
			}
			last := map[string]uint32{}
			for id, token := range list {
				last[token] = uint32(id)
				if text, ok := v.Token(uint32(id)); !ok || string(text) != token {
					t.Errorf("%q: token %d is %q", c.tokens, id, text)
				}
			}
			for token, id := range last {
				if got, ok := v.ID([]byte(token)); !ok || got != id {
					t.Errorf("%q: the id of %q is %d", c.tokens, token, got)
				}
			}
		}
	}
}
