package plan

import (
	"time"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
)

// Left is what a part leaves to the merge.
type Left struct {
	Counts counts.Counts    `json:"counts"` // this part alone
	Bad    report.Rejects   `json:"bad,omitzero"`
	Notes  []fault.Text     `json:"notes,omitempty"`
	Lines  report.LineStats `json:"lines,omitzero"`
	// Ordinals are those of the next document of each phase.
	Ordinals []int64   `json:"ordinals"`
	Stopped  string    `json:"stopped,omitempty"` // the budget that ended the part
	Seconds  float64   `json:"seconds"`
	Finished time.Time `json:"finished"`
	Host     string    `json:"host"`
	// Columns are the checksums of the files of columns, which the plan did not read.
	Columns []ColumnSum `json:"columns,omitempty"`
}

// ColumnSum is the checksum of what a part read of a file of columns: everything from the file's
// beginning on, or the part's groups of rows.
type ColumnSum struct {
	Phase  int            `json:"phase"`
	Input  int            `json:"input"` // in the plan
	Sum    checksum.Sum   `json:"sum,omitzero"`
	Groups []checksum.Sum `json:"groups,omitempty"`
}
