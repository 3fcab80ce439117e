package report

import (
	"cmp"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/units"
)

// LineStats describes the documents that are lines of text because no format was given. It shows readers of
// the summary what a document is.
type LineStats struct {
	Documents int64 `json:"documents"`
	Tokens    int64 `json:"tokens"`
	Bytes     int64 `json:"bytes"`
	// texts, files or members of archives, whose lines look like parts of documents
	Wrapped int64  `json:"wrapped,omitempty"`
	First   string `json:"first,omitempty"` // of them
	// Before are the rows of train and val, in this part of the build, before those of the first line.
	Before [2]int64 `json:"before,omitzero"`
}

// Add adds what another part of the build counted.
func (l *LineStats) Add(other LineStats) {
	l.Documents += other.Documents
	l.Tokens += other.Tokens
	l.Bytes += other.Bytes
	l.Wrapped += other.Wrapped
	l.First = cmp.Or(l.First, other.First)
}

// Notes returns sentences on how long lines are, and which texts are better taken whole.
func (l *LineStats) Notes() (notes []fault.Text) {
	if n := float64(l.Documents); n > 0 {
		notes = append(notes, fault.Textf("a line of text is a document: %.1f tokens, %.0f bytes of text on average",
			float64(l.Tokens)/n, float64(l.Bytes)/n))
	}
	switch {
	case l.Wrapped == 1:
		notes = append(notes, fault.Textf("%s looks wrapped: its lines are parts of a longer document, "+
			"and {format} document takes it whole", l.First))
	case l.Wrapped > 1:
		notes = append(notes,
			fault.Textf("%s texts look wrapped, the first of them %s: their lines are parts of longer "+
				"documents, and {format} document takes a file whole", units.Count(l.Wrapped), l.First))
	}
	return notes
}
