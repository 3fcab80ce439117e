package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/page"
)

// Figures that the page of a build draws over time.
const (
	figureText = iota // bytes a second
	figureTokens
	figureResident
	figureJobs
	numBuildFigures
)

const (
	// pageConns is the maximum number of connections to the page of a build.
	pageConns = 16
	// pageConnBytes is the maximum memory of a connection: its stack, the buffers of net/http, the
	// header, and the kernel's buffers.
	pageConnBytes = 64 << 10
	// pageBytes is the memory of a build's page.
	pageBytes = pageConns*(pageConnBytes+page.ViewerBytes) + 1<<20
	// pageGrace is how long a build that has ended waits for open pages to learn of it.
	pageGrace = 2 * time.Second

	// Rates are averages over rateSpan. The time left is computed from the last leftSpan, and shown
	// once leftAfter has passed.
	rateSpan  = 5 * time.Second
	leftSpan  = 30 * time.Second
	leftAfter = 5 * time.Second
	// mostNotices is the maximum number of the build's messages that the page shows.
	mostNotices = 50
)

// buildPage is the live page of a build.
type buildPage struct {
	monitor *ingest.Monitor
	name    string
	out     string
	limits  ingest.Options
	live    *page.Live
	server  *page.Server
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	notices []string
	ended   *buildEnd

	// Used by the sampler alone.
	past []buildSample
}

// buildEnd is how a build ended.
type buildEnd struct {
	phase, message string
	summary        *ingest.Summary
}

// buildSample is the state of a build's counters at one moment.
type buildSample struct {
	at                           time.Time
	text, tokens, examples       int64
	fraction                     float64
	sourceBytes                  int64
	reading, tokenizing, writing time.Duration
}

// listenPage opens the live page at an address and attaches it to the build. Only this
// machine may read it: a build has neither certificate nor token.
func listenPage(addr string, o *ingest.Options) (*buildPage, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--http %s: %v; write HOST:PORT, such as 127.0.0.1:8080", addr, err)
	}
	if !isLoopback(host) {
		return nil, usagef("--http %s: others could read this address, and the page asks for no password; "+
			"give 127.0.0.1:PORT, and reach it from elsewhere with 'ssh -L PORT:127.0.0.1:PORT HOST'", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w; give another port, or 127.0.0.1:0 for any that is free", addr, err)
	}
	p := &buildPage{monitor: new(ingest.Monitor), out: placeOf(o.Out), limits: *o, done: make(chan struct{})}
	p.name = filepath.Base(p.out)
	o.Monitor = p.monitor
	p.live = page.NewLive(page.Figures{Columns: numBuildFigures, Sample: p.sample, State: p.state})
	p.server = page.NewServer(l, "build", p.live, pageConns)
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(p.done)
		p.live.Run(ctx)
	}()
	return p, nil
}

// placeOf returns the absolute path of a folder. It returns an address unchanged.
func placeOf(out string) string {
	if strings.Contains(out, "://") {
		return out
	}
	abs, err := filepath.Abs(out)
	if err != nil {
		return out
	}
	return abs
}

// URL returns the address of the page.
func (p *buildPage) URL() string { return "http://" + p.server.Addr().String() + "/" }

// notice shows a message of the build.
func (p *buildPage) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notices = append(p.notices, text)
	p.notices = p.notices[max(0, len(p.notices)-mostNotices):]
}

// end shows on open pages how the build ended, and closes the server.
func (p *buildPage) end(s *ingest.Summary, err error) error {
	e := &buildEnd{phase: "done", summary: s}
	if err != nil {
		e.phase, e.message = "failed", errorLine(err)
		if exitCode(err) == exitInterrupted {
			e.phase = "interrupted"
		}
	}
	p.cancel()
	<-p.done
	p.mu.Lock()
	p.ended = e
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), pageGrace)
	defer cancel()
	p.live.End(ctx)
	return p.server.Close(ctx)
}

// sample is page.Figures.Sample.
func (p *buildPage) sample(now time.Time, values []float32, _ func(int)) {
	d, ok := p.monitor.Details()
	if !ok {
		return
	}
	p.past = append(p.past, buildSample{at: now, text: d.TextBytes, tokens: d.Tokens, examples: d.Examples,
		fraction:    d.Fraction,
		sourceBytes: d.SourceBytes, reading: d.Stages.Reading, tokenizing: d.Stages.Tokenizing,
		writing: d.Stages.Writing})
	if extra := len(p.past) - int(leftSpan/time.Second) - 1; extra > 0 {
		p.past = slices.Delete(p.past, 0, extra)
	}
	if d.Memory > 0 {
		values[figureResident] = float32(d.Memory)
	}
	values[figureJobs] = float32(d.Leased)
	if from, to, ok := p.since(rateSpan); ok {
		s := to.at.Sub(from.at).Seconds()
		values[figureText], values[figureTokens] = float32(float64(to.text-from.text)/s),
			float32(float64(to.tokens-from.tokens)/s)
	}
}

// since returns the latest sample and the oldest one at most span before it. ok is false if they
// are the same.
func (p *buildPage) since(span time.Duration) (from, to buildSample, ok bool) {
	if len(p.past) < 2 {
		return from, to, false
	}
	to = p.past[len(p.past)-1]
	for _, from = range p.past {
		if to.at.Sub(from.at) <= span+500*time.Millisecond {
			break
		}
	}
	return from, to, to.at.After(from.at)
}

// buildState is what the page shows besides its charts.
type buildState struct {
	Phase     string `json:"phase"` // preparing, running, done, failed, interrupted
	Message   string `json:"message,omitempty"`
	Name      string `json:"name"`
	Out       string `json:"out"`
	Tokenizer string `json:"tokenizer,omitempty"`
	Format    string `json:"format,omitempty"`

	ingest.Totals
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
	Parts       []partState   `json:"parts"`
	Stages      []stageState  `json:"stages"`
	Splits      []splitState  `json:"splits"`
	Counts      []countState  `json:"counts"`
	Notices     []string      `json:"notices"`

	Checkpoints        int64           `json:"checkpoints"`
	CheckpointAge      float64         `json:"checkpoint_age"`
	CheckpointExamples int64           `json:"checkpoint_examples"`
	Rejects            []ingest.Reject `json:"rejects"`
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

type partState struct {
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
		MaxLength: p.limits.MaxLength,
		MemoryCap: p.limits.Memory}
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
func (p *buildPage) fill(s *buildState, d *ingest.Details, now time.Time) {
	seconds := d.Elapsed.Seconds()
	s.Seconds, s.Tokenizer, s.Totals = &seconds, d.Tokenizer, d.Totals
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
		s.Parts = append(s.Parts, partState{part.Name, part.Bytes})
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
	leftOut := ingest.LeftOut(d.Totals.Counts)
	for _, name := range slices.Sorted(maps.Keys(leftOut)) {
		s.Counts = append(s.Counts, countState{"left out: " + name, leftOut[name]})
	}
	s.Rejects = slices.Clone(d.Rejects)
}

// left returns the remaining time in seconds, estimated from the progress of the last leftSpan, or
// nil if there was none.
func (p *buildPage) left(d *ingest.Details) *float64 {
	from, to, ok := p.since(leftSpan)
	if !ok || d.Elapsed < leftAfter || to.fraction <= from.fraction || to.fraction >= 1 {
		return nil
	}
	left := (1 - to.fraction) * to.at.Sub(from.at).Seconds() / (to.fraction - from.fraction)
	return &left
}

func (p *buildPage) source(d *ingest.SourceProgress) sourceState {
	s := sourceState{Index: d.Index, URI: d.URI, Bytes: d.Bytes, Read: d.Read, State: string(d.State)}
	if d.Bytes > 0 && d.State == ingest.SourceReading {
		share := min(1, float64(d.Read)/float64(d.Bytes))
		s.Share = &share
		if from, to, ok := p.since(leftSpan); ok && to.sourceBytes > from.sourceBytes &&
			to.at.Sub(from.at) >= leftAfter-time.Second {
			left := float64(max(0, d.Bytes-d.Read)) * to.at.Sub(from.at).Seconds() /
				float64(to.sourceBytes-from.sourceBytes)
			s.Left = &left
		}
	}
	return s
}

// busyEnough is the share of the time that a stage must be busy to be shown as the build's limit.
const busyEnough = 0.6

// fillStages sets how busy each stage was in the last seconds, and which one limits the build.
func (p *buildPage) fillStages(s *buildState, d *ingest.Details) {
	s.Stages = []stageState{{Name: "reading"}, {Name: "tokenizing"}, {Name: "writing"}}
	from, to, ok := p.since(rateSpan)
	if !ok {
		return
	}
	elapsed := to.at.Sub(from.at)
	most := busyEnough
	for i, busy := range []time.Duration{to.reading - from.reading,
		(to.tokenizing - from.tokenizing) / time.Duration(max(1, d.Stages.Workers)), to.writing - from.writing} {
		share := math.Min(1, math.Max(0, float64(busy)/float64(elapsed)))
		s.Stages[i].Busy = &share
		if share > most {
			most, s.Limited = share, s.Stages[i].Name
		}
	}
}

// fillSummary sets the fields that are known only when a build has ended.
func (s *buildState) fillSummary(sum *ingest.Summary) {
	one := 1.0
	s.Fraction, s.Seconds, s.Splits = &one, &sum.Seconds, nil
	s.Examples, s.Tokens = 0, 0
	for i := range sum.Splits {
		split := &sum.Splits[i]
		s.Splits = append(s.Splits, splitState{split.Name, split.Examples, &split.Tokens, split.Shards})
		s.Examples += split.Examples
		s.Tokens += split.Tokens
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

// runBuildWithPage runs a build, with its live page if it has one.
func runBuildWithPage(ctx context.Context, o ingest.Options, p *buildPage) (*ingest.Summary, error) {
	summary, err := ingest.Run(ctx, o)
	if summary != nil {
		summaryForPeople(summary)
	}
	if p == nil {
		return summary, err
	}
	if closeErr := p.end(summary, err); closeErr != nil && !errors.Is(closeErr, http.ErrServerClosed) &&
		!errors.Is(closeErr, context.DeadlineExceeded) {
		err = errors.Join(err, closeErr)
	}
	return summary, err
}

// openPage opens the live page, if one is asked for, and prints its address.
func (f *buildFlags) openPage(o *ingest.Options, stderr io.Writer) (*buildPage, error) {
	if f.http == "" {
		return nil, nil
	}
	p, err := listenPage(f.http, o)
	if err != nil {
		return nil, err
	}
	say := o.Notice
	o.Notice = func(text fault.Text) {
		p.notice(text.In(flagName))
		if say != nil {
			say(text)
		}
	}
	where := "live page: " + p.URL()
	if say != nil {
		say(fault.Plain(where))
	} else {
		fmt.Fprintln(stderr, where)
	}
	return p, nil
}
