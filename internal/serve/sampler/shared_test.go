package sampler

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/pack"
)

// sharedOf returns steps that share what they make, and count the rows whose lengths they ask for.
func sharedOf(t *testing.T, shared *Shared, o Options, s StepOptions, asked *atomic.Int64) *Steps {
	t.Helper()
	order, err := NewOrder(o, func(items []Item) error {
		asked.Add(int64(len(items)))
		return lengthsOf(items)
	})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := NewSteps(order, s)
	if err != nil {
		t.Fatal(err)
	}
	if shared != nil {
		steps.Share(shared, "rows", func(ready <-chan struct{}) error { <-ready; return nil })
	}
	return steps
}

// all returns the batches of a stream.
func all(t *testing.T, s *Steps) (out []Batch) {
	for {
		var b Batch
		if err := s.Next(&b); err == io.EOF {
			return out
		} else if err != nil {
			t.Error(err)
			return out
		}
		out = append(out, b)
	}
}

// TestSharedStepsAreTheSame: ranks that share windows and balanced steps get the batches of ranks that do not, from any
// position, and ask for each length about as often as one rank does.
func TestSharedStepsAreTheSame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 1))
	for _, c := range []struct {
		o Options
		s StepOptions
	}{
		{Options{Bucket: 512, Group: 32}, StepOptions{BatchRows: 4}},
		{Options{Bucket: 700, Shuffle: Block}, StepOptions{BatchRows: 7, Tail: Once}},
		{Options{}, StepOptions{BatchRows: 3, Balance: ByTokens, Tail: Pad}},
		{Options{}, StepOptions{BatchRows: 16, Balance: ByTokens, MaxTokens: 9000}},
		{Options{Bucket: 256}, StepOptions{BatchRows: 5, Balance: Quadratic, Tail: Keep}},
	} {
		for _, world := range []int{1, 3, 16} {
			rows := effort.Of[int64](2500, 5000, 5000)
			c.o.Seed, c.o.Sources, c.s.World, c.s.Epochs = rnd.Uint64(), []Source{{Rows: rows}}, world, 2
			name := fmt.Sprintf("%+v %+v", c.o, c.s)
			var shared Shared
			var asked, alone atomic.Int64
			var group sync.WaitGroup
			for rank := range world {
				c.s.Rank, c.s.Start = rank, 0
				s, want := sharedOf(t, &shared, c.o, c.s, &asked), all(t, sharedOf(t, nil, c.o, c.s, &alone))
				for i := range rnd.IntN(3) { // some resume
					if i < len(want) {
						c.s.Start = want[i].Next
					}
				}
				if c.s.Start > 0 {
					s.Release()
					s, want = sharedOf(t, &shared, c.o, c.s, &asked), all(t, sharedOf(t, nil, c.o, c.s, &alone))
				}
				group.Go(func() {
					if got := all(t, s); !reflect.DeepEqual(got, want) {
						t.Errorf("%s: rank %d gets other batches", name, s.opts.Rank)
					}
					s.Release()
				})
			}
			group.Wait()
			if len(shared.pools) > 0 {
				t.Errorf("%s: %d pools are left", name, len(shared.pools))
			}
		}
	}
}

// TestSharedPackedRows: ranks that share packed windows get the rows of ranks that do not, and packing is done once.
func TestSharedPackedRows(t *testing.T) {
	const rows, world = 3 * minPackWindow, 5
	for _, policy := range []pack.Policy{pack.BFD, pack.BFDSplit, pack.Wrapped} {
		var shared Shared
		var windows atomic.Int64
		steps := func(rank int, start int64) *PackedSteps {
			order, err := NewOrder(Options{Sources: []Source{{Rows: rows}}, Seed: 5}, func(units []Item) error {
				windows.Add(1)
				for i := range units {
					units[i].Length = 1 + int32(mix64(uint64(units[i].Row))%97)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPacked(order, PackOptions{Policy: policy, Length: 60, Tokens: 50 * rows, Longest: 97})
			if err != nil {
				t.Fatal(err)
			}
			s, err := NewPackedSteps(p, StepOptions{BatchRows: 8, World: world, Rank: rank, Epochs: 2, Start: start})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		read := func(s *PackedSteps, n int) (out []string, next int64) {
			for range n {
				at, err := s.Next(func(r PackedRow) error {
					out = append(out, fmt.Sprint(r.Position))
					for _, p := range r.Pieces {
						out = append(out, fmt.Sprint(r.Units[p.Item].Ref, p.From, p.Len))
					}
					return nil
				}, func() {})
				if err == io.EOF {
					break
				} else if err != nil {
					t.Error(err)
				}
				next = at
			}
			return out, next
		}
		var want [world][]string
		_, start := read(steps(0, 0), 7)
		for rank := range world {
			want[rank], _ = read(steps(rank, start), math.MaxInt)
		}
		alone := windows.Swap(0)
		var ranks [world]*PackedSteps
		for rank := range ranks {
			ranks[rank] = steps(rank, start)
			ranks[rank].Share(&shared, "", func(ready <-chan struct{}) error { <-ready; return nil })
		}
		var got [world][]string
		for more := true; more; {
			more = false
			var group sync.WaitGroup
			for rank, s := range ranks {
				group.Go(func() {
					out, _ := read(s, 1)
					got[rank] = append(got[rank], out...)
				})
			}
			group.Wait()
			for _, s := range ranks {
				more = more || s.Position() < s.end
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: other rows", policy)
		}
		if n := windows.Load(); n > alone/world+1 {
			t.Errorf("%s: %d windows were packed, of %d by ranks that share none", policy, n, alone)
		}
		for _, s := range ranks {
			s.Release()
		}
		if len(shared.pools) > 0 {
			t.Errorf("%s: %d pools are left", policy, len(shared.pools))
		}
	}
}

// TestSharedOnce: ranks in step make each window once, and hold no more of them than they are.
func TestSharedOnce(t *testing.T) {
	const rows, world = 20_000, 8
	for name, c := range map[string]struct {
		o Options
		s StepOptions
	}{
		"bucket":  {Options{Bucket: 1024}, StepOptions{BatchRows: 4}},
		"balance": {Options{}, StepOptions{BatchRows: 4, Balance: ByTokens, Tail: Keep}},
	} {
		c.o.Sources, c.s.World, c.s.Epochs = []Source{{Rows: rows}}, world, 1
		var shared Shared
		var asked atomic.Int64
		var ranks []*Steps
		for c.s.Rank = range world {
			ranks = append(ranks, sharedOf(t, &shared, c.o, c.s, &asked))
		}
		for left := len(ranks); left > 0; {
			left = 0
			for _, s := range ranks {
				var b Batch
				if s.Next(&b) == nil {
					left++
				}
			}
			for _, p := range shared.pools {
				if len(p.shared) > world {
					t.Fatalf("%s: %d parts for %d ranks", name, len(p.shared), world)
				}
			}
		}
		if n := asked.Load(); n != rows {
			t.Errorf("%s: %d lengths were asked for, of %d rows", name, n, rows)
		}
		for i, s := range ranks {
			s.Release()
			for _, p := range shared.pools {
				if len(p.shared) > world-i-1 {
					t.Errorf("%s: %d parts are left with %d ranks", name, len(p.shared), world-i-1)
				}
			}
		}
	}
}

// TestSharedAfterAnError: who cannot make a window does not keep others from it, nor does one who does not wait any longer.
func TestSharedAfterAnError(t *testing.T) {
	var shared Shared
	o := Options{Sources: []Source{{Rows: 100}}, Bucket: 64}
	begun, fail := make(chan bool), make(chan bool)
	lost, gone := errors.New("lost"), errors.New("gone")
	first := mustOrder(t, o)
	first.locate = func([]Item) error { begun <- true; <-fail; return lost }
	steps := func(order *Order, wait func(<-chan struct{}) error) *Steps {
		s, err := NewSteps(order, StepOptions{BatchRows: 8})
		if err != nil {
			t.Fatal(err)
		}
		s.Share(&shared, "", wait)
		return s
	}
	waiting := make(chan bool)
	a := steps(first, nil)
	b := steps(mustOrder(t, o), func(ready <-chan struct{}) error { waiting <- true; <-ready; return nil })
	c := steps(mustOrder(t, o), func(<-chan struct{}) error { return gone })
	var group sync.WaitGroup
	group.Go(func() {
		if err := a.Next(new(Batch)); err != lost {
			t.Errorf("the first: %v", err)
		}
	})
	<-begun
	if err := c.Next(new(Batch)); err != gone {
		t.Errorf("the one that leaves: %v", err)
	}
	var got, want Batch
	group.Go(func() {
		if err := b.Next(&got); err != nil {
			t.Errorf("the one that waits: %v", err)
		}
	})
	<-waiting
	fail <- true
	group.Wait()
	if s, _ := NewSteps(mustOrder(t, o), StepOptions{BatchRows: 8}); s.Next(&want) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after an error: %v, want %v", got, want)
	}
}
