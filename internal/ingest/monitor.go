package ingest

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/resident"
)

// maxSourcesShown is how many sources Details lists.
const maxSourcesShown = 6

// waits is how long each stage has waited for the others.
type waits struct{ reader, mapping, workers, flusher job.Waiting }

// show shows the flusher's state to reports.
func (f *flusher) show() {
	s := &f.state
	now := snapshot{Totals: s.Totals, phase: s.Phase, input: s.Input, rejects: slices.Clone(s.Bad.List),
		checkpoints: f.checkpoints}
	for i := range splits {
		if f.shards != nil {
			now.shards[i] = f.shards(splits[i])
		}
	}
	f.b.meter.sourceBytes.Store(s.SourceBytes)
	f.b.meter.show(now)
}

// details returns the state of the build. Safe for concurrent use.
func (b *build) details() (d report.Details) {
	now := b.meter.read()
	d.Progress = b.progress(false)
	d.Tokenizer = b.Tokenizer.Name()
	d.Toward, _ = b.toward(&d.Progress)
	d.Ledger, d.Leased = b.Memory.Shares, max(0, b.Ledger.Used()-b.Ledger.Cap()+b.Ledger.Free())
	d.Formats = b.meter.formats
	for i, n := range [...]int64{now.Train, now.Val} {
		if i == 0 || n > 0 {
			d.Splits = append(d.Splits, report.SplitSummary{Name: splits[i], Examples: n, Shards: now.shards[i]})
		}
	}
	d.Checkpoints, d.Durable, d.Checkpoint = now.checkpoints.count, now.checkpoints.examples, now.checkpoints.at
	d.Rejects = now.rejects
	d.Stages = b.stages()
	b.addSources(&d, now.phase, now.input)
	return d
}

func (b *build) stages() report.Stages {
	s := report.Stages{Workers: b.opts.Workers}
	since := b.meter.began.Load()
	if since == 0 {
		return s
	}
	s.Elapsed = max(0, time.Since(time.Unix(0, since)))
	busy := func(w *job.Waiting, goroutines int) time.Duration {
		return max(0, time.Duration(goroutines)*s.Elapsed-w.Time())
	}
	s.Reading, s.Writing = busy(&b.waits.reader, 1), busy(&b.waits.flusher, 1)
	s.Mapping = b.waits.mapping.Time() // part of the reader's time
	s.Reading = max(0, s.Reading-s.Mapping)
	s.Tokenizing = busy(&b.waits.workers, b.opts.Workers)
	return s
}

// toward returns how far the build is to the nearest budget, or to the end of the sources, and names that; negative
// if that is unknown.
func (b *build) toward(p *report.Progress) (name fault.Text, fraction float64) {
	fraction = -1
	for _, c := range []struct {
		name       fault.Text
		have, want int64
	}{
		{fault.Plain("the sources"), p.SourceBytes, p.TotalBytes},
		{fault.Textf("{max-examples}"), p.Examples, budgetSum(b.opts.MaxExamples, b.opts.MaxValExamples)},
		{fault.Textf("{max-bytes}"), p.TextBytes, b.opts.MaxBytes},
		{fault.Textf("{max-tokens}"), p.Tokens, b.opts.MaxTokens},
	} {
		if c.want > 0 && float64(c.have)/float64(c.want) > fraction {
			name, fraction = c.name, float64(c.have)/float64(c.want)
		}
	}
	return name, min(1, fraction)
}

// addSources lists the sources around the current one.
func (b *build) addSources(d *report.Details, phase, current int) {
	if phase >= len(b.Phases) {
		phase, current = len(b.Phases)-1, b.Phases[len(b.Phases)-1].Set.Len()
	}
	set := b.Phases[phase].Set
	d.TotalSources = set.Len()
	d.FirstSource = max(0, min(current-maxSourcesShown/3, d.TotalSources-maxSourcesShown))
	before, known := set.BytesBefore(current)
	for i := d.FirstSource; i < d.TotalSources && len(d.Sources) < maxSourcesShown; i++ {
		in, listed := set.Listed(i)
		if !listed {
			break
		}
		s := report.SourceProgress{Index: i, URI: in.URI, Bytes: in.Size,
			State: report.SourceWaiting}
		switch {
		case i < current:
			s.State, s.Read = report.SourceRead, in.Size
		case i == current:
			s.State = report.SourceReading
			if known {
				s.Read = max(0, d.SourceBytes-before)
			}
		}
		d.Sources = append(d.Sources, s)
	}
}

// meter is what reports read while the pipeline runs.
type meter struct {
	sourceBytes, totalBytes atomic.Int64
	began                   atomic.Int64 // when the pipeline began, Unix nanoseconds
	resumed                 report.Totals
	start                   time.Time
	formats                 map[string]int // inputs by their format

	mu     sync.Mutex
	latest snapshot
}

// snapshot is what the flusher shows of itself, copied at the end of each job.
type snapshot struct {
	report.Totals
	phase, input int
	shards       [2]int
	rejects      []report.Reject
	checkpoints  checkpoints
}

// checkpoints describes the checkpoints of this run.
type checkpoints struct {
	count, examples int64
	at              time.Time // when the last was taken
}

func (m *meter) show(s snapshot) {
	s.Totals.Counts = s.Totals.Counts.Clone()
	m.mu.Lock()
	m.latest = s
	m.mu.Unlock()
}

func (m *meter) read() snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
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
	_, p.Fraction = b.toward(&p)
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
