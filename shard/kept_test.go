package shard_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

// room is a Spare of limited size.
type room struct {
	max, taken, most atomic.Int64
}

func newRoom(max int64) *room {
	r := &room{}
	r.max.Store(max)
	return r
}

func (r *room) Take(n int64) bool {
	now := r.taken.Add(n)
	if now > r.max.Load() {
		r.taken.Add(-n)
		return false
	}
	for {
		most := r.most.Load()
		if now <= most || r.most.CompareAndSwap(most, now) {
			return true
		}
	}
}

func (r *room) Return(n int64) { r.taken.Add(-n) }

// TestKeptBatchesChangeNothing reads the same rows from memory, in part or whole, and without.
func TestKeptBatchesChangeNothing(t *testing.T) {
	for name, c := range corpora {
		t.Run(name, func(t *testing.T) {
			fsys, want := c.build(t), c.rows("train")
			for _, max := range []int64{0, 300, 20_000, 1 << 30} {
				spare := newRoom(max)
				d := openDataset(t, fsys, shard.ReaderOptions{MaxOpenShards: 3, MaxOffsetBytes: 1 << 20})
				d.KeepBatches(spare)
				r := split(t, d, "train")
				var row shard.Row
				for range 3 {
					checkSpans(t, r, want)
					for i, e := range want {
						if err := r.ReadRow(int64(i), &row); err != nil {
							t.Fatal(err)
						}
						if want, got := normal(e), toExample(&row); !reflect.DeepEqual(want, got) {
							t.Fatalf("row %d of a dataset with %d spare bytes: %s", i, max, cmp.Diff(want, got))
						}
					}
				}
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				if left := spare.taken.Load(); left != 0 {
					t.Errorf("%d bytes of %d not returned", left, max)
				}
			}
		})
	}
}

// TestKeptBatchesAreNotReadAgain counts the operations of reading rows again and again.
func TestKeptBatchesAreNotReadAgain(t *testing.T) {
	fsys := allCols.build(t)
	d := openDataset(t, fsys, shard.ReaderOptions{})
	spare := newRoom(1 << 30)
	d.KeepBatches(spare)
	r := split(t, d, "train")
	pass := func() int { return opsOfRows(t, fsys, r) }
	first := pass()
	for passes := 0; pass() > 0; passes++ {
		if passes == first {
			t.Fatalf("after %d passes of at most %d operations not all rows are in memory", passes, first)
		}
	}
	all := spare.taken.Load()
	spare.max.Store(0) // as a ledger that somebody needs
	if given := d.GiveBack(1); given < 1 || given == all || spare.taken.Load() != all-given {
		t.Errorf("gave back %d of %d bytes, want one batch, and %d are left", given, all, spare.taken.Load())
	}
	some := pass()
	if given := d.GiveBack(all); given == 0 || d.GiveBack(1) != 0 {
		t.Errorf("gave back %d bytes, and more after all", given)
	}
	if n := pass(); some == 0 || n <= some {
		t.Errorf("%d operations without any batch, %d without one", n, some)
	}
	spare.max.Store(1 << 30)
	for passes := 0; pass() > 0; passes++ {
		if passes == first {
			t.Fatalf("after %d passes not all rows are in memory again", passes)
		}
	}
	d.DropBatches()
	if left := spare.taken.Load(); left != 0 {
		t.Errorf("%d bytes not returned", left)
	}
	if n := pass(); n == 0 {
		t.Error("rows are still in memory")
	}
	if took := spare.taken.Load(); took != 0 {
		t.Errorf("%d bytes taken after DropBatches", took)
	}
}

// TestSpareMemoryKeepsShardsOpen reads all rows with room for a few open shards and spare memory for none, some and
// all of the others, until that ends.
func TestSpareMemoryKeepsShardsOpen(t *testing.T) {
	const few = 3
	fsys := allCols.build(t)
	for _, c := range []struct {
		spare     int64
		some, all bool
	}{{1000, false, false}, {8 << 10, true, false}, {1 << 30, true, true}} {
		d := openDataset(t, fsys, shard.ReaderOptions{MaxOpenShards: few, MaxIndexBytes: 100})
		spare := newRoom(c.spare)
		d.KeepBatches(spare)
		r := split(t, d, "train")
		opsOfRows(t, fsys, r)
		n, shards := fsys.OpenFiles(), r.NumShards()
		if n > few != c.some || n >= shards != c.all {
			t.Errorf("%d of %d shards are open with %d spare bytes", n, shards, c.spare)
		}
		d.DropBatches()
		for range 2 { // reading opens no more again
			if n := fsys.OpenFiles(); n > few {
				t.Errorf("%d shards are open without spare memory, limit %d", n, few)
			}
			if left := spare.taken.Load(); left != 0 {
				t.Errorf("%d bytes of %d not returned", left, c.spare)
			}
			opsOfRows(t, fsys, r)
		}
		if err := d.Close(); err != nil || fsys.OpenFiles() != 0 {
			t.Errorf("close: %v, %d files left open", err, fsys.OpenFiles())
		}
	}
}

// TestWrongSpansOfKeptBatches reads spans of which only the first lies in a record batch.
func TestWrongSpansOfKeptBatches(t *testing.T) {
	fsys := plain.build(t)
	d := openDataset(t, fsys, shard.ReaderOptions{})
	d.KeepBatches(newRoom(1 << 30))
	r := split(t, d, "train")
	for opsOfRows(t, fsys, r) > 0 {
	}
	good := make([]shard.Span, 1)
	if err := r.Locate(good, []int64{0}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []shard.Span{
		{Off: good[0].Off, Len: -1}, {Off: -64, Len: 1}, {Off: 1 << 40, Len: 1}, {Off: good[0].Off, Len: 1 << 30},
		{Off: good[0].Off, Len: 1, Shard: 1 << 20}, {Off: good[0].Off, Len: 1, Shard: -1},
	} {
		if _, err := r.AppendIDs(nil, []shard.Span{good[0], bad}); !errors.Is(err, shard.ErrRange) {
			t.Errorf("span %+v: %v", bad, err)
		}
	}
}

// TestDropBatchesWhileReading drops record batches under readers, with few open shards.
func TestDropBatchesWhileReading(t *testing.T) {
	c := allCols
	fsys, want := c.build(t), c.rows("train")
	for round := range 10 {
		d := openDataset(t, fsys, shard.ReaderOptions{MaxOpenShards: 2, MaxIndexBytes: 64})
		spare := newRoom(1 << 30)
		d.KeepBatches(spare)
		r := split(t, d, "train")
		var readers sync.WaitGroup
		start := make(chan struct{})
		for g := range 4 {
			readers.Go(func() {
				readAtRandom(t, r, want, rand.New(rand.NewPCG(uint64(g), uint64(round))), 60, func(n int) {
					if n == 10 && g == 0 {
						close(start)
					}
				})
			})
		}
		<-start
		for range 100 {
			d.GiveBack(500)
		}
		d.DropBatches()
		spare.max.Store(0) // as a ledger, which gives nothing more once it took memory back
		readers.Wait()
		if left := spare.taken.Load(); left != 0 {
			t.Errorf("round %d: %d bytes not returned", round, left)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
