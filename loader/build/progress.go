package build

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/loader/internal/resident"
)

// Progress is where a build stands.
type Progress struct {
	Documents int64 // documents read
	Examples  int64 // examples written, all splits
	Tokens    int64 // tokens written, labels included
	TextBytes int64 // UTF-8 text tokenized

	SourceBytes int64 // bytes of the sources read, as stored
	TotalBytes  int64 // bytes of all sources, 0 if unknown
	// Fraction of the way to the nearest budget or to the end of the sources, from 0 to 1; negative
	// if unknown.
	Fraction float64

	Elapsed  time.Duration // of this run
	Resumed  Counters      // what earlier runs of the same build had done
	Memory   int64         // resident bytes of the process now, 0 if the system has no figure
	CapBytes int64         // the memory cap
	Done     bool          // the last report of a run
}

// Counters are totals over all runs of a build.
type Counters struct {
	Documents int64 `json:"documents"`
	Examples  int64 `json:"examples"`
	Tokens    int64 `json:"tokens"`
	TextBytes int64 `json:"text_bytes"`
}

// meter holds the counters that the pipeline writes and the reporter reads.
type meter struct {
	documents, examples, tokens, textBytes, sourceBytes, totalBytes atomic.Int64
	resumed                                                         Counters
	start                                                           time.Time
}

const reportInterval = 200 * time.Millisecond

// report calls progress until stop is called; stop makes the last call, with Done set, and returns
// after it.
func (b *build) report(progress func(Progress)) (stop func()) {
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

func (b *build) progress(done bool) Progress {
	m := &b.meter
	p := Progress{
		Documents: m.documents.Load(), Examples: m.examples.Load(), Tokens: m.tokens.Load(),
		TextBytes:   m.textBytes.Load(),
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
func (b *build) elapsed() time.Duration { return max(0, b.opts.clock().Sub(b.meter.start)) }

// budgetSum adds the example budgets of both splits; without one for training there is none.
func budgetSum(train, val int64) int64 {
	if train == 0 {
		return 0
	}
	return train + val
}

// publish shows the flusher's state to the reporter.
func (m *meter) publish(s *cursor) {
	m.documents.Store(s.Documents)
	m.examples.Store(s.Examples)
	m.tokens.Store(s.Tokens)
	m.textBytes.Store(s.TextBytes)
	m.sourceBytes.Store(s.SourceBytes)
}
