package sampler

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFindIsTheInverseOfAppend compares Find with a look at every position.
func TestFindIsTheInverseOfAppend(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		o := Options{Shuffle: Shuffle(rng.IntN(3)), Seed: seed, Bucket: rng.IntN(2) * (1 + rng.IntN(700)),
			Group: 1 + rng.IntN(40)}
		for range 1 + rng.IntN(3) {
			o.Sources = append(o.Sources, Source{Rows: 1 + rng.Int64N(1500), Weight: .1 + rng.Float64()})
		}
		lengths := func(items []Item, out []int32) error {
			for i, it := range items {
				out[i] = int32(1 + (it.Row*7919+int64(it.Source))%97)
			}
			return nil
		}
		order, err := NewOrder(o, lengths)
		if err != nil {
			t.Fatal(err)
		}
		items, err := order.Append(nil, 0, int(3*order.Rows()))
		if err != nil {
			t.Fatal(err)
		}
		from := rng.Int64N(order.Rows())
		end := from + rng.Int64N(2*order.Rows())
		for range 25 {
			s := rng.IntN(len(o.Sources))
			ref := Ref{int32(s), rng.Int64N(o.Sources[s].Rows)}
			var want []int64
			for _, it := range items[from:end] {
				if it.Ref == ref {
					want = append(want, it.Position)
				}
			}
			got, err := order.Find(ref, from, end, len(items))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: %v from %d to %d: found %v, want %v", o, ref, from, end, got, want)
			}
		}
	}
}
