package source

import (
	"slices"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
)

// Counted is what a plan needs to know about an input.
type Counted struct {
	Documents int64
	// Marks are the first places between two documents at or after the wanted offsets, except any
	// after the last document. Their ordinals count from the input's first document.
	Marks []Mark
	// Spans are the stretches between the marks; nil where the input was not read.
	Spans []Span
	// Tail is the checksum of the end of a file of columns.
	Tail checksum.Sum

	done     Finished
	trailing *Trailing
	members  *Members
}

// dropLast leaves out the marks at the end of the input: nothing comes after them.
func (c *Counted) dropLast(size int64) {
	for n := len(c.Marks); n > 0 && c.Marks[n-1].Offset >= size; n-- {
		c.Marks = c.Marks[:n-1]
	}
	if n := len(c.Spans); n > 1 && c.Spans[n-1].From >= size {
		c.Spans = c.Spans[:n-1]
	}
}

// CountOptions says what Count should find.
type CountOptions struct {
	// Cuts are the offsets near which marks are wanted. They rise.
	Cuts []int64
	// Buffer is CountBytes long.
	Buffer []byte
	// Progress is called with numbers of stored bytes that were read, or need not be.
	Progress func(n int64)
}

// CountBytes is the buffer of Count.
const CountBytes = 1 << 20

// A cutting holds the cuts of an input for which no mark was found yet.
type cutting struct {
	cuts []int64 // without a mark yet
	size int64   // bytes of the input
}

func newCutting(in *Input, cuts []int64) *cutting {
	return &cutting{cuts: slices.Clone(cuts), size: max(in.Size, in.textBytes)}
}

// due reports whether a mark is wanted at an offset, or before.
func (c *cutting) due(offset int64) bool { return len(c.cuts) > 0 && offset >= c.cuts[0] }

// taken notes a mark. If it lies after the next cuts too, these are spread over the rest of the
// input.
func (c *cutting) taken(offset int64) {
	c.cuts = c.cuts[1:]
	if n := int64(len(c.cuts)); n > 0 && c.cuts[0] <= offset {
		for i := range c.cuts {
			c.cuts[i] = offset + max(0, c.size-offset)*int64(i+1)/(n+1) + 1
		}
	}
}
