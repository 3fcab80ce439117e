package bytebpe

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/reference"
)

// oracle splits as the engine does and merges by the definition.
type oracle struct {
	c     listed
	ranks map[[2]uint32][2]uint32 // pair to rank and result
	whole map[string]uint32
	m     *Model
}

func newOracle(c listed, m *Model) *oracle {
	r := &oracle{c: c, ranks: make(map[[2]uint32][2]uint32), whole: make(map[string]uint32), m: m}
	for id, b := range c.Tokens {
		if b != nil {
			r.whole[string(b)] = uint32(id)
		}
	}
	for i, g := range c.Merges {
		r.ranks[[2]uint32{g.Left, g.Right}] = [2]uint32{uint32(i), g.Result}
	}
	return r
}

// pair is the rank and result of two neighbours; for ranked tokens any concatenation that is a
// token has its id as its rank.
func (r *oracle) pair(a, b uint32) (rank int, joined uint32, ok bool) {
	if r.c.Ranked {
		id, ok := r.whole[string(r.c.Tokens[a])+string(r.c.Tokens[b])]
		return int(id), id, ok
	}
	x, ok := r.ranks[[2]uint32{a, b}]
	return int(x[0]), x[1], ok
}

func (r *oracle) word(dst []uint32, w []byte) []uint32 {
	if id, ok := r.whole[string(w)]; ok && (r.c.IgnoreMerges || r.c.Ranked) {
		return append(dst, id)
	}
	var sym []uint32
	for _, c := range w {
		if id, ok := r.whole[string(c)]; ok && c < 0x80 {
			sym = append(sym, id)
		} else if id, ok := r.whole[string([]byte{c})]; ok {
			sym = append(sym, id)
		}
	}
	return append(dst, reference.Merge(sym, r.pair)...)
}

func (r *oracle) encode(text []byte) (ids []uint32) {
	for i := 0; i < len(text); {
		end := r.m.tokenEnd(text, i)
		ids = r.word(ids, text[i:end])
		i = end
	}
	return ids
}

// randomConfig is a vocabulary learned at random: merges of tokens that exist, in an order that is
// not the one in which they were made, so that results may rank before their parts.
func randomConfig(r *rand.Rand, split Split, ranked bool) listed {
	c := listed{Config: Config{Split: split, Ranked: ranked, IgnoreMerges: r.IntN(2) == 0}}
	drop := byte(0)
	if r.IntN(4) == 0 {
		drop = 'h'
	}
	for b := range 256 {
		if byte(b) != drop || drop == 0 {
			c.Tokens = append(c.Tokens, []byte{byte(b)})
		}
	}
	seen := make(map[string]bool)
	for _, t := range c.Tokens {
		seen[string(t)] = true
	}
	base := len(c.Tokens)
	letters := []byte("abthes '\n\xe4\xb8\xad1 ")
	pick := func() uint32 {
		if len(c.Tokens) > base && r.IntN(2) == 0 {
			return uint32(base + r.IntN(len(c.Tokens)-base))
		}
		i := slices.IndexFunc(c.Tokens, func(t []byte) bool { return t[0] == letters[r.IntN(len(letters))] })
		return uint32(max(i, 0))
	}
	for range 20 + r.IntN(150) {
		l, g := pick(), pick()
		t := slices.Concat(c.Tokens[l], c.Tokens[g])
		if seen[string(t)] || len(t) > 40 {
			continue
		}
		seen[string(t)] = true
		c.Tokens = append(c.Tokens, t)
		c.Merges = append(c.Merges, Merge{Left: l, Right: g, Result: uint32(len(c.Tokens) - 1)})
	}
	if r.IntN(2) == 0 {
		r.Shuffle(len(c.Merges), func(i, j int) { c.Merges[i], c.Merges[j] = c.Merges[j], c.Merges[i] })
	}
	if ranked {
		c.Merges, c.IgnoreMerges = nil, false
		r.Shuffle(len(c.Tokens), func(i, j int) { c.Tokens[i], c.Tokens[j] = c.Tokens[j], c.Tokens[i] })
	}
	return c
}

func randomWords(r *rand.Rand, n int) []byte {
	if r.IntN(2) == 0 {
		return randomText(r, n)
	}
	letters := "aabthes '\n中1 "
	if r.IntN(3) == 0 {
		letters = letters[:1+r.IntN(4)]
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[r.IntN(len(letters))]
	}
	return out
}

// randomTexts returns a vocabulary for any split, and what makes texts of its letters or of pieces, most of
// them short.
func randomTexts(_ testing.TB, r *rand.Rand, _ bool) (listed, func() string) {
	c := randomConfig(r, Split(r.IntN(int(numSplits))), r.IntN(3) == 0)
	return c, func() string {
		n := r.IntN(100)
		if r.IntN(10) == 0 {
			n = r.IntN(1500)
		}
		return string(randomWords(r, n))
	}
}

// TestSafeCut: whatever follows, cutting there changes nothing; and cuts are found in ordinary text.
func TestSafeCut(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for split := GPT2; split < None; split++ {
		m := tinyModel(t, split)
		found := 0
		for range 3000 {
			text, rest := randomText(r, r.IntN(80)), randomText(r, r.IntN(40))
			n := m.SafeCut(text)
			if n < 0 || n > len(text) {
				t.Fatalf("SafeCut of %d bytes is %d", len(text), n)
			}
			if n > 0 {
				found++
			}
			all := append(bytes.Clone(text), rest...)
			want := plainSplit(m, all)
			got := plainSplit(m, text[:n])
			for _, e := range plainSplit(m, all[n:]) {
				got = append(got, n+e)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q cut at %d before %q: words end at %v, want %v", split, text, n, rest, got, want)
			}
		}
		if found < 1000 {
			t.Errorf("%s: cuts found in %d of 3000 texts", split, found)
		}
		if n := m.SafeCut([]byte("Some ordinary text, and then some mor")); n != 33 {
			t.Errorf("%s: SafeCut is %d, want 33", split, n)
		}
	}
}

// TestLongWords: words of every length around the chunk sizes, periodic and not.
func TestLongWords(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range effort.Of(20, 60, 60) {
		c := randomConfig(r, None, false)
		c.IgnoreMerges = false
		ref := newOracle(c, newModel(t, c))
		e := ref.m.NewEncoder(1)
		letters := "abthes"[:1+r.IntN(6)]
		for _, n := range []int{1, 15, 16, 17, 23, 24, 25, 31, 32, 33, 59, 60, 61, 71, 72, 73, 100, 120, 133, 255,
			256, 257, 300, 1023, 1024, 1025, 2000} {
			n += r.IntN(2)
			text := make([]byte, n)
			for i := range text {
				text[i] = letters[r.IntN(len(letters))]
				if r.IntN(8) == 0 { // what is in the vocabulary, so that long tokens come up
					i += copy(text[i:], c.Tokens[r.IntN(len(c.Tokens))])
				}
			}
			if want, got := ref.encode(text), e.Append(nil, text, true, true); !slices.Equal(got, want) {
				t.Fatalf("%q:\n got %v\nwant %v", text, got, want)
			}
		}
	}
}

// TestChunksThatDoNotMeet: a token longer than a chunk, and a vocabulary whose merges depend on the
// far end of a word.
func TestChunksThatDoNotMeet(t *testing.T) {
	c := listed{Config: Config{Split: None}}
	for b := range 256 {
		c.Tokens = append(c.Tokens, []byte{byte(b)})
	}
	// ab, abab, ... up to 2048 bytes; and ba, which ranks first, so that where a word ends decides
	// what it becomes.
	add := func(l, r uint32) uint32 {
		c.Tokens = append(c.Tokens, slices.Concat(c.Tokens[l], c.Tokens[r]))
		id := uint32(len(c.Tokens) - 1)
		c.Merges = append(c.Merges, Merge{Left: l, Right: r, Result: id})
		return id
	}
	last := add('b', 'a')
	for range 10 {
		last = add(last, last)
	}
	add('a', last)
	ref := newOracle(c, newModel(t, c))
	e := ref.m.NewEncoder(0)
	for _, n := range []int{61, 200, 1000, 1500, 2047, 2048, 2049, 3000} {
		text := bytes.Repeat([]byte("ab"), n)[:n]
		if want, got := ref.encode(text), e.Append(nil, text, true, true); !slices.Equal(got, want) {
			t.Fatalf("%d bytes: got %d ids, want %d", n, len(got), len(want))
		}
	}
}

// TestLongWordsOfVocabularies merges long pieces of random text, of tokens in a row and of their
// beginnings, with real vocabularies.
func TestLongWordsOfVocabularies(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, name := range []string{"r50k_base", "cl100k_base"} {
		c := readRanks(t, name+".tiktoken", None)
		ref := newOracle(c, newModel(t, c))
		var texts [][]byte
		var want [][]uint32
		for _, letters := range []string{"abcdefghijklmnopqrstuvwxyz", "abc", "0123456789", "=-", " ", "ab中é",
			"\x00\xff\xc3\x28", "tokens", "heads"} {
			for range effort.Of(2, 4, 4) {
				var text []byte
				for n := 100 + r.IntN(900); len(text) < n; {
					token := c.Tokens[r.IntN(len(c.Tokens))]
					switch letters {
					case "tokens":
						text = append(text, token...)
					case "heads":
						text = append(text, token[:r.IntN(len(token)+1)]...)
					default:
						text = append(text, letters[r.IntN(len(letters))])
					}
				}
				texts, want = append(texts, text), append(want, ref.word(nil, text))
			}
		}
		variants(t, func(t *testing.T) {
			e := ref.m.NewEncoder(0)
			for range 3 { // what the cache learns changes nothing
				for i, text := range texts {
					if got := e.Append(nil, text, true, true); !slices.Equal(got, want[i]) {
						t.Fatalf("%s, %q:\n got %v\nwant %v", name, text, got, want[i])
					}
				}
			}
		})
	}
}
