package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/ingest/report"
)

// buildState is what the page shows besides its charts.
type buildState struct {
	Phase     string `json:"phase"` // preparing, running, done, failed, interrupted
	Message   string `json:"message,omitempty"`
	Name      string `json:"name"`
	Out       string `json:"out"`
	Tokenizer string `json:"tokenizer,omitempty"`
	Format    string `json:"format,omitempty"`

	report.Totals
	Seconds     *float64 `json:"seconds"`
	MaxExamples int64    `json:"max_examples,omitempty"`
	MaxLength   int      `json:"max_length"`
	ResumedAt   int64    `json:"resumed_at,omitempty"`
	MemoryCap   int64    `json:"memory_cap"`

	Fraction *float64 `json:"fraction"`
	Left     *float64 `json:"left"` // seconds
	Toward   string   `json:"toward,omitempty"`
	Limited  string   `json:"limited,omitempty"` // the busiest stage, if it is busy enough

	Sources     []sourceState `json:"sources"`
	SourcesMore string        `json:"sources_more,omitempty"`
	Shares      []memoryShare `json:"parts"`
	Stages      []stageState  `json:"stages"`
	Splits      []splitState  `json:"splits"`
	Counts      []countState  `json:"counts"`
	Notices     []string      `json:"notices"`

	Checkpoints        int64           `json:"checkpoints"`
	CheckpointAge      float64         `json:"checkpoint_age"`
	CheckpointExamples int64           `json:"checkpoint_examples"`
	Rejects            []report.Reject `json:"rejects"`
}

type sourceState struct {
	Index int      `json:"index"`
	URI   string   `json:"uri"`
	Bytes int64    `json:"bytes"`
	Read  int64    `json:"read"`
	Share *float64 `json:"share"`
	Left  *float64 `json:"left"`
	State string   `json:"state"`
}

type memoryShare struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

type stageState struct {
	Name string   `json:"name"`
	Busy *float64 `json:"busy"`
}

type splitState struct {
	Name     string `json:"name"`
	Examples int64  `json:"examples"`
	Tokens   *int64 `json:"tokens"` // nil while they are counted for all splits together
	Shards   int    `json:"shards"`
}

type countState struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// state is page.Figures.State.
func (p *buildPage) state(now time.Time) any {
	s := &buildState{Phase: "preparing", Name: p.name, Out: p.out, MaxExamples: p.limits.MaxExamples,
		MaxLength: p.limits.MaxLength, MemoryCap: p.limits.Memory}
	p.mu.Lock()
	s.Notices = slices.Clone(p.notices)
	ended := p.ended
	p.mu.Unlock()
	if d, ok := p.monitor.Details(); ok {
		s.Phase = "running"
		p.fill(s, &d, now)
	}
	if ended != nil {
		s.Phase, s.Message, s.Left = ended.phase, ended.message, nil
		if sum := ended.summary; sum != nil {
			s.fillSummary(sum)
		}
	}
	return s
}

// fill sets the fields of a running build.
func (p *buildPage) fill(s *buildState, d *report.Details, now time.Time) {
	s.Seconds, s.Tokenizer, s.Totals = new(d.Elapsed.Seconds()), d.Tokenizer, d.Totals
	s.ResumedAt, s.MemoryCap = d.Resumed.Examples, cmp.Or(d.CapBytes, s.MemoryCap)
	for i := range d.Splits {
		s.Splits = append(s.Splits, splitState{d.Splits[i].Name, d.Splits[i].Examples, nil, d.Splits[i].Shards})
	}
	if len(d.Splits) == 1 {
		s.Splits[0].Tokens = &d.Tokens
	}
	if len(d.Formats) > 0 {
		s.Format = formats(d.Formats)
	}
	if d.Fraction >= 0 {
		s.Fraction, s.Toward = &d.Fraction, d.Toward.In(flagName)
		s.Left = p.left(d)
	}
	for _, part := range d.Ledger {
		s.Shares = append(s.Shares, memoryShare{part.Name, part.Bytes})
	}
	p.fillStages(s, d)
	for i := range d.Sources {
		s.Sources = append(s.Sources, p.source(&d.Sources[i]))
	}
	if rest := d.TotalSources - len(d.Sources); rest > 0 {
		s.SourcesMore = fmt.Sprintf("%s in all; the first of these is number %s", plural(d.TotalSources, "source"),
			formatCount(int64(d.FirstSource)+1))
	}
	s.Checkpoints, s.CheckpointExamples = d.Checkpoints, d.Durable
	if !d.Checkpoint.IsZero() {
		s.CheckpointAge = max(0, now.Sub(d.Checkpoint).Seconds())
	}
	s.Counts = append(s.Counts, countState{"checkpoints", d.Checkpoints},
		countState{"ill-formed UTF-8, replaced", d.Replaced})
	leftOut := report.LeftOut(d.Totals.Counts)
	for _, name := range slices.Sorted(maps.Keys(leftOut)) {
		s.Counts = append(s.Counts, countState{"left out: " + name, leftOut[name]})
	}
	s.Rejects = slices.Clone(d.Rejects)
}

// left returns the remaining time in seconds, estimated from the progress of the last leftSpan, or
// nil if there was none.
func (p *buildPage) left(d *report.Details) *float64 {
	from, to, ok := p.since(leftSpan)
	if !ok || d.Elapsed < leftAfter || to.fraction <= from.fraction || to.fraction >= 1 {
		return nil
	}
	return new((1 - to.fraction) * to.at.Sub(from.at).Seconds() / (to.fraction - from.fraction))
}

func (p *buildPage) source(d *report.SourceProgress) sourceState {
	s := sourceState{Index: d.Index, URI: d.URI, Bytes: d.Bytes, Read: d.Read, State: string(d.State)}
	if d.Bytes > 0 && d.State == report.SourceReading {
		s.Share = new(min(1, float64(d.Read)/float64(d.Bytes)))
		if from, to, ok := p.since(leftSpan); ok && to.sourceBytes > from.sourceBytes &&
			to.at.Sub(from.at) >= leftAfter-time.Second {
			s.Left = new(float64(max(0, d.Bytes-d.Read)) * to.at.Sub(from.at).Seconds() /
				float64(to.sourceBytes-from.sourceBytes))
		}
	}
	return s
}

// busyEnough is the share of the time that a stage must be busy to be shown as the build's limit.
const busyEnough = 0.6

// fillStages sets how busy each stage was in the last seconds, and which one limits the build.
func (p *buildPage) fillStages(s *buildState, d *report.Details) {
	s.Stages = []stageState{{Name: "reading"}, {Name: "tokenizing"}, {Name: "writing"}}
	if p.limits.Map != "" {
		s.Stages = append(s.Stages, stageState{Name: "--map"})
	}
	from, to, ok := p.since(rateSpan)
	if !ok {
		return
	}
	elapsed := to.at.Sub(from.at)
	most := busyEnough
	a, b := &from.stages, &to.stages
	for i, busy := range []time.Duration{b.Reading - a.Reading, (b.Tokenizing - a.Tokenizing) / time.Duration(max(1, d.Stages.Workers)),
		b.Writing - a.Writing, b.Mapping - a.Mapping}[:len(s.Stages)] {
		share := min(1, max(0, float64(busy)/float64(elapsed)))
		s.Stages[i].Busy = &share
		if share > most {
			most, s.Limited = share, s.Stages[i].Name
		}
	}
}

// fillSummary sets the fields that are known only when a build has ended.
func (s *buildState) fillSummary(sum *report.Summary) {
	s.Fraction, s.Seconds, s.Splits = new(1.0), &sum.Seconds, nil
	s.Examples, s.Tokens = sum.Sums()
	for i := range sum.Splits {
		split := &sum.Splits[i]
		s.Splits = append(s.Splits, splitState{split.Name, split.Examples, &split.Tokens, split.Shards})
	}
	if sum.Documents > 0 {
		s.Totals.Counts = sum.Counts
	}
	for line := range strings.Lines(describe(sum)) {
		s.Notices = append(s.Notices, strings.TrimSpace(line))
	}
	for i := range s.Sources {
		s.Sources[i].Left = nil
	}
}
