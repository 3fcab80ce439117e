package unigram

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dsload/dsload/tokenize/internal/chunkcache"
)

// TestLongWordsAreMended: words that hold an aligned block lose all of their cuts but those at white space,
// others none.
func TestLongWordsAreMended(t *testing.T) {
	m, err := New(Config{Pieces: [][]byte{[]byte("<unk>"), []byte("a")}, Scores: []float64{0, -1}, Split: SplitWords})
	if err != nil || !m.inside {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	e := m.newEncoder(chunkcache.MinBytes)
	for range 300 {
		var text []byte
		for len(text) < 6*longBlock {
			text = append(text, bytes.Repeat([]byte("a"), rng.IntN(1<<rng.IntN(14)))...)
			for range rng.IntN(3) {
				text = append(text, " \n"[rng.IntN(2)])
			}
			if rng.IntN(4) == 0 {
				text = append(text, "\n\u00E9"...) // stays as it is
			}
		}
		w := e.win
		w.Reset(0)
		for rest := text; len(rest) > 0; {
			n := copy(w.Free(), rest)
			w.Commit(n)
			rest = rest[n:]
		}
		w.Classify(&m.tables)
		var before []byte
		for p := range text {
			before = append(before, byte(w.Cut[p/64]>>(p%64)&1))
		}
		e.cutAtOtherSpaces()
		e.joinLongWords()
		text = w.Text()
		for begin := 0; begin < len(text); {
			end := begin
			for end < len(text) && text[end] != ' ' {
				end++
			}
			if begin == end {
				end++
			}
			block := (begin + longBlock - 1) / longBlock * longBlock
			long := block+longBlock <= end
			for p := begin; p < end; p++ {
				want := before[p]
				if long && !m.isGap(text[p]) {
					want = 0
				}
				if got := byte(w.Cut[p/64] >> (p % 64) & 1); got != want {
					t.Fatalf("word %d to %d of %d: cut at %d is %d", begin, end, len(text), p, got)
				}
			}
			begin = end
		}
	}
}

// TestReplacementSpaced: text of many windows that is full of U+FFFD, which is white space, next to characters of
// all kinds.
func TestReplacementSpaced(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for tested := 0; tested < 30; {
		cfg, letters := randomConfig(t, rng, false)
		cfg.Split = SplitWords
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !m.inside || !cfg.Nmt {
			continue
		}
		if norm := m.normalize([]byte("\uFFFD"), false); string(norm) != " " {
			t.Fatalf("U+FFFD becomes %q", norm)
		}
		tested++
		e := m.NewEncoder(1)
		list := append([]string{"\uFFFD", "a", "\x01", "\u0301", "\u0600", "\uFFFC", "\uFF21",
			strings.Repeat("\uFFFD", 100)}, letters...)
		var text strings.Builder
		for n := rng.IntN(30 << 10); text.Len() < n; {
			text.WriteString(list[rng.IntN(len(list))])
		}
		if got, want := e.Append(nil, []byte(text.String()), true, true),
			expected(&cfg, wordsOf(&cfg), text.String()); !slices.Equal(got, want) {
			t.Fatalf("%d ids, want %d", len(got), len(want))
		}
	}
}

// TestWordLength holds the search for white space against the set of it.
func TestWordLength(t *testing.T) {
	for r := range rune(0x3100) {
		text := "a\u00E9" + string(r) + "b"
		want := strings.IndexFunc(text, unicode.IsSpace)
		if want < 0 {
			want = len(text)
		}
		if got := wordLength([]byte(text)); got != want {
			t.Errorf("%+q: %d, want %d", text, got, want)
		}
	}
}
