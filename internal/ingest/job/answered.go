package job

import (
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/zeebo/xxh3"
)

// Answered is the last answer that a checkpoint has used.
type Answered struct {
	Before source.Position `json:"before"` // its record, without Known and Done
	Done   int             `json:"done"`   // how many of Done that position has
	Sum    uint64          `json:"sum"`    // XXH3-64 of the answer
}

// NewAnswered notes the answer to the record after a position.
func NewAnswered(before source.Position, answer []byte) *Answered {
	a := &Answered{Before: before, Done: len(before.Done), Sum: xxh3.Hash(answer)}
	a.Before.Known, a.Before.Done = nil, nil // the position of the checkpoint has them
	return a
}

// Rewind returns the position before the record of the answer, of a checkpoint at a position.
func (a *Answered) Rewind(at source.Position) source.Position {
	before := a.Before
	before.Known, before.Done = at.Known, at.Done[:min(a.Done, len(at.Done))]
	return before
}
