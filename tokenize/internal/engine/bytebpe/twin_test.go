package bytebpe

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
)

// pieces of text that meet every rule of the patterns, and what is not text.
var pieces = []string{
	"a", "b", "the", "The", "ABC", "x", "s", "t", "re", "LL", "S", "D", " ", " ", "  ", "   ", "\t", "\n", "\r\n",
	"\n\n", " \n ", "\u00a0", "\u3000", "\u0085", "\u2028",
	"'", "'s", "'S", "'re", "'LL", "'ſ", "''", "'t's", "1", "12", "123", "1234567", "٣", "½", "Ⅷ", "!", "?!", "...",
	"/", "//", "\n/", "-", "(", "é", "É", "ß", "Дом", "дом", "ДОМ", "中", "中文",
	"の", "ʰ", "ǅ", "한국", "\u0301", "e\u0301", "क्षि", "ไทย", "!\u0e31", " !\u064f",
	"A\u0301", "ก็", "हि", "👍", "👨‍👩‍👧", "🏽", "\u200d", "\ufeff", "\x00", "\x01",
	"\x7f", "\xff", "\x80", "\xc3", "\xe4\xb8", "\xf0\x9f", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80\x80\x80",
	"\U0010ffff",
	"don't", "I'm", "__init__", "==", "====================", "hello world", "internationalization",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaa",
}

// randomText joins pieces; bias decides how much of them come from a small set, so that runs get
// long.
func randomText(r *rand.Rand, n int) []byte {
	var out []byte
	few := make([]string, 1+r.IntN(6))
	for i := range few {
		few[i] = pieces[r.IntN(len(pieces))]
	}
	wide := r.IntN(4)
	for len(out) < n {
		if r.IntN(4) < wide {
			out = append(out, pieces[r.IntN(len(pieces))]...)
		} else {
			out = append(out, few[r.IntN(len(few))]...)
		}
	}
	return out
}

// plainSplit is the text cut by the plain scanner.
func plainSplit(m *Model, text []byte) (ends []int) {
	for i := 0; i < len(text); {
		i = m.tokenEnd(text, i)
		ends = append(ends, i)
	}
	return ends
}

// windowSplit is the text cut by the windows of an encoder.
func windowSplit(e *Encoder, text []byte) (ends []int) {
	for at := 0; at < len(text); {
		n := e.fill(text[at:])
		words, _ := e.scan(n)
		if n < len(text)-at {
			if words = e.settled(words, n); words == 0 {
				at = e.m.tokenEnd(text, at)
				ends = append(ends, at)
				continue
			}
		}
		for w, p := range e.pos[1 : words+1] {
			if w+1 == words || e.inside[p/blockBytes]>>(p%blockBytes)&1 == 0 {
				ends = append(ends, at+int(p))
			}
		}
		at += int(e.pos[words])
	}
	return ends
}

// tinyModel is a vocabulary made of bytes and a few merges, for tests of splitting.
func tinyModel(t testing.TB, split Split) *Model {
	t.Helper()
	c := listed{Config: Config{Split: split}}
	for b := range 256 {
		c.Tokens = append(c.Tokens, []byte{byte(b)})
	}
	add := func(l, r uint32) uint32 {
		id := uint32(len(c.Tokens))
		c.Tokens = append(c.Tokens, slices.Concat(c.Tokens[l], c.Tokens[r]))
		c.Merges = append(c.Merges, Merge{Left: l, Right: r, Result: id})
		return id
	}
	th := add('t', 'h')
	add(th, 'e')
	aa := add('a', 'a')
	add(aa, aa)
	add(' ', ' ')
	add('i', 'n')
	add(0xe4, 0xb8)
	return newModel(t, c)
}

func newModel(t testing.TB, c listed) *Model {
	t.Helper()
	m, err := newListed(c)
	if err != nil {
		t.Fatal(err)
	}
	m.places.Store(joinedAfter) // words are cut inside from the first one on
	return m
}

func checkSplit(t *testing.T, e *Encoder, text []byte) {
	t.Helper()
	want, got := plainSplit(e.m, text), windowSplit(e, text)
	if slices.Equal(got, want) {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	from := 0
	if i > 0 {
		from = want[i-1]
	}
	to := min(from+60, len(text))
	t.Fatalf("%s: after byte %d of %d, at %q: words end at %v, want %v", e.m.split, from, len(text),
		text[max(0, from-20):to], got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
}

// TestSplitAgrees checks invariant I3: the windowed scanner cuts where the plain one does.
func TestSplitAgrees(t *testing.T) {
	for split := GPT2; split < None; split++ {
		e := tinyModel(t, split).NewEncoder(1)
		r := rand.New(rand.NewPCG(1, uint64(split)))
		for i := range effort.Of(150, 2000, 100_000) {
			n := r.IntN(300)
			if i%20 == 0 {
				n = r.IntN(20000)
			}
			checkSplit(t, e, randomText(r, n))
		}
		for i, c := range corpora {
			if testing.Short() && i != int(split)%len(corpora) {
				continue
			}
			checkSplit(t, e, readCorpus(t, c))
		}
	}
}

// TestContractionsOfAnyCase puts contractions, whose letters change case inside, at every place of
// a block and across its end.
func TestContractionsOfAnyCase(t *testing.T) {
	for split := GPT2; split < None; split++ {
		e := tinyModel(t, split).NewEncoder(1)
		for _, text := range []string{"'re'vE", "re'rE", "aaa're'RE x", "'s'rE", "I'M'rE", "x'lL y", "'re'lL",
			"'re'Ve", "'re'S", "\U0010ffff're'rE//'s're't'sa"} {
			for pad := range 140 {
				checkSplit(t, e, []byte(strings.Repeat("b", pad)+" "+text+strings.Repeat(" c", 80)))
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 2))
	for split := GPT2; split < None; split++ {
		for range 30 {
			f.Add(uint8(split), randomText(r, 200))
		}
		for _, h := range enginetest.HostileTexts(700) {
			f.Add(uint8(split), h.Text)
		}
	}
	var encoders [None]*Encoder
	for split := GPT2; split < None; split++ {
		encoders[split] = tinyModel(f, split).NewEncoder(1)
	}
	f.Fuzz(func(t *testing.T, split uint8, text []byte) {
		e := encoders[split%uint8(None)]
		checkSplit(t, e, text)
		checkSplit(t, e, bytes.Repeat(text, 1+5000/(len(text)+1)))
	})
}
