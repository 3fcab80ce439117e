package shard

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// checkWorkers is the maximum number of goroutines that check the record batches of one read.
	checkWorkers = maxChecks / 2
	// fewChecks is the number of record batches below which a goroutine more does not pay.
	fewChecks = 4
)

// checkAhead compares the record batches of spans that nobody has compared yet, several at once. Whoever reads a
// span compares its batch too, and reports what is wrong with it. The first rows of a dataset lie in record
// batches that all have to be read whole, so comparing these takes most of the time to the first batch.
func (r *Split) checkAhead(spans []Span) {
	if len(spans) < fewChecks || r.states.all == nil {
		return
	}
	unchecked := 0
	for i := range spans {
		if r.isUnchecked(&spans[i]) {
			unchecked++
		}
	}
	if unchecked < fewChecks {
		return
	}
	workers := min(runtime.GOMAXPROCS(0), checkWorkers, unchecked/(fewChecks/2)) // it takes a lock, so it comes late
	if workers == 1 {
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(spans)); i = next.Add(1) - 1 {
			if r.isUnchecked(&spans[i]) && !r.check(&spans[i]) {
				return
			}
		}
	}
	for range workers - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

// isUnchecked reports whether a span begins in a record batch that was not compared yet, of an open shard.
func (r *Split) isUnchecked(p *Span) bool {
	if p.Shard < 0 || int(p.Shard) >= len(r.states.all) {
		return false
	}
	s := &r.states.all[p.Shard]
	if s.checked.todo.Load() == 0 {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.file != nil && !s.checked.has(batchAt(s.index, p.Off))
}

// check compares the record batch in which a span begins, and returns whether it is as it should be.
func (r *Split) check(p *Span) bool {
	s, err := r.acquire(int(p.Shard))
	if err != nil {
		return false
	}
	defer s.mu.RUnlock()
	return r.d.checkSpan(s, p.Off, p.Off+1) == nil
}
