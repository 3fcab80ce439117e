package report

import (
	"github.com/dsload/dsload/internal/fault"
)

// LineStats describes the documents that are lines of text because no format was given. It shows readers of
// the summary what a document is.
type LineStats struct {
	Documents int64 `json:"documents"`
	Tokens    int64 `json:"tokens"`
	Bytes     int64 `json:"bytes"`
	// Before are the rows of train and val, in this part of the build, before those of the first line.
	Before [2]int64 `json:"before,omitzero"`
}

// Add adds what another part of the build counted.
func (l *LineStats) Add(other LineStats) {
	l.Documents += other.Documents
	l.Tokens += other.Tokens
	l.Bytes += other.Bytes
}

// Notes returns a sentence on how long the lines are, nothing if there are none.
func (l *LineStats) Notes() []fault.Text {
	if l.Documents == 0 {
		return nil
	}
	n := float64(l.Documents)
	return []fault.Text{fault.Textf("a line of text is a document: %.1f tokens, %.0f bytes of text on average; "+
		"{format} document makes one of a whole file", float64(l.Tokens)/n, float64(l.Bytes)/n)}
}
