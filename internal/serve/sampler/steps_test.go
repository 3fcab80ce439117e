package sampler

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// stepsOf runs one rank to the end.
func stepsOf(t *rapid.T, o Options, so StepOptions) []Batch {
	s, err := NewSteps(mustOrder(t, o), so)
	if err != nil {
		t.Fatal(err)
	}
	var out []Batch
	for {
		var b Batch
		err := s.Next(&b)
		if err == io.EOF {
			return out
		}
		if empty := (*EmptyEpochError)(nil); errors.As(err, &empty) && len(out) == 0 && so.Tail == Drop &&
			(so.MaxTokens > 0 || empty.Rows < int64(so.BatchRows*so.World)) {
			return nil // as it says: nothing is left of the epochs
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
}

func drawSteps(t *rapid.T) StepOptions {
	so := StepOptions{
		BatchRows: rapid.IntRange(1, 40).Draw(t, "batch"),
		World:     rapid.IntRange(1, 6).Draw(t, "world"),
		Tail:      rapid.SampledFrom([]Tail{Drop, Pad, Keep}).Draw(t, "tail"),
		Epochs:    rapid.Int64Range(1, 3).Draw(t, "epochs"),
		Multiple:  rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "multiple"),
	}
	if rapid.Bool().Draw(t, "by tokens") {
		so.MaxTokens = rapid.Int64Range(104, 2000).Draw(t, "max tokens")
		so.BatchRows = rapid.SampledFrom([]int{5, 1000}).Draw(t, "most rows")
	}
	return so
}

// longestOf is the longest row of a batch.
func longestOf(items []Item) (n int64) {
	for _, it := range items {
		n = max(n, int64(lengthOf(it.Ref)))
	}
	return n
}

// checkStep holds the batches of one step, one a rank, against what a step from position p may be.
// It returns the rows that the step took.
func checkStep(t *rapid.T, order *Order, so StepOptions, p int64, ranks []Batch) (taken []Item, next int64) {
	next = ranks[0].Next
	epochEnd := (p/order.Rows() + 1) * order.Rows()
	if next <= p || next > epochEnd {
		t.Fatalf("step from %d goes to %d, epoch ends at %d", p, next, epochEnd)
	}
	for r, b := range ranks {
		if b.Next != next {
			t.Fatalf("rank %d continues at %d, rank 0 at %d", r, b.Next, next)
		}
		if so.MaxTokens > 0 {
			if so.PaddedLength(longestOf(b.Items))*int64(len(b.Items)) > so.MaxTokens || len(b.Items) > so.BatchRows {
				t.Fatalf("rank %d: %d rows of %d tokens break the budget %d", r, len(b.Items), longestOf(b.Items),
					so.MaxTokens)
			}
		} else if so.Tail != Keep && len(b.Items) != so.BatchRows {
			t.Fatalf("rank %d has %d rows of %d", r, len(b.Items), so.BatchRows)
		}
		for _, it := range b.Items {
			if it.Position >= p && it.Position < next {
				taken = append(taken, it)
			} else if so.Tail != Pad || next != epochEnd {
				t.Fatalf("row %d outside of the step [%d, %d)", it.Position, p, next)
			}
		}
	}
	if int64(len(taken)) < next-p {
		t.Fatalf("step from %d to %d has %d rows", p, next, len(taken))
	}
	for i, it := range taken[:next-p] {
		if it.Position != p+int64(i) {
			t.Fatalf("row %d where %d was due", it.Position, p+int64(i))
		}
	}
	for _, it := range taken[next-p:] {
		if so.Tail != Pad {
			t.Fatalf("row %d came twice", it.Position)
		}
	}
	return taken[:next-p], next
}

// The central property: over all ranks, steps are exactly the order, each row once, whatever batch
// size, budget, world, tail and start.
func TestRanksShareTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, so := drawOptions(t, 250), drawSteps(t)
		order := mustOrder(t, o)
		rows := order.Rows()
		so.Start = rapid.Int64Range(0, so.Epochs*rows).Draw(t, "start")

		steps := map[int64][]Batch{} // by Next, which tells a step; a rank without rows in it has an empty batch
		for r := range so.World {
			so.Rank = r
			for _, b := range stepsOf(t, o, so) {
				if steps[b.Next] == nil {
					steps[b.Next] = make([]Batch, so.World)
				}
				steps[b.Next][r] = b
			}
		}
		p := so.Start
		for _, next := range slices.Sorted(maps.Keys(steps)) {
			// Under Drop the rest of an epoch may be missing, and whole epochs after it.
			for epochEnd := (p/rows + 1) * rows; next > epochEnd && so.Tail == Drop; epochEnd += rows {
				if so.MaxTokens == 0 && epochEnd-p >= int64(so.BatchRows*so.World) {
					t.Fatalf("a whole step at %d was dropped", p)
				}
				p = epochEnd
			}
			for r := range steps[next] {
				if len(steps[next][r].Items) == 0 {
					if so.Tail != Keep {
						t.Fatalf("rank %d misses the step to %d", r, next)
					}
					steps[next][r].Next = next
				}
			}
			taken, _ := checkStep(t, order, so, p, steps[next])
			want := mustItems(t, order, p, len(taken))
			for i := range taken {
				if taken[i].Ref != want[i].Ref {
					t.Fatalf("position %d is %v, want %v", p+int64(i), taken[i].Ref, want[i].Ref)
				}
			}
			p = next
		}
		if so.Tail != Drop && p != so.Epochs*rows {
			t.Fatalf("ended at %d of %d", p, so.Epochs*rows)
		}
		if so.Tail == Drop && so.MaxTokens == 0 && so.Epochs*rows-p >= rows && rows >= int64(so.BatchRows*so.World) {
			t.Fatalf("ended at %d of %d", p, so.Epochs*rows)
		}
	})
}

// TestOnce: whatever the options, every row comes once, every rank takes as many steps as the others,
// and there is no more than one filler a rank and epoch: only where a step has no row for each rank,
// or without a budget and balance where its rows cannot be divided evenly.
func TestOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, so := drawOptions(t, 250), drawSteps(t)
		so.Tail, so.Balance = Once, rapid.SampledFrom(Balances).Draw(t, "balance")
		order := mustOrder(t, o)
		seen := map[int64]int{}
		var ranks [][]Batch
		for so.Rank = range so.World {
			ranks = append(ranks, stepsOf(t, o, so))
			for _, b := range ranks[so.Rank] {
				for _, it := range b.Items {
					seen[it.Position]++
				}
			}
		}
		for p := range so.Epochs * order.Rows() {
			if seen[p] != 1 {
				t.Fatalf("row %d comes %d times", p, seen[p])
			}
		}
		for i, first := range ranks[0] {
			rows, fillers := 0, 0
			for rank, batches := range ranks {
				if len(batches) != len(ranks[0]) || batches[i].Next != first.Next {
					t.Fatalf("rank %d takes other steps than rank 0", rank)
				}
				for _, it := range batches[i].Items {
					if it.Position != Filler {
						rows++
						continue
					}
					fillers++
					even := so.MaxTokens == 0 && so.Balance == NoBalance
					if rows == 0 || it != batches[i].Items[len(batches[i].Items)-1] || !even &&
						len(batches[i].Items) > 1 ||
						even && len(batches[i].Items) != len(first.Items) {
						t.Fatalf("rank %d, step %d: a filler in %v", rank, i, batches[i].Items)
					}
				}
			}
			if fillers >= so.World || rows >= so.World && so.MaxTokens == 0 && so.Balance != NoBalance && fillers > 0 {
				t.Fatalf("step %d: %d fillers and %d rows", i, fillers, rows)
			}
		}
	})
}

// A run that changes batch size, budget and world at every step still sees every row once.
func TestChangesMidwayLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, 300)
		order := mustOrder(t, o)
		rows := order.Rows()
		var got []Ref
		for p := int64(0); p < 2*rows; {
			so := drawSteps(t)
			so.Tail, so.Epochs, so.Start = Keep, 2, p
			next := int64(-1)
			for r := range so.World {
				so.Rank = r
				s, err := NewSteps(mustOrder(t, o), so)
				if err != nil {
					t.Fatal(err)
				}
				var b Batch
				switch err := s.Next(&b); {
				case err == io.EOF || err == nil && next >= 0 && b.Next != next:
					continue // this rank has no rows in the last step of an epoch
				case err != nil:
					t.Fatal(err)
				}
				next = b.Next
				for _, it := range b.Items {
					got = append(got, it.Ref)
				}
			}
			p = next
		}
		for i, it := range mustItems(t, order, 0, int(2*rows)) {
			if i >= len(got) || got[i] != it.Ref {
				t.Fatalf("position %d of %d differs", i, 2*rows)
			}
		}
	})
}

// A budget is used: a batch ends only where the next row would not have fitted, or at the most rows or the epoch's end.
func TestBudgetIsFilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, so := drawOptions(t, 300), drawSteps(t)
		so.MaxTokens, so.World, so.Tail = rapid.Int64Range(104, 3000).Draw(t, "max"), 1, Keep
		order := mustOrder(t, o)
		for _, b := range stepsOf(t, o, so) {
			if len(b.Items) == so.BatchRows || b.Next%order.Rows() == 0 {
				continue
			}
			with := append(b.Items, mustItems(t, order, b.Next, 1)...)
			if so.PaddedLength(longestOf(with))*int64(len(with)) <= so.MaxTokens {
				t.Fatalf("a batch of %d rows had room for one more", len(b.Items))
			}
		}
	})
}

func TestRowThatNoBatchHolds(t *testing.T) {
	o := Options{Sources: []Source{{Rows: 100}}}
	s, err := NewSteps(mustOrder(t, o), StepOptions{BatchRows: 10, MaxTokens: 20, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for err == nil {
		err = s.Next(&b)
	}
	var tooLong *TooLongError
	if !errors.As(err, &tooLong) || tooLong.Item.Length <= 20 {
		t.Errorf("got %v", err)
	}
}

func TestLengthErrorsArePassedOn(t *testing.T) {
	broken := errors.New("broken shard")
	for _, o := range []Options{{Sources: []Source{{Rows: 9}}, Bucket: 4}, {Sources: []Source{{Rows: 9}}}} {
		order, err := NewOrder(o, func([]Item) error { return broken })
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSteps(order, StepOptions{BatchRows: 2, MaxTokens: 100})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // asking again must not make up lengths
			if err := s.Next(&Batch{}); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		}
	}
}

func TestBadStepsAreRefused(t *testing.T) {
	order := mustOrder(t, Options{Sources: []Source{{Rows: 10}}})
	for name, so := range map[string]StepOptions{
		"batch_size": {}, "rank": {BatchRows: 1, Rank: 1}, "negative rank": {BatchRows: 1, Rank: -1, World: 2},
		"tail": {BatchRows: 1, Tail: "wrap"}, "balance": {BatchRows: 1, Balance: "rows"},
		"start": {BatchRows: 1, Epochs: 2, Start: 21}, "negative start": {BatchRows: 1, Start: -1},
		"epochs": {BatchRows: 1, Epochs: -1}, "max_tokens": {BatchRows: 1, MaxTokens: -1},
	} {
		if _, err := NewSteps(order, so); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := NewSteps(order, StepOptions{BatchRows: 1, Epochs: 2, Start: 20}); err != nil {
		t.Errorf("a run that is over: %v", err)
	}
}

// Position arithmetic alone: a billion rows, any start, no memory that grows with them.
func TestBillionRows(t *testing.T) {
	order := mustOrder(t, Options{Sources: []Source{{Rows: 1_000_000_000}}, Seed: 1, Bucket: 2048})
	for _, start := range []int64{0, 500_000_000, 999_999_000, 7_123_456_789} {
		s, err := NewSteps(order, StepOptions{BatchRows: 32, World: 8, Rank: 3, Start: start})
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := s.Next(&b); err != nil || len(b.Items) != 32 || b.Items[0].Position != start+96 {
			t.Fatalf("start %d: %v %v", start, b, err)
		}
	}
}

// An epoch that has nothing for a rank is an error, never a quiet end and never a search without end.
func TestEmptyEpochs(t *testing.T) {
	for name, c := range map[string]struct {
		so   StepOptions
		want int // batches; -1 for an EmptyEpochError
	}{
		"world above the rows":             {StepOptions{BatchRows: 1, World: 11}, -1},
		"world above the rows, no end":     {StepOptions{BatchRows: 4, World: 3, Epochs: 0}, -1},
		"world above the rows, two epochs": {StepOptions{BatchRows: 4, World: 3, Epochs: 2}, -1},
		"one rank":                         {StepOptions{BatchRows: 11, Epochs: 1}, -1},
		"by tokens":                        {StepOptions{BatchRows: 1000, MaxTokens: 1 << 20, World: 2}, -1},
		"by tokens, three epochs":          {StepOptions{BatchRows: 1000, MaxTokens: 1 << 20, World: 2, Epochs: 3}, -1},
		"kept, for a rank beyond":          {StepOptions{BatchRows: 8, World: 3, Rank: 2, Tail: Keep}, -1},
		"kept, with an end":                {StepOptions{BatchRows: 8, World: 3, Rank: 2, Tail: Keep, Epochs: 2}, 0},
		"padded":                           {StepOptions{BatchRows: 8, World: 3, Rank: 2, Tail: Pad, Epochs: 2}, 2},
		"the rest of an epoch":             {StepOptions{BatchRows: 3, Epochs: 1, Start: 9}, 0},
		"the end":                          {StepOptions{BatchRows: 3, Epochs: 1, Start: 10}, 0},
		"a whole step":                     {StepOptions{BatchRows: 5, World: 2, Epochs: 1}, 1},
	} {
		steps, err := NewSteps(mustOrder(t, Options{Sources: []Source{{Rows: 10}}}), c.so)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		var b Batch
		for err = steps.Next(&b); err == nil && n < 100; err = steps.Next(&b) {
			n++
		}
		if empty := (*EmptyEpochError)(nil); errors.As(err, &empty) {
			n = -1
			if empty.Rows != 10 || !strings.Contains(err.Error(), "10 rows") {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		if n != c.want {
			t.Errorf("%s: %d, want %d", name, n, c.want)
		}
	}
}

// Number and GoTo know each step as dealing the steps one by one does, forwards and back, and LeftOut what was in none.
func TestStepNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, so := drawOptions(t, 60), drawSteps(t)
		so.BatchRows, so.World = min(so.BatchRows, 6), min(so.World, 3)
		so.Balance = rapid.SampledFrom([]Balance{NoBalance, ByTokens}).Draw(t, "balance")
		order := mustOrder(t, o)
		so.Start = rapid.Int64Range(0, so.Epochs*order.Rows()).Draw(t, "start")
		ranks := make([]*Steps, so.World)
		for so.Rank = range ranks {
			ranks[so.Rank], _ = NewSteps(mustOrder(t, o), so)
		}
		numbered, _ := NewSteps(order, so)
		n, dropped, beyond := int64(0), int64(0), int64(1)<<62
		var batches []Batch
		for {
			at, dealt := ranks[0].Position(), 0
			if at%order.Rows() == 0 {
				dropped = 0
			}
			var b Batch
			for _, rank := range ranks {
				if err := rank.Deal(&b); err != nil {
					if err != io.EOF || numbered.GoTo(n) != io.EOF || numbered.GoTo(beyond) != io.EOF {
						t.Fatalf("there are %d steps: %v", n, err)
					}
					return
				}
				dealt += len(b.Items)
			}
			if dealt == 0 {
				dropped += b.Next - at
			} else if err := numbered.GoTo(n); err != nil || numbered.Position() != at {
				t.Fatalf("step %d is at %d, not %d: %v", n, at, numbered.Position(), err)
			}
			for p := at; p < b.Next && so.MaxTokens == 0; p++ {
				got, start, ok := numbered.Number(p)
				if ok != (dealt > 0) || ok && (got != n || start != at) {
					t.Fatalf("position %d is in step %d at %d, not %d at %d (%v)", p, n, at, got, start, ok)
				}
			}
			if got, _ := ranks[0].LeftOut(); so.MaxTokens > 0 && b.Next%order.Rows() == 0 && dropped > 0 && got != dropped {
				t.Fatalf("the epoch before %d leaves out %d rows, not %d", b.Next, dropped, got)
			}
			if dealt > 0 {
				n++
				batches = append(batches, b)
				k := n - 1 - n%3*(n/3)
				var again Batch
				if err := errors.Join(numbered.GoTo(k), numbered.Deal(&again)); err != nil || !sameBatch(again, batches[k]) {
					t.Fatalf("step %d of %d is %v, then %v: %v", k, n, batches[k], again, err)
				}
			}
		}
	})
}

// sameBatch compares without the lengths, which not every deal needs.
func sameBatch(a, b Batch) bool {
	return a.Next == b.Next && slices.EqualFunc(a.Items, b.Items, func(a, b Item) bool {
		return a.Ref == b.Ref && a.Position == b.Position
	})
}
