package spbpe

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/reference"
)

// expected merges a whole text the obvious way: the best pair of all, again and again.
func expected(cfg *Config, text string) []uint32 {
	if text == "" {
		return nil
	}
	text = strings.ReplaceAll(text, " ", "\u2581")
	if cfg.Prefix == PrefixAlways || cfg.Prefix == PrefixUnlessSpace && !strings.HasPrefix(text, "\u2581") {
		text = "\u2581" + text
	}
	if !cfg.SplitSpaces {
		return expectedWord(cfg, text)
	}
	var ids []uint32
	for text != "" {
		n := strings.Index(text[1:], "\u2581") + 1
		if n == 0 {
			n = len(text)
		}
		ids = append(ids, expectedWord(cfg, text[:n])...)
		text = text[n:]
	}
	return ids
}

func expectedWord(cfg *Config, text string) []uint32 {
	find := map[string]uint32{}
	for id, p := range cfg.Pieces {
		if len(p) > 0 {
			find[string(p)] = uint32(id)
		}
	}
	ranks := map[[2]string]int{}
	for rank, m := range cfg.Merges {
		ranks[[2]string{string(cfg.Pieces[m[0]]), string(cfg.Pieces[m[1]])}] = rank
	}
	parts := reference.Merge(strings.Split(text, ""), func(a, b string) (rank int, joined string, ok bool) {
		rank, ok = ranks[[2]string{a, b}]
		return rank, a + b, ok
	})
	var ids []uint32
	unknown := 0
	for _, p := range parts {
		if id, ok := find[p]; ok {
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

func TestAgainstReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 100 {
		cfg, letters := randomConfig(rng, round%25 == 0)
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := m.NewEncoder(1)
		for range 20 {
			text := enginetest.Text(rng, letters)
			if len(text) > 500 {
				text = strings.ToValidUTF8(text[:500], "")
			}
			enginetest.Properties(t, rng, e, m.SafeCut, expected(&cfg, text), text)
		}
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
		want := e.appendWhole(nil, chunk) // by buckets
		if string(u32(got)) != string(u32(want)) {
			t.Fatalf("%q:\n got %v\nwant %v", chunk, got, want)
		}
		chunk = []byte(strings.ToValidUTF8(string(chunk[:2000]), "")) // by heap
		if want = e.appendWhole(want[:0], chunk); string(u32(e.appendLong(nil, chunk))) != string(u32(want)) {
			t.Fatalf("heap differs from windows for %q", chunk)
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

func TestBadConfigs(t *testing.T) {
	p := func(s ...string) (list [][]byte) {
		for _, x := range s {
			list = append(list, []byte(x))
		}
		return list
	}
	for name, cfg := range map[string]Config{
		"empty":      {},
		"unk":        {Pieces: p("a"), UnkID: 1},
		"merge":      {Pieces: p("a", "b"), Merges: [][2]uint32{{0, 5}}},
		"no result":  {Pieces: p("a", "b"), Merges: [][2]uint32{{0, 1}}},
		"twice":      {Pieces: p("a", "a")},
		"scores":     {Pieces: p("a"), Scores: []float32{}},
		"byte":       {Pieces: p("a"), ByteFallback: true, ByteIDs: [256]int32{7}},
		"no unknown": {Pieces: p("a"), UnkID: -1},
		"user":       {Pieces: p("a"), UserDefined: []uint32{3}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNoAllocs(t *testing.T) {
	for _, g := range goldenTokenizers {
		enginetest.NoAllocs(t, g.Load(t))
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "a b\u2581c")
	for i, h := range enginetest.HostileTexts(700) {
		f.Add(uint64(i), string(h.Text))
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		cfg, _ := randomConfig(rand.New(rand.NewPCG(seed, 0)), false)
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := m.NewEncoder(1)
		got := e.Append(nil, []byte(text), true, true)
		if len(text) < 2000 && utf8.ValidString(text) {
			if want := expected(&cfg, text); string(u32(got)) != string(u32(want)) {
				t.Fatalf("%q:\n got %v\nwant %v", text, got, want)
			}
		}
	})
}
