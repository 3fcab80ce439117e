package serve

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/radix"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
)

// locations are rows whose spans in the shards are known, sorted by source and row.
type locations struct {
	found []location
	keys  []uint64 // scratch for sorting
	parts [locateWorkers]locatePart
}

// locatePart is the scratch of a goroutine that locates a part of the rows.
type locatePart struct {
	rows  []int64
	spans []shard.Span
}

type location struct {
	row    int64
	source int32
	index  int32 // in the items that were asked for
	span   shard.Span
}

// locationBytes is the size of a location and its key.
const locationBytes = 32 + 8

func (p *locations) reset(n int) { p.found = slices.Grow(p.found[:0], n) }

func (p *locations) add(it sampler.Item, index int) {
	p.found = append(p.found, location{row: it.Row, source: it.Source, index: int32(index)})
}

func compareLocations(a, b location) int {
	if a.source != b.source {
		return cmp.Compare(a.source, b.source)
	}
	return cmp.Compare(a.row, b.row)
}

const (
	// longestRun is the maximum number of rows that a goroutine locates at once.
	longestRun = 256
	// locateWorkers is the maximum number of goroutines that locate rows, from manyLocations rows on.
	locateWorkers = 4
	manyLocations = 2048
	// locateBytes is the memory of their scratch.
	locateBytes = locateWorkers * longestRun * (8 + 16)
)

// locate sorts the rows and finds their spans, those of a record batch in one read. Only the rows'
// order depends on these spans before AppendIDs reads them and compares their record batches. The rows of a window
// are spread over the whole dataset, so several goroutines wait for its pages together.
func (p *locations) locate(members []member) error {
	p.sort(len(members))
	return p.locateSorted(members)
}

func (p *locations) locateSorted(members []member) error {
	n := len(p.found)
	if n < manyLocations {
		return p.parts[0].locate(members, p.found)
	}
	workers := min(runtime.GOMAXPROCS(0), locateWorkers)
	var errs [locateWorkers]error
	var group sync.WaitGroup
	locate := func(i int) { errs[i] = p.parts[i].locate(members, p.found[i*n/workers:(i+1)*n/workers]) }
	for i := range workers - 1 {
		group.Go(func() { locate(i) })
	}
	locate(workers - 1)
	group.Wait()
	return cmp.Or(errs[:]...) // the first rows come first
}

// locate finds the spans of sorted rows.
func (p *locatePart) locate(members []member, todo []location) error {
	for len(todo) > 0 {
		n := 0
		for p.rows = p.rows[:0]; n < min(len(todo), longestRun) && todo[n].source == todo[0].source; n++ {
			p.rows = append(p.rows, todo[n].row)
		}
		p.spans = slices.Grow(p.spans[:0], n)[:n]
		if err := members[todo[0].source].split.LocateUnchecked(p.spans, p.rows); err != nil {
			return err
		}
		for i, span := range p.spans {
			todo[i].span = span
		}
		todo = todo[n:]
	}
	return nil
}

// sort sorts the locations of rows of the given number of sources.
func (p *locations) sort(sources int) {
	const indexBits = 20
	mostKeys, mostRow := 1<<indexBits, int64(1)<<(63-indexBits)
	if sources > 1 || len(p.found) > mostKeys ||
		slices.ContainsFunc(p.found, func(l location) bool { return l.row >= mostRow }) {
		slices.SortFunc(p.found, compareLocations)
		return
	}
	// A number that says it all sorts several times as fast.
	p.keys = slices.Grow(p.keys[:0], len(p.found))
	for _, l := range p.found {
		p.keys = append(p.keys, uint64(l.row)<<indexBits|uint64(l.index))
	}
	radix.Sort(p.keys)
	for i, k := range p.keys {
		p.found[i] = location{row: int64(k >> indexBits), index: int32(k & (1<<indexBits - 1))}
	}
}

// find returns the span of a row, if it is known.
func (p *locations) find(it sampler.Item) (shard.Span, bool) {
	i, found := slices.BinarySearchFunc(p.found, location{row: it.Row, source: it.Source}, compareLocations)
	if !found {
		return shard.Span{}, false
	}
	return p.found[i].span, true
}
