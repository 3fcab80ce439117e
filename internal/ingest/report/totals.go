package report

import (
	"time"

	"github.com/dsload/dsload/internal/counts"
)

// Totals are what a build has counted and written, over all its runs.
type Totals struct {
	counts.Counts
	Examples int64 `json:"examples"` // written, all splits
	Tokens   int64 `json:"tokens"`   // written, labels included
	Train    int64 `json:"train"`    // examples
	Val      int64 `json:"val"`
}

// Progress is how far a build is.
type Progress struct {
	Totals

	SourceBytes int64 // bytes of the sources read, as stored
	TotalBytes  int64 // bytes of all sources, 0 if unknown
	// Fraction of the way to the nearest budget or to the end of the sources, from 0 to 1; negative
	// if unknown.
	Fraction float64

	Elapsed  time.Duration // of this run
	Resumed  Totals        // what earlier runs of the same build had done
	Memory   int64         // resident bytes of the process now, 0 if the system has no figure
	CapBytes int64         // the memory cap
	Done     bool          // the last report of a run
}
