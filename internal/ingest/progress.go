package ingest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/resident"
)

// meter is what reports read while the pipeline runs.
type meter struct {
	sourceBytes, totalBytes atomic.Int64
	began                   atomic.Int64 // when the pipeline began, Unix nanoseconds
	resumed                 report.Totals
	start                   time.Time
	formats                 map[string]int // of the inputs

	mu    sync.Mutex
	shown shown
}

// shown is what the flusher shows of itself, copied at the end of each job.
type shown struct {
	report.Totals
	phase, input int
	shards       [2]int
	rejects      []report.Reject
	saved        saved
}

// saved describes the checkpoints of this run.
type saved struct {
	count, examples int64
	at              time.Time // of the last
}

func (m *meter) show(s shown) {
	s.Totals.Counts = s.Totals.Counts.Clone()
	m.mu.Lock()
	m.shown = s
	m.mu.Unlock()
}

func (m *meter) read() shown {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown
}

const reportInterval = 200 * time.Millisecond

// report calls progress until stop is called; stop makes the last call, with Done set, and returns
// after it.
func (b *build) report(progress func(report.Progress)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(reportInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				progress(b.progress(false))
			case <-done:
				progress(b.progress(true))
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

func (b *build) progress(done bool) report.Progress {
	m := &b.meter
	p := report.Progress{
		Totals:      m.read().Totals,
		SourceBytes: m.sourceBytes.Load(), TotalBytes: m.totalBytes.Load(),
		Elapsed: b.elapsed(), Resumed: m.resumed, Memory: resident.Bytes(), CapBytes: b.opts.Memory, Done: done,
	}
	p.Fraction = -1
	toward := func(have, want int64) {
		if want > 0 {
			p.Fraction = max(p.Fraction, min(1, float64(have)/float64(want)))
		}
	}
	toward(p.SourceBytes, p.TotalBytes)
	toward(p.Examples, budgetSum(b.opts.MaxExamples, b.opts.MaxValExamples))
	toward(p.TextBytes, b.opts.MaxBytes)
	toward(p.Tokens, b.opts.MaxTokens)
	return p
}

// elapsed is the time since the build began, never negative: a clock without a monotonic reading
// may have been set back.
func (b *build) elapsed() time.Duration { return max(0, b.opts.Now().Sub(b.meter.start)) }

// budgetSum adds the example budgets of both splits; without one for training there is none.
func budgetSum(train, val int64) int64 {
	if train == 0 {
		return 0
	}
	return train + val
}
