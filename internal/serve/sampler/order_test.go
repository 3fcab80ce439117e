package sampler

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite testdata")

// lengthOf is a made-up length of every example of every source.
func lengthOf(r Ref) int32 { return int32(1 + mix64(uint64(r.Row)<<8|uint64(r.Source))%97) }

func lengthsOf(items []Item) error {
	for i := range items {
		items[i].Length = lengthOf(items[i].Ref)
	}
	return nil
}

func drawOptions(t *rapid.T, maxRows int64) Options {
	o := Options{
		Shuffle: rapid.SampledFrom(Shuffles).Draw(t, "shuffle"),
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Bucket:  rapid.SampledFrom([]int{0, 1, 7, 64, 300, 1000}).Draw(t, "bucket"),
		Group:   rapid.IntRange(0, 70).Draw(t, "group"),
	}
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "sources") {
		o.Sources = append(o.Sources, Source{rapid.Int64Range(1, maxRows).Draw(t, "rows"),
			rapid.Float64Range(0.01, 100).Draw(t, "weight")})
	}
	return o
}

func mustOrder(t interface{ Fatal(...any) }, o Options) *Order {
	order, err := NewOrder(o, lengthsOf)
	if err != nil {
		t.Fatal(err)
	}
	return order
}

func mustItems(t interface{ Fatal(...any) }, o *Order, p int64, n int) []Item {
	items, err := o.Append(nil, p, n)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// slowWindowed is bucketing written down as the package comment says it, over the order without.
func slowWindowed(o Options, plain []Item) []Item {
	var out []Item
	rows := int64(len(plain))
	group := min(o.Group, o.Bucket)
	bucket := int64(o.Bucket)
	for bucket%int64(group) != 0 {
		bucket++
	}
	for start := int64(0); start < rows; start += bucket {
		w := slices.Clone(plain[start:min(start+bucket, rows)])
		slices.SortStableFunc(w, func(a, b Item) int { return int(lengthOf(a.Ref)) - int(lengthOf(b.Ref)) })
		var groups [][]Item
		for len(w) >= group {
			groups, w = append(groups, w[:group]), w[group:]
		}
		epoch := plain[0].Position / rows
		perm := newPermutation(uint64(max(len(groups), 1)), key(o.Seed, 4, uint64(epoch), uint64(start/bucket)))
		var sorted []Item
		for g := range groups {
			sorted = append(sorted, groups[perm.at(uint64(g))]...)
		}
		for _, it := range append(sorted, w...) {
			out = append(out, Item{Ref: it.Ref, Position: plain[0].Position + int64(len(out)), Length: lengthOf(it.Ref)})
		}
	}
	return out
}

func TestEpochHasEveryRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, 2000)
		o.Sources = o.Sources[:1]
		order := mustOrder(t, o)
		rows := o.Sources[0].Rows
		epoch := rapid.Int64Range(0, 5).Draw(t, "epoch")
		seen := make([]bool, rows)
		for i, it := range mustItems(t, order, epoch*rows, int(rows)) {
			if it.Row < 0 || it.Row >= rows || seen[it.Row] {
				t.Fatalf("row %d outside or repeated", it.Row)
			}
			seen[it.Row] = true
			if it.Position != epoch*rows+int64(i) {
				t.Fatalf("position %d at %d", it.Position, i)
			}
		}
	})
}

func TestBlocksStayTogether(t *testing.T) {
	for _, rows := range []int64{1, 255, 256, 257, 5000, 5120} {
		for seed := range uint64(20) {
			order := mustOrder(t, Options{Sources: []Source{{Rows: rows}}, Shuffle: Block, Seed: seed})
			breaks := 0
			items := mustItems(t, order, 0, int(rows))
			for i := 1; i < len(items); i++ {
				if items[i].Row != items[i-1].Row+1 {
					breaks++
					if items[i].Row%BlockRows != 0 {
						t.Fatalf("%d rows: a block begins at row %d", rows, items[i].Row)
					}
				}
			}
			if blocks := (rows + BlockRows - 1) / BlockRows; int64(breaks) > blocks-1 {
				t.Fatalf("%d rows: %d breaks in %d blocks", rows, breaks, blocks)
			}
		}
	}
}

func TestBucketedOrderIsAsWrittenDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, 1500)
		o.Bucket, o.Group = max(o.Bucket, 2), max(o.Group, 1)
		plainOptions := o
		plainOptions.Bucket = 0
		plain, order := mustOrder(t, plainOptions), mustOrder(t, o)
		start := rapid.Int64Range(0, 3).Draw(t, "epoch") * order.Rows()
		want := slowWindowed(o, mustItems(t, plain, start, int(plain.Rows())))
		got := mustItems(t, order, start, int(order.Rows()))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Batches whose size divides group never hold rows of two groups: each aligned run of group rows of an epoch is sorted.
func TestGroupsAreAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, 1500)
		o.Bucket, o.Group = max(o.Bucket, 2), max(o.Group, 1)
		order := mustOrder(t, o)
		group := min(o.Group, o.Bucket)
		items := mustItems(t, order, order.Rows()*rapid.Int64Range(0, 2).Draw(t, "epoch"), int(order.Rows()))
		for run := range slices.Chunk(items, group) {
			if !slices.IsSortedFunc(run, func(a, b Item) int { return int(a.Length) - int(b.Length) }) {
				t.Fatalf("rows %d to %d of the epoch are of two groups", run[0].Position, run[len(run)-1].Position)
			}
		}
	})
}

// From every position the rest of the order is the same, whatever was read before: a position is the whole state.
func TestOrderReplaysFromAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, 400)
		order := mustOrder(t, o)
		total := int(order.Rows() * 3)
		all := mustItems(t, order, 0, total)
		used := mustOrder(t, o)
		for range 20 {
			from := rapid.IntRange(0, total-1).Draw(t, "from")
			n := rapid.IntRange(0, min(200, total-from)).Draw(t, "n")
			if diff := cmp.Diff(all[from:from+n], mustItems(t, used, int64(from), n), nilIsEmpty); diff != "" {
				t.Fatalf("from %d: %s", from, diff)
			}
		}
	})
}

var nilIsEmpty = cmp.Transformer("len0", func(s []Item) any {
	if len(s) == 0 {
		return "none"
	}
	return fmt.Sprint(s)
})

// In every window a mix keeps its shares, and each source goes through its own epochs, every row once in each.
func TestMixKeepsWeightsAndEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, 300)
		o.Bucket = 0
		for len(o.Sources) < 2 {
			o.Sources = append(o.Sources, Source{Rows: 50, Weight: 3})
		}
		order := mustOrder(t, o)
		var sum float64
		for _, s := range o.Sources {
			sum += s.Weight
		}
		counts := make([]map[int64]int, len(o.Sources))
		for i := range counts {
			counts[i] = map[int64]int{}
		}
		const windows = 3
		got := make([]int, len(o.Sources))
		for _, it := range mustItems(t, order, 0, windows*mixWindow) {
			got[it.Source]++
			counts[it.Source][it.Row]++
		}
		// place a window, and one more for each source that has its one place by no right of its weight: another gave it
		within := 1.0
		for _, s := range o.Sources {
			if s.Weight/sum*mixWindow < 1 {
				within++
			}
		}
		for i, s := range o.Sources {
			want := s.Weight / sum * mixWindow * windows
			if d := math.Abs(float64(got[i]) - want); d > within*windows && got[i] != windows {
				t.Fatalf("source %d of weight %g/%g came %d times, want about %.1f", i, s.Weight, sum, got[i], want)
			}
			low, high := int(1<<30), 0
			for r := range s.Rows {
				low, high = min(low, counts[i][r]), max(high, counts[i][r])
			}
			if high-low > 1 {
				t.Fatalf("source %d: some rows came %d times, some %d", i, low, high)
			}
		}
	})
}

func TestSharesSumUp(t *testing.T) {
	for _, weights := range [][]float64{{1, 1}, {1, 1, 1}, {1e-300, 1e300}, {1e308, 1e308, 1e308},
		{1, 2, 3, 4, 5, 6, 7}, {1e-9, 1e-9, 1}} {
		var sum int64
		for _, s := range shares(weights, mixWindow) {
			if s < 1 {
				t.Errorf("%v: a share of %d", weights, s)
			}
			sum += s
		}
		if sum != mixWindow {
			t.Errorf("%v: shares sum to %d", weights, sum)
		}
	}
}

func TestOrdersDifferBySeedAndEpoch(t *testing.T) {
	first := func(seed uint64, epoch int64) string {
		o := mustOrder(t, Options{Sources: []Source{{Rows: 1000}}, Seed: seed})
		return fmt.Sprint(mustItems(t, o, epoch*1000, 1000)[0].Row, mustItems(t, o, epoch*1000, 1000)[1].Row,
			mustItems(t, o, epoch*1000, 1000)[2].Row)
	}
	seen := map[string]bool{}
	for seed := range uint64(5) {
		for epoch := range int64(5) {
			k := first(seed, epoch)
			if seen[k] {
				t.Errorf("seed %d epoch %d repeats another order", seed, epoch)
			}
			seen[k] = true
		}
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	one := []Source{{Rows: 10}}
	for name, o := range map[string]Options{
		"no source": {}, "no rows": {Sources: []Source{{}}}, "too many rows": {Sources: []Source{{Rows: MaxPosition}}},
		"bucket": {Sources: one, Bucket: MaxBucket + 1}, "negative bucket": {Sources: one, Bucket: -1},
		"group":   {Sources: one, Group: -1},
		"shuffle": {Sources: one, Shuffle: "sorted"}, "weight": {Sources: []Source{{10, 1}, {10, 0}}},
	} {
		if _, err := NewOrder(o, lengthsOf); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
