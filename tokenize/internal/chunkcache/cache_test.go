package chunkcache

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// words makes ids of a chunk that depend on its bytes alone, a number of them that depends on the
// first.
type words struct{ misses int }

func (m *words) Miss(dst []uint32, w *Window, s Span) ([]uint32, bool) {
	m.misses++
	return append(dst, wordIDs(w.Text()[s.Start:s.End])...), true
}

func wordIDs(b []byte) []uint32 {
	h := uint32(hashLong(b))
	ids := make([]uint32, b[0]%25)
	for i := range ids {
		h = h*1664525 + 1013904223
		ids[i] = h >> 16 & 0xFFFF
	}
	return ids
}

// Whatever was cached, evicted or overwritten before, every chunk gives its own ids.
func TestEmit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var tab Tables
	for c := range tab.From {
		tab.From[c], tab.To[c] = 1, 1
	}
	tab.To[' '] |= 0x80
	tab.From['.'], tab.To['.'] = 0, 0
	for _, maxID := range []uint32{0xFFFF, 0x10000} {
		c := New(1, maxID)
		m := &words{}
		w := NewWindow()
		chunks := 0
		for range 400 {
			var text []byte
			var want []uint32
			for len(text) < 4000 {
				word := bytes.Repeat([]byte{byte('a' + rng.IntN(25))}, 1+rng.IntN(3))
				for range rng.IntN(1 << rng.IntN(6)) {
					word = append(word, "xyz\xC3\xA9"[rng.IntN(5)])
				}
				if rng.IntN(200) == 0 {
					word = append(word, 0)
				}
				text = append(text, word...)
				want = append(want, wordIDs(word)...)
				chunks++
				if rng.IntN(4) == 0 {
					text = append(text, '.')
					want = append(want, wordIDs([]byte{'.'})...)
				} else {
					text = append(text, "   "[:1+rng.IntN(3)]...)
				}
			}
			w.Reset(0)
			w.Commit(copy(w.Free(), text))
			w.Classify(&tab)
			cut := w.LastCut(len(text) / 2)
			got := c.Emit(nil, w, cut, m)
			w.Classify(&tab)
			got = c.Emit(got, w, w.Len(), m)
			if !slices.Equal(got, want) {
				t.Fatalf("%q:\n got %v\nwant %v", text, got, want)
			}
		}
		if m.misses == 0 || m.misses > chunks*9/10 {
			t.Errorf("%d of %d chunks missed", m.misses, chunks)
		}
		c.Seed([]byte("seed"), 7, 8)
		w.Reset(0)
		w.Commit(copy(w.Free(), "seed"))
		w.Classify(&tab)
		if got := c.Emit(nil, w, 4, m); !slices.Equal(got, []uint32{7, 8}) {
			t.Errorf("seeded ids are %v", got)
		}
	}
}

// A cache takes the seeds once it has stored enough chunks, or is told to.
func TestSeedLater(t *testing.T) {
	var tab Tables
	for c := range tab.From {
		tab.From[c], tab.To[c] = 1, 1
	}
	for _, told := range []bool{false, true} {
		c, w, asked := New(1<<20, 0xFFFF), NewWindow(), 0
		c.SeedLater(func() []uint32 { asked++; return []uint32{5, 6} },
			func(id uint32) []byte { return []byte{'s', byte('0' + id)} })
		emit := func(chunk string) (ids []uint32, missed bool) {
			m := &words{}
			w.Reset(0)
			w.Commit(copy(w.Free(), chunk))
			w.Classify(&tab)
			return c.Emit(nil, w, len(chunk), m), m.misses > 0
		}
		for i := range coldMisses + 1 {
			if told {
				c.Warm()
				break
			}
			if asked > 0 {
				t.Fatalf("seeds after %d chunks", i)
			}
			emit(strconv.Itoa(i))
		}
		for range 2 {
			if ids, missed := emit("s6"); missed || !slices.Equal(ids, []uint32{6}) || asked != 1 {
				t.Errorf("told %v: ids %v, missed %v, asked %d times", told, ids, missed, asked)
			}
		}
	}
}

func TestBytes(t *testing.T) {
	for n := MinBytes; n <= 64<<20; n += n/3 + 17 {
		if b := Bytes(n); b > n && n > 2*MinBytes || b < n/3 {
			t.Errorf("a cache of %d bytes holds %d", n, b)
		}
	}
}

func TestRing(t *testing.T) {
	var r ring[uint16]
	r.init(64)
	if _, _, ok := r.put(17); ok {
		t.Error("took a quarter of the ring and more")
	}
	type item struct{ pos uint32 }
	var items []item
	for i := range 200 {
		pos, dst, ok := r.put(1 + i%16)
		if !ok {
			t.Fatal("refused")
		}
		for k := range dst {
			dst[k] = uint16(i)
		}
		items = append(items, item{pos})
		for j, it := range items {
			got, ok := r.get(it.pos, 1+j%16)
			if ok && slices.ContainsFunc(got, func(x uint16) bool { return x != uint16(j) }) {
				t.Fatalf("item %d holds %v after %d", j, got, i)
			}
			if j == i && !ok {
				t.Fatal("the newest is gone")
			}
		}
	}
	r.head = 1<<32 - 64
	if _, _, ok := r.put(1); ok {
		t.Error("positions overflow")
	}
}
