package serve

import (
	"cmp"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/radix"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
)

// locations are rows whose spans in the shards are known, sorted by source and row.
type locations struct {
	keys    []uint64     // the source of a row, the row, and its index among those that were added
	spans   []shard.Span // the spans of the keys' rows
	scratch []uint64     // for sorting
	parts   [locateWorkers][]int64

	rowBits, indexBits int // in a key
}

// locationBytes is the size of a location.
const locationBytes = 8 + 16 + 8

// reset makes room for n rows of so many sources.
func (p *locations) reset(n, sources int) {
	p.indexBits = bits.Len(uint(n))
	p.rowBits = min(62, 64-p.indexBits-bits.Len(uint(sources-1)))
	p.keys, p.spans, p.scratch = slices.Grow(p.keys[:0], n), slices.Grow(p.spans[:0], n)[:n], slices.Grow(p.scratch[:0], n)[:n]
}

// add adds the next row.
func (p *locations) add(ref sampler.Ref) {
	p.keys = append(p.keys, (uint64(ref.Source)<<p.rowBits|uint64(ref.Row))<<p.indexBits|uint64(len(p.keys)))
}

// ref returns the row of the i-th key.
func (p *locations) ref(i int) sampler.Ref {
	k := p.keys[i] >> p.indexBits
	return sampler.Ref{Source: int32(k >> p.rowBits), Row: int64(k & (1<<p.rowBits - 1))}
}

// index returns the index of the i-th key's row among those that were added.
func (p *locations) index(i int) int { return int(p.keys[i] & (1<<p.indexBits - 1)) }

const (
	// longestRun is the maximum number of rows that a goroutine locates at once.
	longestRun = 256
	// locateWorkers is the maximum number of goroutines that locate rows, from manyLocations rows on.
	locateWorkers = 4
	manyLocations = 2048
	// locateBytes is the memory of their scratch.
	locateBytes = locateWorkers * longestRun * 8
)

// locate sorts the rows and finds their spans, those of a record batch in one read. Only the rows'
// order depends on these spans before AppendIDs reads them and compares their record batches. The rows of a window
// are spread over the whole dataset, so several goroutines wait for its pages together.
func (p *locations) locate(members []member) error {
	for _, m := range members {
		if rows := m.split.NumRows(); rows > 1<<p.rowBits {
			return fmt.Errorf("a split of %d rows is too large for windows of %d rows of %d datasets", rows, len(p.keys),
				len(members))
		}
	}
	p.sort()
	n := len(p.keys)
	if n < manyLocations {
		return p.locatePart(members, 0, 0, n)
	}
	workers := min(runtime.GOMAXPROCS(0), locateWorkers)
	var errs [locateWorkers]error
	var group sync.WaitGroup
	locate := func(i int) { errs[i] = p.locatePart(members, i, i*n/workers, (i+1)*n/workers) }
	for i := range workers - 1 {
		group.Go(func() { locate(i) })
	}
	locate(workers - 1)
	group.Wait()
	return cmp.Or(errs[:]...) // the first rows come first
}

func (p *locations) sort() { radix.Sort(p.keys, p.scratch, p.indexBits) }

// locatePart finds the spans of the sorted rows from number `from` up to end, with the scratch of a worker.
func (p *locations) locatePart(members []member, worker, from, end int) error {
	rows := slices.Grow(p.parts[worker], min(end-from, longestRun))
	p.parts[worker] = rows
	for from < end {
		first, next := p.ref(from), from
		for rows = rows[:0]; next < min(end, from+longestRun) && p.ref(next).Source == first.Source; next++ {
			rows = append(rows, p.ref(next).Row)
		}
		if err := members[first.Source].split.LocateUnchecked(p.spans[from:next], rows); err != nil {
			return err
		}
		from = next
	}
	return nil
}
