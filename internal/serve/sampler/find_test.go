package sampler

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/effort"
)

// TestFindIsTheInverseOfAppend compares Find with a look at every position.
func TestFindIsTheInverseOfAppend(t *testing.T) {
	for seed := range uint64(effort.Of(30, 60, 60)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		o := Options{Shuffle: Shuffles[rng.IntN(3)], Seed: seed, Bucket: rng.IntN(2) * (1 + rng.IntN(700)),
			Group: 1 + rng.IntN(40)}
		for range 1 + rng.IntN(3) {
			o.Sources = append(o.Sources, Source{Rows: 1 + rng.Int64N(1500), Weight: .1 + rng.Float64()})
		}
		if rng.IntN(2) == 0 {
			o.Changes = randomChanges(rng, len(o.Sources))
		}
		locate := func(items []Item) error {
			for i := range items {
				items[i].Length = int32(1 + (items[i].Row*7919+int64(items[i].Source))%97)
			}
			return nil
		}
		order, err := NewOrder(o, locate)
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

// randomChanges are other weights from some rows on, some of them 0.
func randomChanges(rng *rand.Rand, sources int) (changes []Change) {
	at := int64(0)
	for range 1 + rng.IntN(4) {
		at += 1 + rng.Int64N(2500)
		c := Change{At: at, Weights: make([]float64, sources)}
		for i := range c.Weights {
			c.Weights[i] = float64(rng.IntN(5))
		}
		c.Weights[rng.IntN(sources)]++
		changes = append(changes, c)
	}
	return changes
}

// TestChangedMixesAreExact goes through a mix with changes position by position: in each stretch of
// one epoch with the same weights every source has its share up to one row for each 1024, and its
// own rows come one after another.
func TestChangedMixesAreExact(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it tries many mixes")
	}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 6))
		o := Options{Seed: seed, Shuffle: None}
		for range 2 + rng.IntN(3) {
			o.Sources = append(o.Sources, Source{Rows: 1 + rng.Int64N(3000), Weight: float64(rng.IntN(3))})
		}
		o.Sources[0].Weight++
		o.Changes = randomChanges(rng, len(o.Sources))
		order := mustOrder(t, o)
		var seen [8]int64
		counts := make([]int64, len(o.Sources))
		begin := int64(0)
		for p := range 4 * order.Rows() {
			segment := order.mix.segmentAt(p)
			if p > 0 && (p%order.Rows() == 0 || segment != order.mix.segmentAt(p-1)) {
				checkShares(t, counts, order.mix.segments[order.mix.segmentAt(p-1)].weights, p-begin)
				clear(counts)
				begin = p
			}
			ref := order.shuffled(p)
			if want := seen[ref.Source] % o.Sources[ref.Source].Rows; ref.Row != want {
				t.Fatalf("seed %d: position %d has row %d of source %d, whose next is %d", seed, p, ref.Row,
					ref.Source, want)
			}
			seen[ref.Source]++
			counts[ref.Source]++
		}
		again := mustOrder(t, o) // from anywhere
		for range 200 {
			p := rng.Int64N(4 * order.Rows())
			if a, b := again.shuffled(p), order.shuffled(p); a != b {
				t.Fatalf("seed %d: position %d is %v, and %v in sequence", seed, p, a, b)
			}
		}
	}
}

func checkShares(t *testing.T, counts []int64, weights []float64, n int64) {
	t.Helper()
	var total float64
	for _, w := range weights {
		total += w
	}
	for i, w := range weights {
		want := w / total * float64(n)
		if d := float64(counts[i]) - want; d < -1-float64(n/mixWindow) || d > 1+float64(n/mixWindow) || w == 0 &&
			counts[i] > 0 {
			t.Fatalf("source %d has %d of %d rows under weights %v", i, counts[i], n, weights)
		}
	}
}
