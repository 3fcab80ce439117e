package sampler

import (
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// stepOf deals one step from a position to every rank.
func stepOf(t interface{ Fatal(...any) }, order *Order, o StepOptions, position int64) (ranks []Batch) {
	o.Start = position
	for o.Rank = 0; o.Rank < o.World; o.Rank++ {
		steps, err := NewSteps(order, o)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := steps.Deal(&b); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		ranks = append(ranks, b)
	}
	return ranks
}

func rowsOf(ranks []Batch) (all []Item) {
	for _, b := range ranks {
		for _, it := range b.Items {
			it.Length = 0 // not every deal needs lengths
			all = append(all, it)
		}
	}
	slices.SortFunc(all, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Source, b.Source))
	})
	return all
}

func (o StepOptions) costOf(b Batch) (cost int64) {
	var longest int64
	for _, it := range b.Items {
		l := int64(lengthOf(it.Ref))
		longest = max(longest, l)
		if o.Balance == Quadratic {
			cost += l * l
		}
	}
	if o.Balance == ByTokens {
		return int64(len(b.Items)) * o.PaddedLength(longest)
	}
	return cost
}

func spread(costs []int64) int64 { return slices.Max(costs) - slices.Min(costs) }

// TestBalancedStepsHaveTheSameRows compares every step with the one that is dealt without balance:
// the same rows and the same next, no batch above its budget, every rank with rows where there are
// enough, and the costliest batch no dearer.
func TestBalancedStepsHaveTheSameRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := mustOrder(t, drawOptions(t, 400))
		o := StepOptions{
			BatchRows: rapid.IntRange(1, 40).Draw(t, "batch"), World: rapid.IntRange(2, 9).Draw(t, "world"),
			Multiple:    rapid.SampledFrom([]int{0, 8}).Draw(t, "multiple"),
			Tail:        rapid.SampledFrom([]Tail{Drop, Pad, Keep}).Draw(t, "tail"),
			FixedLength: rapid.SampledFrom([]int{0, 0, 0, 120}).Draw(t, "fixed"),
			Balance:     rapid.SampledFrom([]Balance{ByTokens, Quadratic}).Draw(t, "balance"), Epochs: 2,
		}
		if rapid.Bool().Draw(t, "budget") {
			o.MaxTokens = int64(rapid.IntRange(200, 3000).Draw(t, "max tokens"))
		}
		plain := o
		plain.Balance = NoBalance
		for p := rapid.Int64Range(0, order.Rows()-1).Draw(t, "start"); p < 2*order.Rows(); {
			want, got := stepOf(t, order, plain, p), stepOf(t, order, o, p)
			if a, b := rowsOf(want), rowsOf(got); !slices.Equal(a, b) {
				t.Fatalf("at %d: rows %v, want %v", p, b, a)
			}
			checkBalanced(t, o, want, got)
			p = want[0].Next
		}
	})
}

func checkBalanced(t *rapid.T, o StepOptions, want, got []Batch) {
	n := len(rowsOf(got))
	var dearest, dearestBefore int64
	for rank, b := range got {
		if b.Next != want[rank].Next {
			t.Fatalf("rank %d: next %d, want %d", rank, b.Next, want[rank].Next)
		}
		if (len(b.Items) == 0) != (rank >= n) {
			t.Fatalf("rank %d of %d has %d of the step's %d rows", rank, o.World, len(b.Items), n)
		}
		dearest = max(dearest, o.costOf(b))
		dearestBefore = max(dearestBefore, o.costOf(want[rank]))
		if o.Balance == Quadratic && o.MaxTokens == 0 && len(b.Items) > (n+o.World-1)/o.World {
			t.Fatalf("rank %d has %d of %d rows", rank, len(b.Items), n)
		}
		tokens := o
		tokens.Balance = ByTokens
		if o.MaxTokens > 0 && (len(b.Items) > o.BatchRows || tokens.costOf(b) > o.MaxTokens) {
			t.Fatalf("rank %d: %d rows and %d tokens under %d and %d", rank, len(b.Items), tokens.costOf(b),
				o.BatchRows, o.MaxTokens)
		}
	}
	if o.Balance == ByTokens && dearest > dearestBefore {
		t.Fatalf("the costliest batch costs %d, without balance %d", dearest, dearestBefore)
	}
}

// TestRunsAreOptimal compares the costliest run with that of the best of all cuts.
func TestRunsAreOptimal(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		items := make([]Item, 1+rng.IntN(9))
		for i := range items {
			items[i].Length = int32(1 + rng.IntN(30))
		}
		o := StepOptions{BatchRows: 100, World: 1 + rng.IntN(len(items)), Multiple: 1,
			Balance:   Balances[1+rng.IntN(2)],
			MaxTokens: int64(1e6)}
		d := dealer{o: &o, groups: o.World}
		d.deal(items)
		rows, cost := make([]int64, o.World), make([]int64, o.World)
		for i, row := range d.byLength {
			g := d.rankOf[row]
			if rows[g]++; o.Balance == Quadratic {
				cost[g] += d.length[i] * d.length[i]
			} else if cost[g] == 0 {
				cost[g] = d.length[i]
			}
		}
		if o.Balance == ByTokens {
			for g := range cost {
				cost[g] *= rows[g]
			}
		}
		got := slices.Max(cost)
		if want := bestCut(&d, 0, o.World); got != want {
			t.Fatalf("seed %d: the costliest of %d runs of %v costs %d, the best cut %d", seed, o.World, d.length,
				got, want)
		}
	}
}

// bestCut is the least cost of the costliest of exactly `groups` runs from i on.
func bestCut(d *dealer, i, groups int) int64 {
	n := len(d.length)
	if groups == 1 {
		return d.cost(i, n)
	}
	best := int64(1 << 62)
	for j := i + 1; j <= n-groups+1; j++ {
		best = min(best, max(d.cost(i, j), bestCut(d, j, groups-1)))
	}
	return best
}

// TestBalanceEvensCosts compares how far ranks are apart with and without, over an epoch.
func TestBalanceEvensCosts(t *testing.T) {
	order := mustOrder(t, Options{Sources: []Source{{Rows: 6400}}, Seed: 2})
	for _, mode := range []Balance{ByTokens, Quadratic} {
		for _, world := range []int{2, 4, 8} {
			o := StepOptions{BatchRows: 8, World: world, Balance: mode, Epochs: 1}
			var with, without, dearest, dearestBefore int64
			for p := int64(0); p < order.Rows(); {
				costs := func(ranks []Batch) (out []int64) {
					for _, b := range ranks {
						out = append(out, o.costOf(b))
					}
					return out
				}
				plain := o
				plain.Balance = NoBalance
				even := stepOf(t, order, o, p)
				a, b := costs(even), costs(stepOf(t, order, plain, p))
				with, without = with+spread(a), without+spread(b)
				dearest, dearestBefore = dearest+slices.Max(a), dearestBefore+slices.Max(b)
				p = even[0].Next
			}
			t.Logf("mode %s, world %d: ranks %d apart, %d without; the costliest %d, %d without", mode, world, with,
				without,
				dearest, dearestBefore)
			if with*3 > without*2 || dearest >= dearestBefore {
				t.Errorf("mode %s, world %d: ranks are %d apart, %d without balance; the costliest %d, %d", mode,
					world, with,
					without, dearest, dearestBefore)
			}
		}
	}
}

// TestBalanceAsksAhead compares steps whose lengths are asked for together with those whose lengths are asked for step by
// step, from any position, and counts the questions.
func TestBalanceAsksAhead(t *testing.T) {
	for _, tail := range Tails {
		deal := func(start int64, ahead int) (batches []Batch, asked int) {
			order, err := NewOrder(Options{Sources: []Source{{Rows: 1000}}, Seed: 3}, func(items []Item) error {
				asked++
				return lengthsOf(items)
			})
			if err != nil {
				t.Fatal(err)
			}
			s, err := NewSteps(order, StepOptions{BatchRows: 5, World: 3, Rank: 1, Balance: ByTokens, Tail: tail, Epochs: 2,
				Start: start, Ahead: ahead})
			for err == nil {
				var b Batch
				if err = s.Next(&b); err == nil {
					batches = append(batches, b)
				}
			}
			if err != io.EOF {
				t.Fatal(err)
			}
			return batches, asked
		}
		for _, start := range []int64{0, 45, 975, 1000} {
			want, each := deal(start, 1)
			got, together := deal(start, 100)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("tail %s from %d: other batches", tail, start)
			}
			if most := each/6 + 4; together > most {
				t.Errorf("tail %s from %d: lengths were asked for %d times, %d times step by step", tail, start, together, each)
			}
		}
	}
}
