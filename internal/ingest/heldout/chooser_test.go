package heldout

import (
	"math/rand/v2"
	"testing"
)

func TestChoosesExactlyAndNeverForBoth(t *testing.T) {
	for _, c := range []struct{ want, expected, docs, distinct int64 }{
		{100, 3000, 3000, 3000}, {100, 0, 400, 400}, {500, 120500, 120500, 60000}, {1, 1, 50, 50}, {0, 100, 100, 100},
		{50, 200, 1000, 120},
	} {
		h := New(c.want, c.expected)
		rnd := rand.New(rand.NewPCG(1, uint64(c.docs)))
		content := make([]uint64, c.distinct)
		for i := range content {
			content[i] = rnd.Uint64()
		}
		where := map[uint64]Verdict{}
		for range c.docs {
			hash := content[rnd.Int64N(c.distinct)]
			v := h.Choose(hash)
			if v == ToVal {
				h.Have++
			}
			if before, seen := where[hash]; seen && v != ToNeither && before != v {
				t.Fatalf("%+v: one text went to both splits", c)
			}
			if v != ToNeither {
				where[hash] = v
			}
		}
		if h.Have != c.want {
			t.Errorf("%+v: held out %d", c, h.Have)
		}
	}
}

func TestContinuesAfterRestore(t *testing.T) {
	a, b := New(20, 200), New(20, 200)
	rnd := rand.New(rand.NewPCG(2, 2))
	for i := range 500 {
		if i == 60 {
			b = New(20, 200)
			b.Restore(a.Have, a.Hashes())
		}
		hash := rnd.Uint64N(1<<9) << 55
		va, vb := a.Choose(hash), b.Choose(hash)
		if va != vb {
			t.Fatalf("document %d: %v before, %v after the restore", i, va, vb)
		}
		if va == ToVal {
			a.Have++
			b.Have++
		}
	}
}

// A document of val that train has is counted once, also across a checkpoint.
func TestSharedAreMetOnce(t *testing.T) {
	var s Shared
	for _, hash := range []uint64{9, 3, 7} {
		s.Add(hash)
	}
	s.Seal([]uint64{7})
	for _, c := range []struct {
		hash uint64
		met  bool
	}{{3, true}, {3, false}, {7, false}, {4, false}, {9, true}} {
		if s.Meet(c.hash) != c.met {
			t.Errorf("document %d: met is %t", c.hash, !c.met)
		}
	}
}
