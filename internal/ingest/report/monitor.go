package report

import (
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
)

// A Monitor shows a build to another goroutine while it runs, such as one that draws a page. The
// zero Monitor shows nothing until a build that has it in its Options begins.
type Monitor struct {
	details atomic.Pointer[func() Details]
}

// Show makes the monitor show a build, of which details returns the state. It is called whenever somebody looks.
func (m *Monitor) Show(details func() Details) { m.details.Store(&details) }

// Details returns the state of the build; ok is false before it has one. Safe for concurrent use.
func (m *Monitor) Details() (d Details, ok bool) {
	if details := m.details.Load(); details != nil {
		return (*details)(), true
	}
	return d, false
}

// Details is a build as a Monitor shows it.
type Details struct {
	Progress
	Tokenizer string
	Toward    fault.Text // the option, or "the sources", whose end Fraction counts toward
	Ledger    []budget.Share
	Leased    int64 // bytes of jobs in flight
	Stages    Stages
	Splits    []SplitSummary

	Sources      []SourceProgress // those around the current one, a few
	FirstSource  int              // the index of the first of them among all
	TotalSources int
	Formats      map[string]int

	Checkpoints int64 // taken in this run
	Checkpoint  time.Time
	Durable     int64    // examples in the last checkpoint
	Rejects     []Reject // the first of those counted
}

// SourceProgress is how far a source is read.
type SourceProgress struct {
	Index  int
	URI    string
	Format string
	Bytes  int64 // stored size, -1 if unknown
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
	Workers                      int // how many tokenize
}
