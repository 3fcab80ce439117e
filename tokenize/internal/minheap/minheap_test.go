package minheap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever is pushed and popped in between, the least of all comes first.
func TestAgainstSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h := make([]uint64, r.IntN(50))
		for i := range h {
			h[i] = r.Uint64N(20)
		}
		want := slices.Clone(h)
		Init(h)
		for len(h) > 0 || r.IntN(4) > 0 {
			if len(h) == 0 || r.IntN(3) == 0 {
				x := r.Uint64N(20)
				h, want = Push(h, x), append(want, x)
				continue
			}
			var got uint64
			got, h = Pop(h)
			slices.Sort(want)
			if got != want[0] {
				t.Fatalf("Pop gives %d, want %d", got, want[0])
			}
			want = want[1:]
		}
		if len(want) != 0 {
			t.Fatalf("%d numbers never came", len(want))
		}
	}
}
