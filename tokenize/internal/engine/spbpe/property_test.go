package spbpe

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/reference"
)

// oracle encodes a whole text the obvious way: it merges the best pair of all, again and again.
type oracle struct {
	cfg   *Config
	find  map[string]uint32
	ranks map[[2]string]int
}

func newOracle(cfg *Config) *oracle {
	o := &oracle{cfg, map[string]uint32{}, map[[2]string]int{}}
	for id, p := range cfg.Pieces {
		if len(p) > 0 {
			o.find[string(p)] = uint32(id)
		}
	}
	for rank, m := range cfg.Merges {
		o.ranks[[2]string{string(cfg.Pieces[m[0]]), string(cfg.Pieces[m[1]])}] = rank
	}
	return o
}

func (o *oracle) encode(text string) []uint32 {
	if text == "" {
		return nil
	}
	text = strings.ReplaceAll(text, " ", "\u2581")
	if o.cfg.Prefix == PrefixAlways || o.cfg.Prefix == PrefixUnlessSpace && !strings.HasPrefix(text, "\u2581") {
		text = "\u2581" + text
	}
	if !o.cfg.SplitSpaces {
		return o.word(text)
	}
	var ids []uint32
	for text != "" {
		n := strings.Index(text[1:], "\u2581") + 1
		if n == 0 {
			n = len(text)
		}
		ids = append(ids, o.word(text[:n])...)
		text = text[n:]
	}
	return ids
}

func (o *oracle) word(text string) []uint32 {
	cfg := o.cfg
	parts := reference.Merge(strings.Split(text, ""), func(a, b string) (rank int, joined string, ok bool) {
		rank, ok = o.ranks[[2]string{a, b}]
		return rank, a + b, ok
	})
	var ids []uint32
	unknown := 0
	for _, p := range parts {
		if id, ok := o.find[p]; ok {
			for ; unknown > 0; unknown-- {
				ids = append(ids, uint32(cfg.UnkID))
			}
			ids = append(ids, id)
			continue
		}
		whole := cfg.ByteFallback
		for i := range len(p) {
			whole = whole && cfg.ByteIDs[p[i]] >= 0
		}
		switch {
		case whole:
			for i := range len(p) {
				ids = append(ids, uint32(cfg.ByteIDs[p[i]]))
			}
		case unknown == 0:
			unknown = 1
		case !cfg.FuseUnk:
			ids = append(ids, uint32(cfg.UnkID))
		}
	}
	for ; unknown > 0; unknown-- {
		ids = append(ids, uint32(cfg.UnkID))
	}
	return ids
}

var alphabet = []string{"a", "b", "c", "d", "e", "1", "2", ".", "-", "\u00E9", "\u0436", "\u4E2D", "\U0001F600", " ",
	"\n", "<"}

// randomConfig makes a small model, with merges in an order that no training gives.
func randomConfig(rng *rand.Rand, wide bool) (Config, []string) {
	cfg := Config{UnkID: 0, Pieces: [][]byte{[]byte("<unk>")}, FuseUnk: rng.IntN(2) == 0, ByteFallback: rng.IntN(3) > 0,
		Prefix: Prefix(rng.IntN(3)), SplitSpaces: rng.IntN(3) == 0}
	if wide {
		cfg.Pieces = append(cfg.Pieces, make([][]byte, 70000)...)
	}
	ids := map[string]uint32{"<unk>": 0}
	add := func(s string) uint32 {
		id, ok := ids[s]
		if !ok {
			id = uint32(len(cfg.Pieces))
			ids[s] = id
			cfg.Pieces = append(cfg.Pieces, []byte(s))
		}
		return id
	}
	const hex = "0123456789ABCDEF"
	partial := rng.IntN(2) == 0
	for b := range cfg.ByteIDs {
		cfg.ByteIDs[b] = -1
		if cfg.ByteFallback && (!partial || rng.IntN(4) > 0) {
			cfg.ByteIDs[b] = int32(add("<0x" + string(hex[b>>4]) + string(hex[b&15]) + ">"))
		}
	}
	letters := make([]string, 1+rng.IntN(6))
	var symbols []string
	for i := range letters {
		letters[i] = alphabet[rng.IntN(len(alphabet))]
		if rng.IntN(5) > 0 {
			symbols = append(symbols, strings.ReplaceAll(letters[i], " ", "\u2581"))
		}
	}
	symbols = append(symbols, "\u2581", letters[0])
	for i, s := range symbols {
		symbols[i] = strings.ReplaceAll(s, " ", "\u2581")
		add(symbols[i])
	}
	seen := map[string]bool{}
	for range rng.IntN(40) {
		l, r := symbols[rng.IntN(len(symbols))], symbols[rng.IntN(len(symbols))]
		if utf8.RuneCountInString(l+r) > 12 || seen[l+" "+r] {
			continue
		}
		seen[l+" "+r] = true
		cfg.Merges = append(cfg.Merges, [2]uint32{add(l), add(r)})
		add(l + r)
		symbols = append(symbols, l+r)
	}
	rng.Shuffle(len(cfg.Merges), func(i, j int) { cfg.Merges[i], cfg.Merges[j] = cfg.Merges[j], cfg.Merges[i] })
	return cfg, append(letters, " ")
}

// randomTexts returns a vocabulary of randomConfig, and what makes texts short enough for oracle.
func randomTexts(_ testing.TB, rng *rand.Rand, wide bool) (Config, func() string) {
	cfg, letters := randomConfig(rng, wide)
	return cfg, func() string {
		text := enginetest.Text(rng, letters)
		if len(text) > 500 {
			text = strings.ToValidUTF8(text[:500], "")
		}
		return text
	}
}

// Windows of long chunks must join to what merging them at once gives.
func TestLongChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		cfg, letters := randomConfig(rng, false)
		cfg.SplitSpaces = false
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := m.newEncoder(1)
		var sb strings.Builder
		longest := 1 + rng.IntN(2)*rng.IntN(300) // half of the texts never repeat
		for sb.Len() < 6000 {
			sb.WriteString(strings.Repeat(letters[rng.IntN(len(letters))]+letters[rng.IntN(len(letters))],
				1+rng.IntN(longest)))
		}
		chunk := []byte(sb.String())
		got := e.appendLong(nil, chunk)
		if want := e.appendWhole(nil, chunk); string(u32(got)) != string(u32(want)) {
			t.Fatalf("%q:\n got %v\nwant %v", chunk, got, want)
		}
	}
}

func u32(ids []uint32) []byte {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		b = append(b, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	return b
}

func TestScratchIsReturned(t *testing.T) {
	m, err := New(Config{Pieces: [][]byte{[]byte("<unk>"), []byte("a"), []byte("aa")}, Merges: [][2]uint32{{1, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	e := m.NewEncoder(0)
	ids := e.Append(nil, []byte(strings.Repeat("a", 1<<20)), true, true)
	if len(ids) != 1<<19 {
		t.Fatalf("%d ids", len(ids))
	}
	e.Append(ids[:0], []byte("a"), true, true)
	if cap(e.large.id) > 2*keepItems || cap(e.large.heap) > 2*keepItems || len(e.win.Free()) > 64<<10 {
		t.Errorf("kept scratch for %d symbols, a window of %d bytes", cap(e.large.id), len(e.win.Free()))
	}
}
