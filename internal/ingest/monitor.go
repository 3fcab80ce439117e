package ingest

import (
	"slices"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/report"
)

// maxSourcesShown is how many sources Details lists.
const maxSourcesShown = 6

// waits is how long each stage has waited for the others.
type waits struct{ reader, workers, flusher job.Waiting }

// watch attaches the build to its monitor.
func (b *build) watch() {
	if b.opts.Monitor != nil {
		b.meter.formats = b.Formats()
		b.opts.Monitor.Show(b.details)
	}
}

// show shows the flusher's state to reports.
func (f *flusher) show() {
	s := &f.state
	now := shown{Totals: s.Totals, phase: s.Phase, input: s.Input, rejects: slices.Clone(s.Bad.List), saved: f.saved}
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
	d.Toward = b.toward(d.Progress)
	d.Ledger, d.Leased = b.Memory.Shares, max(0, b.Ledger.Used()-b.Ledger.Cap()+b.Ledger.Free())
	d.Formats = b.meter.formats
	for i, n := range [...]int64{now.Train, now.Val} {
		if i == 0 || n > 0 {
			d.Splits = append(d.Splits, report.SplitSummary{Name: splits[i], Examples: n, Shards: now.shards[i]})
		}
	}
	d.Checkpoints, d.Durable, d.Checkpoint, d.Rejects = now.saved.count, now.saved.examples, now.saved.at, now.rejects
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
	s.Tokenizing = busy(&b.waits.workers, b.opts.Workers)
	return s
}

// toward names what the fraction of p counts toward.
func (b *build) toward(p report.Progress) (name fault.Text) {
	best := -1.0
	for _, c := range []struct {
		name       fault.Text
		have, want int64
	}{
		{fault.Plain("the sources"), p.SourceBytes, p.TotalBytes},
		{fault.Textf("{max-examples}"), p.Examples, budgetSum(b.opts.MaxExamples, b.opts.MaxValExamples)},
		{fault.Textf("{max-bytes}"), p.TextBytes, b.opts.MaxBytes},
		{fault.Textf("{max-tokens}"), p.Tokens, b.opts.MaxTokens},
	} {
		if c.want > 0 && float64(c.have)/float64(c.want) > best {
			name, best = c.name, float64(c.have)/float64(c.want)
		}
	}
	return name
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
		s := report.SourceProgress{Index: i, URI: in.URI, Format: string(in.Format), Bytes: in.Size,
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
