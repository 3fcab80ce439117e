package build

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader/internal/budget"
)

// A Monitor shows a build to another goroutine while it runs, such as one that draws a page. The
// zero Monitor shows nothing until a build that has it in its Options begins.
type Monitor struct{ build atomic.Pointer[build] }

// Details is a build as a Monitor shows it. Counters are totals over all runs.
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
	Durable     int64 // examples in the last checkpoint
	Rejected    int64
	Rejects     []Reject // the first of them
	Replaced    int64
	LeftOut     map[string]int64 // documents by the reason why they were left out
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

// SourceState is where a source stands.
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

// watched is what the flusher shows to a Monitor.
type watched struct {
	phase, input, train, val, rejected, replaced, durable atomic.Int64

	checkpoints, checkpointAt atomic.Int64
	since                     atomic.Int64 // when the pipeline began, Unix nanoseconds
	shards                    [2]atomic.Int64
	formats                   map[string]int

	mu      sync.Mutex
	rejects []reject // shared with the cursor, which only appends
	leftOut map[string]int64
}

// leaveOut sets how many documents were left out for a reason. The caller holds mu.
func (w *watched) leaveOut(reason string, n int64) {
	if n == 0 {
		return
	}
	if w.leftOut == nil {
		w.leftOut = map[string]int64{}
	}
	w.leftOut[reason] = n
}

// note publishes that a checkpoint was taken.
func (w *watched) note(examples int64) {
	w.durable.Store(examples)
	w.checkpoints.Add(1)
	w.checkpointAt.Store(time.Now().UnixNano())
}

// watch attaches the build to its monitor.
func (b *build) watch() {
	if b.opts.Monitor != nil {
		b.watched.formats = b.formats()
		b.opts.Monitor.build.Store(b)
	}
}

// show publishes the flusher's state to the monitor.
func (f *flusher) show() {
	w, s := &f.b.watched, &f.state
	w.phase.Store(int64(s.Phase))
	w.input.Store(int64(s.Input))
	w.train.Store(s.Train)
	w.val.Store(s.Val)
	w.rejected.Store(s.Rejected)
	w.replaced.Store(s.Replaced)
	if f.b.opts.Monitor == nil {
		return
	}
	for i, name := range []string{splitTrain, splitVal} {
		w.shards[i].Store(int64(f.builder.NumShards(name)))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rejects = s.Rejects
	for name, n := range map[string]int64{"copies of held-out documents": s.Copies,
		"longer than the longest row": f.cutter.Dropped(),
		"empty":                       f.cutter.Empty()} {
		w.leaveOut(name, n)
	}
	for reason, n := range s.DroppedBy {
		w.leaveOut(string(reason), n)
	}
}

// Details returns the state of the build; ok is false before it has one. Safe for concurrent use.
func (m *Monitor) Details() (d Details, ok bool) {
	b := m.build.Load()
	if b == nil {
		return d, false
	}
	w := &b.watched
	d.Progress = b.progress(false)
	d.Tokenizer = b.tokenizer.Name()
	d.Toward = b.toward(d.Progress)
	d.Ledger, d.Leased = b.plan.Parts, max(0, b.ledger.Used()-b.ledger.Cap()+b.ledger.Free())
	d.Formats = w.formats
	for i, name := range []string{splitTrain, splitVal} {
		split := SplitSummary{Name: name, Examples: [2]int64{w.train.Load(), w.val.Load()}[i],
			Shards: int(w.shards[i].Load())}
		if i == 0 || split.Examples > 0 {
			d.Splits = append(d.Splits, split)
		}
	}
	d.Checkpoints, d.Durable, d.Rejected, d.Replaced = w.checkpoints.Load(), w.durable.Load(), w.rejected.Load(),
		w.replaced.Load()
	if at := w.checkpointAt.Load(); at != 0 {
		d.Checkpoint = time.Unix(0, at)
	}
	w.mu.Lock()
	d.Rejects = w.rejects
	d.LeftOut = make(map[string]int64, len(w.leftOut))
	for name, n := range w.leftOut {
		d.LeftOut[name] = n
	}
	w.mu.Unlock()
	d.Stages = b.stages()
	b.addSources(&d)
	return d, true
}

func (b *build) stages() Stages {
	s := Stages{Workers: b.opts.Workers}
	since := b.watched.since.Load()
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
func (b *build) addSources(d *Details) {
	phase, current := int(b.watched.phase.Load()), int(b.watched.input.Load())
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
