package report

import (
	"time"

	"github.com/dsload/dsload/internal/counts"
)

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
