package ingest

import (
	"math/rand/v2"
	"testing"
)

func TestHoldoutIsExactAndNeverInBoth(t *testing.T) {
	for _, c := range []struct{ want, expected, docs, distinct int64 }{
		{100, 3000, 3000, 3000}, {100, 0, 400, 400}, {500, 120500, 120500, 60000}, {1, 1, 50, 50}, {0, 100, 100, 100},
		{50, 200, 1000, 120},
	} {
		h := newHoldout(c.want, c.expected)
		rnd := rand.New(rand.NewPCG(1, uint64(c.docs)))
		content := make([]uint64, c.distinct)
		for i := range content {
			content[i] = rnd.Uint64()
		}
		where := map[uint64]verdict{}
		for range c.docs {
			hash := content[rnd.Int64N(c.distinct)]
			v := h.choose(hash)
			if v == toVal {
				h.have++
			}
			if before, seen := where[hash]; seen && v != toNeither && before != v {
				t.Fatalf("%+v: one text went to both splits", c)
			}
			if v != toNeither {
				where[hash] = v
			}
		}
		if h.have != c.want {
			t.Errorf("%+v: held out %d", c, h.have)
		}
	}
}

func TestHoldoutGoesOnAfterRestore(t *testing.T) {
	a, b := newHoldout(20, 200), newHoldout(20, 200)
	rnd := rand.New(rand.NewPCG(2, 2))
	for i := range 500 {
		if i == 60 {
			b = newHoldout(20, 200)
			b.restore(a.have, a.hashes())
		}
		hash := rnd.Uint64N(1<<9) << 55
		va, vb := a.choose(hash), b.choose(hash)
		if va != vb {
			t.Fatalf("document %d: %v before, %v after the restore", i, va, vb)
		}
		if va == toVal {
			a.have++
			b.have++
		}
	}
}
