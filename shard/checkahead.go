package shard

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
)

const (
	// checkWorkers is the maximum number of goroutines that check the record batches of one read.
	checkWorkers = maxChecks / 2
	// fewChecks is the number of record batches below which a goroutine more does not pay.
	fewChecks = 4
)

// appendAtOnce is appendBytes by several goroutines where many record batches were not compared yet. The first rows of
// a dataset lie in record batches that all have to be read whole, so these take most of the time to the first batch.
func (r *Split) appendAtOnce(dst []byte, spans []Span) ([]byte, error) {
	workers, longest, size := r.checkers(spans), max(r.info.MaxLength, r.info.MaxLabels), 0
	for i := 0; i < len(spans) && workers > 1; i++ {
		if size += int(spans[i].Len) * int(r.width); spans[i].Len < 0 || int64(spans[i].Len) > longest {
			workers = 1
		}
	}
	if workers == 1 {
		return r.appendBytes(dst, spans)
	}
	at, n := len(dst), len(spans)
	whole := slices.Grow(dst, size)[:at+size]
	var errs [checkWorkers]error
	var group sync.WaitGroup
	for i := range workers {
		own := spans[i*n/workers : (i+1)*n/workers]
		place := whole[at:at]
		for _, p := range own {
			at += int(p.Len) * int(r.width)
		}
		group.Go(func() { _, errs[i] = r.appendBytes(place, own) })
	}
	group.Wait()
	if cmp.Or(errs[:]...) != nil {
		return r.appendBytes(dst, spans) // rows before an error are returned
	}
	return whole, nil
}

// checkers returns how many goroutines are to read spans. Each has a shard open.
func (r *Split) checkers(spans []Span) int {
	if len(spans) < fewChecks || r.states.all == nil {
		return 1
	}
	const each = fewChecks / 2 // batches of a goroutine
	unchecked, before := 0, -1
	for i := 0; i < len(spans) && unchecked < checkWorkers*each; i++ {
		batch := r.unchecked(&spans[i])
		if batch >= 0 && (batch != before || spans[i].Shard != spans[i-1].Shard) {
			unchecked++
		}
		before = batch
	}
	if unchecked < fewChecks {
		return 1
	}
	// GOMAXPROCS takes a lock, so it comes late.
	return min(checkWorkers, unchecked/each, r.d.pool.maxOpen, runtime.GOMAXPROCS(0))
}

// unchecked returns the record batch in which a span begins if it was not compared yet and its shard is open, else -1.
func (r *Split) unchecked(p *Span) int {
	if p.Shard < 0 || int(p.Shard) >= len(r.states.all) {
		return -1
	}
	s := &r.states.all[p.Shard]
	if s.checked.todo.Load() == 0 {
		return -1
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.file == nil {
		return -1
	}
	if batch := batchAt(s.index, p.Off); !s.checked.has(batch) {
		return batch
	}
	return -1
}
