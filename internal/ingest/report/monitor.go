package report

import (
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/counts"
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
	Index int
	URI   string
	Bytes int64 // stored size, -1 if unknown
	Read  int64
	State SourceState
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
	Mapping                      time.Duration // of the command of the option Map
	Workers                      int           // how many tokenize
}

// Totals are what a build has counted and written, over all its runs. Package loader has the same fields and
// comments as these two types.
type Totals struct {
	counts.Counts
	// Examples counts the rows written, of all splits.
	Examples int64 `json:"examples"`
	// Tokens counts the tokens written, labels included.
	Tokens int64 `json:"tokens"`
	// Train counts the rows of the split "train".
	Train int64 `json:"train"`
	// Val counts the rows of the split "val".
	Val int64 `json:"val"`
}

// Progress is how far a build is.
type Progress struct {
	Totals

	// SourceBytes is what was read of the sources, in bytes as stored.
	SourceBytes int64
	// TotalBytes is the size of all sources in bytes; 0 if unknown.
	TotalBytes int64
	// Fraction is how far the build is to the nearest budget or the end of the sources, from 0 to 1; negative
	// if unknown.
	Fraction float64

	// Elapsed is how long this run has taken.
	Elapsed time.Duration
	// Resumed is what earlier runs of the same build had done.
	Resumed Totals
	// Memory is what the process holds now, in bytes; 0 if the system has no figure.
	Memory int64
	// CapBytes is the memory cap.
	CapBytes int64
	// Done marks the last report of a run.
	Done bool
}
