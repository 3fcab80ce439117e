package scratch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A sorter gives every name in order, also where it had to write them down and merge more runs than it merges at once.
func TestSorter(t *testing.T) {
	r := rand.NewPCG(3, 3)
	for _, n := range []int{0, 1, 1000, 3 * sortNames, (maxRuns + 5) * 64} {
		var s Sorter
		var want []string
		for i := range n {
			name := fmt.Sprintf("%x", r.Uint64()>>(8*(i%7)))
			want = append(want, name)
			if err := s.Add([]byte(name)); err != nil {
				t.Fatal(err)
			}
			if n == (maxRuns+5)*64 && i%64 == 63 {
				if err := s.spill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Sort(want)
		var got []string
		if err := s.Each(func(name []byte) error { got = append(got, string(name)); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d names: %d came, or in another order", n, len(got))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A queue gives every name once.
func TestQueue(t *testing.T) {
	var q Queue
	const n = 3 * sortNames
	for i := range n {
		if err := q.Push(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for {
		name, ok, err := q.Pop()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if seen[name] {
			t.Fatalf("%s twice", name)
		}
		seen[name] = true
	}
	if len(seen) != n || q.Close() != nil {
		t.Errorf("%d of %d", len(seen), n)
	}
}
