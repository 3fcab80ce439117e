package wordpiece

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/reference"
)

// expected is the pipeline step by step over the whole text, with the ids of the pieces.
func expected(cfg *Config, find map[string]uint32, text string) []uint32 {
	b := charclass.BertTables()
	n := cfg.Normalizer
	each := func(f func(r rune) string) {
		var sb strings.Builder
		for _, r := range text {
			sb.WriteString(f(r))
		}
		text = sb.String()
	}
	if n.CleanText {
		each(func(r rune) string {
			switch {
			case b.Dropped.Has(r):
				return ""
			case b.Spaces.Has(r):
				return " "
			}
			return string(r)
		})
	}
	if n.HandleChineseChars {
		each(func(r rune) string {
			if b.Chinese.Has(r) {
				return " " + string(r) + " "
			}
			return string(r)
		})
	}
	if n.StripAccents {
		text = strip(b, text)
	}
	if n.Lowercase {
		each(func(r rune) string {
			if s, ok := b.Lower[r]; ok {
				return s
			}
			return string(r)
		})
	}
	var words []string
	word := ""
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			words = append(words, word)
			word = ""
		case b.Punctuation.Has(r):
			words = append(words, word, string(r))
			word = ""
		default:
			word += string(r)
		}
	}
	var ids []uint32
	for _, w := range append(words, word) {
		ids = append(ids, reference.WordPiece(find, cfg.UnkID, string(cfg.Prefix), cfg.MaxInputCharsPerWord, w)...)
	}
	return ids
}

func pieceIDs(cfg *Config) map[string]uint32 {
	find := map[string]uint32{}
	for id, p := range cfg.Pieces {
		if len(p) > 0 {
			find[string(p)] = uint32(id)
		}
	}
	return find
}

// strip decomposes, orders and drops: marks that stay are sorted within runs that nothing
// interrupts.
func strip(b *charclass.Bert, text string) string {
	var out, run []rune
	flush := func() {
		slices.SortStableFunc(run, func(x, y rune) int { return int(b.Order[x]) - int(b.Order[y]) })
		out = append(out, run...)
		run = run[:0]
	}
	for _, r := range text {
		s, ok := b.Stripped[r]
		if r >= 0xAC00 && r <= 0xD7A3 {
			s, ok = string(appendHangul(nil, r)), true
		}
		if !ok {
			s = string(r)
		}
		if b.Walls.Has(r) {
			flush()
		}
		for _, x := range s {
			if b.Order[x] == 0 {
				flush()
				out = append(out, x)
			} else {
				run = append(run, x)
			}
		}
	}
	flush()
	return string(out)
}

func randomConfig(rng *rand.Rand, wide bool) (Config, []string) {
	coin := func() bool { return rng.IntN(2) == 0 }
	cfg := Config{Pieces: [][]byte{[]byte("[UNK]")}, MaxInputCharsPerWord: []int{100, 100, 5, 1}[rng.IntN(4)],
		Prefix:     []byte([]string{"##", "##", "@", ""}[rng.IntN(4)]),
		Normalizer: Normalizer{CleanText: coin(), HandleChineseChars: coin(), StripAccents: coin(), Lowercase: coin()}}
	if wide {
		cfg.Pieces = append(cfg.Pieces, make([][]byte, 70000)...)
	}
	list := []string{"a", "b", "C", "1", ".", "\u00E9", "\u0301", "e", "\u4E2D", "\u00C0", "\u0130", "\uAC01",
		"\u1100", "\u1161", "\u11A8", "i", "\u0307", "#"}
	var letters []string
	for range 1 + rng.IntN(7) {
		letters = append(letters, list[rng.IntN(len(list))])
	}
	seen := map[string]bool{}
	for range rng.IntN(80) {
		s := ""
		if coin() {
			s = string(cfg.Prefix)
		}
		for range 1 + rng.IntN(3) {
			s += letters[rng.IntN(len(letters))]
		}
		for _, s := range []string{s, strings.ToLower(s)} {
			if !seen[s] {
				seen[s] = true
				cfg.Pieces = append(cfg.Pieces, []byte(s))
			}
		}
	}
	return cfg, letters
}

func TestCopyLower(t *testing.T) {
	src := make([]byte, 256+16)
	for i := range src {
		src[i] = byte(i)
	}
	for n := range src {
		dst := make([]byte, n)
		copyLower(dst, src[:n])
		for i, b := range dst {
			want := src[i]
			if want >= 'A' && want <= 'Z' {
				want += 'a' - 'A'
			}
			if b != want {
				t.Fatalf("%d of %d: %q became %q", i, n, src[i], b)
			}
		}
	}
}

func TestScratchIsReturned(t *testing.T) {
	m, err := New(Config{Pieces: [][]byte{[]byte("[UNK]"), []byte("a")}, MaxInputCharsPerWord: 100})
	if err != nil {
		t.Fatal(err)
	}
	e := m.NewEncoder(0)
	if ids := e.Append(nil, []byte(strings.Repeat("a", 1<<20)), true, true); len(ids) != 1 || ids[0] != 0 {
		t.Fatalf("%d ids", len(ids))
	}
	e.Append(nil, []byte("a"), true, true)
	if cap(e.norm) > 2*keepScratch || len(e.win.Free()) > 64<<10 {
		t.Errorf("kept %d bytes, a window of %d", cap(e.norm), len(e.win.Free()))
	}
}

// TestDropped: text of many windows that is full of what the normalizer drops, before words are
// made of it or after.
func TestDropped(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 40 {
		cfg, letters := randomConfig(rng, false)
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if want := cfg.Normalizer.CleanText; m.dropsNUL != want || m.dropsReplacement != want {
			t.Fatalf("%+v: NUL dropped: %v, U+FFFD: %v", cfg.Normalizer, m.dropsNUL, m.dropsReplacement)
		}
		e := m.NewEncoder(1)
		list := append([]string{"\uFFFD", "\x00", "\x01", "\uFFFC", "\uFF0C", strings.Repeat("\uFFFD", 100),
			strings.Repeat("\x00", 50)}, letters...)
		if round%2 == 0 {
			list = append(list, " ", ",")
		}
		var text strings.Builder
		for n := rng.IntN(40 << 10); text.Len() < n; {
			text.WriteString(list[rng.IntN(len(list))])
		}
		if got, want := e.Append(nil, []byte(text.String()), true, true),
			expected(&cfg, pieceIDs(&cfg), text.String()); !slices.Equal(got, want) {
			t.Fatalf("round %d, %+v: %d ids, want %d", round, cfg.Normalizer, len(got), len(want))
		}
	}
}
