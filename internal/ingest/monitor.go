package ingest

import (
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
)

// A Monitor shows a build to another goroutine while it runs, such as one that draws a page. The
// zero Monitor shows nothing until a build that has it in its Options begins.
type Monitor struct{ build atomic.Pointer[build] }

// Details is a build as a Monitor shows it.
type Details struct {
	Progress
	Tokenizer string
	Toward    fault.Text // the option, or "the sources", whose end Fraction counts toward
	Ledger    []budget.Part
	Leased    int64 // bytes of jobs in flight
	Stages    Stages
	Splits    []SplitSummary

	Sources      []SourceProgress // those around the current one, at most maxSourcesShown
	FirstSource  int              // the index of the first of them among all
	TotalSources int
	Formats      map[string]int

	Checkpoints int64 // of this run
	Checkpoint  time.Time
	Durable     int64    // examples in the last checkpoint
	Rejects     []Reject // the first of those counted
}

// Reject is a record that was left out.
type Reject = reject

// SourceProgress is how far a source is read.
type SourceProgress struct {
	Index  int
	URI    string
	Format string
	Bytes  int64 // as stored, -1 if unknown
	Read   int64
	State  SourceState
}

// SourceState is how far a source is.
type SourceState string

// The values of SourceState.
const (
	SourceRead    SourceState = "done"
	SourceReading SourceState = "reading"
	SourceWaiting SourceState = "waiting"
)

// Stages is how long each stage of the build has been at work, summed over its goroutines: the time
// that it did not wait for another stage.
type Stages struct {
	Elapsed                      time.Duration
	Reading, Tokenizing, Writing time.Duration
	Workers                      int // that tokenize
}

// maxSourcesShown is how many sources Details lists.
const maxSourcesShown = 6

// waits is how long the stages have waited for each other, in nanoseconds.
type waits struct{ reader, workers, flusher atomic.Int64 }

// waited adds the time since start to a stage's waiting.
func waited(w *atomic.Int64, start time.Time) { w.Add(int64(time.Since(start))) }

// watch attaches the build to its monitor.
func (b *build) watch() {
	if b.opts.Monitor != nil {
		b.meter.formats = b.formats()
		b.opts.Monitor.build.Store(b)
	}
}

// show shows the flusher's state to reports.
func (f *flusher) show() {
	s := &f.state
	now := shown{Totals: s.Totals, phase: s.Phase, input: s.Input, rejects: s.Rejects, saved: f.saved}
	for i, name := range splits {
		if f.builder != nil {
			now.shards[i] = f.builder.NumShards(name)
		}
	}
	f.b.meter.sourceBytes.Store(s.SourceBytes)
	f.b.meter.show(now)
}

// Details returns the state of the build; ok is false before it has one. Safe for concurrent use.
func (m *Monitor) Details() (d Details, ok bool) {
	b := m.build.Load()
	if b == nil {
		return d, false
	}
	now := b.meter.read()
	d.Progress = b.progress(false)
	d.Tokenizer = b.tokenizer.Name()
	d.Toward = b.toward(d.Progress)
	d.Ledger, d.Leased = b.plan.Parts, max(0, b.ledger.Used()-b.ledger.Cap()+b.ledger.Free())
	d.Formats = b.meter.formats
	for i, n := range [...]int64{now.Train, now.Val} {
		if i == 0 || n > 0 {
			d.Splits = append(d.Splits, SplitSummary{Name: splits[i], Examples: n, Shards: now.shards[i]})
		}
	}
	d.Checkpoints, d.Durable, d.Checkpoint, d.Rejects = now.saved.count, now.saved.examples, now.saved.at, now.rejects
	d.Stages = b.stages()
	b.addSources(&d, now.phase, now.input)
	return d, true
}

func (b *build) stages() Stages {
	s := Stages{Workers: b.opts.Workers}
	since := b.meter.began.Load()
	if since == 0 {
		return s
	}
	s.Elapsed = max(0, time.Since(time.Unix(0, since)))
	busy := func(w *atomic.Int64, goroutines int) time.Duration {
		return max(0, time.Duration(goroutines)*s.Elapsed-time.Duration(w.Load()))
	}
	s.Reading, s.Writing = busy(&b.waits.reader, 1), busy(&b.waits.flusher, 1)
	s.Tokenizing = busy(&b.waits.workers, b.opts.Workers)
	return s
}

// toward names what the fraction of p counts toward.
func (b *build) toward(p Progress) (name fault.Text) {
	best := -1.0
	for _, c := range []struct {
		name       fault.Text
		have, want int64
	}{
		{fault.Plain("the sources"), p.SourceBytes, p.TotalBytes},
		{fault.Textf("{max-examples}"), p.Examples, budgetSum(b.opts.MaxExamples, b.opts.MaxValExamples)},
		{fault.Textf("{max-bytes}"), p.TextBytes, b.opts.MaxBytes}, {fault.Textf("{max-tokens}"), p.Tokens, b.opts.MaxTokens},
	} {
		if c.want > 0 && float64(c.have)/float64(c.want) > best {
			name, best = c.name, float64(c.have)/float64(c.want)
		}
	}
	return name
}

// addSources lists the sources around the current one.
func (b *build) addSources(d *Details, phase, current int) {
	if phase >= len(b.phases) {
		phase, current = len(b.phases)-1, b.phases[len(b.phases)-1].set.Len()
	}
	set := b.phases[phase].set
	d.TotalSources = set.Len()
	d.FirstSource = max(0, min(current-maxSourcesShown/3, d.TotalSources-maxSourcesShown))
	before, known := set.BytesBefore(current)
	for i := d.FirstSource; i < d.TotalSources && len(d.Sources) < maxSourcesShown; i++ {
		in, listed := set.Listed(i)
		if !listed {
			break
		}
		s := SourceProgress{Index: i, URI: in.URI, Format: string(in.Format), Bytes: in.Size, State: SourceWaiting}
		switch {
		case i < current:
			s.State, s.Read = SourceRead, in.Size
		case i == current:
			s.State = SourceReading
			if known {
				s.Read = max(0, d.SourceBytes-before)
			}
		}
		d.Sources = append(d.Sources, s)
	}
}
