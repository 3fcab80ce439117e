package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/ingest/report"
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
	// pageGrace is how long a build that has ended waits until open pages show that.
	pageGrace = 2 * time.Second

	// Rates are averages over rateSpan. The time left is computed from the last leftSpan, and shown
	// once leftAfter has passed.
	rateSpan  = 5 * time.Second
	leftSpan  = 30 * time.Second
	leftAfter = 5 * time.Second
	// maxNotices is the maximum number of the build's messages that the page shows.
	maxNotices = 50
)

// buildPage is the live page of a build.
type buildPage struct {
	monitor *report.Monitor
	name    string
	out     string
	limits  option.Options
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
	summary        *report.Summary
}

// buildSample is the state of a build's counters at one moment.
type buildSample struct {
	at           time.Time
	text, tokens int64
	fraction     float64
	sourceBytes  int64
	stages       report.Stages
}

// listenPage opens the live page at an address and attaches it to the build. Only this
// machine may read it: a build has neither certificate nor token.
func listenPage(addr string, o *option.Options) (*buildPage, error) {
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
	p := &buildPage{monitor: new(report.Monitor), out: absOut(o.Out), limits: *o, done: make(chan struct{})}
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

// absOut returns the absolute path of a folder. It returns an address unchanged.
func absOut(out string) string {
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

// end shows on open pages how the build ended, and closes the server.
func (p *buildPage) end(s *report.Summary, err error) error {
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
	p.past = append(p.past, buildSample{at: now, text: d.TextBytes, tokens: d.Tokens,
		fraction: d.Fraction, sourceBytes: d.SourceBytes, stages: d.Stages})
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

// runBuildWithPage runs a build, with its live page if it has one.
func runBuildWithPage(ctx context.Context, o option.Options, of *plan.Chosen, p *buildPage) (*report.Summary,
	error) {
	summary, err := ingest.RunPartition(ctx, o, of)
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
func (f *buildFlags) openPage(o *option.Options, stderr io.Writer) (*buildPage, error) {
	if f.http == "" {
		return nil, nil
	}
	p, err := listenPage(f.http, o)
	if err != nil {
		return nil, err
	}
	say := o.Notice
	o.Notice = func(text fault.Text) {
		p.mu.Lock()
		p.notices = append(p.notices, text.In(flagName))
		p.notices = p.notices[max(0, len(p.notices)-maxNotices):]
		p.mu.Unlock()
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
