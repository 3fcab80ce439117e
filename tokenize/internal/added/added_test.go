package added

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive finds the tokens of a text from left to right, the longest at each place.
func naive(tokens []Token, text []byte) (out []Match) {
	for i := 0; i < len(text); {
		best := -1
		for k, t := range tokens {
			if bytes.HasPrefix(text[i:], t.Content) && (best < 0 || len(t.Content) > len(tokens[best].Content)) {
				best = k
			}
		}
		if best < 0 {
			i++
			continue
		}
		end := i + len(tokens[best].Content)
		out = append(out, Match{i, end, tokens[best].ID})
		i = end
	}
	return out
}

// A Matcher finds what a plain search finds, whether its tokens begin alike or not.
func TestAppend(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, contents := range [][]string{
		{"<|endoftext|>"}, {"<"}, {"<|a|>", "<|ab|>", "<|a"}, {"aa", "aaa"}, {"<|a|>", "[b]"}, {"a", "ab", "b"},
	} {
		var tokens []Token
		for i, c := range contents {
			tokens = append(tokens, Token{ID: uint32(i + 1), Content: []byte(c)})
		}
		m, err := New(tokens)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for range 2000 {
			var text []byte
			for range r.IntN(60) {
				switch r.IntN(8) {
				case 0:
					text = append(text, contents[r.IntN(len(contents))]...)
				case 1:
					c := contents[r.IntN(len(contents))]
					text = append(text, c[:r.IntN(len(c)+1)]...)
				default:
					text = append(text, "<|ab]> x"[r.IntN(8)])
				}
			}
			got, want := m.Append(nil, text), naive(tokens, text)
			if !slices.Equal(got, want) {
				t.Fatalf("%q in %q:\n got %v\nwant %v", contents, text, got, want)
			}
			found += len(got)
		}
		if found == 0 {
			t.Errorf("%q: nothing was found", contents)
		}
	}
}

// Where a text is cuttable, its halves have the matches of the whole, however it continues.
func TestCuttable(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	parts := []string{"<m>", "<m>", "<", "ab", "a", " ", " ", "é"}
	cuts := 0
	for range 300 {
		var tokens []Token
		for i, c := range []string{"<m>", "ab", "<"}[:1+r.IntN(3)] {
			tokens = append(tokens, Token{ID: uint32(i), Content: []byte(c), SingleWord: r.IntN(3) == 0, LStrip: r.IntN(3) == 0,
				RStrip: r.IntN(3) == 0})
		}
		m, err := New(tokens)
		if err != nil {
			t.Fatal(err)
		}
		for range 80 {
			text, borders := []byte(nil), []int{0}
			for range 1 + r.IntN(8) {
				text = append(text, parts[r.IntN(len(parts))]...)
				borders = append(borders, len(text))
			}
			seen := borders[r.IntN(len(borders))] // what was read when the cut was chosen
			n := borders[r.IntN(len(borders))]
			if n > seen || !m.Cuttable(text[:seen], n) {
				continue
			}
			got := m.Append(nil, text[:n])
			for _, match := range m.Append(nil, text[n:]) {
				match.Start += n
				match.End += n
				got = append(got, match)
			}
			if want := m.Append(nil, text); !slices.Equal(got, want) {
				t.Fatalf("%+v in %q, cut at %d of %d:\n got %v\nwant %v", tokens, text, n, seen, got, want)
			}
			cuts++
		}
	}
	if cuts < 1000 {
		t.Errorf("only %d cuts", cuts)
	}
}
