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
	// Ahead has a large input read ahead by other goroutines. It then takes more CPU time, and less time.
	Ahead bool
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

// A Tally adds up what was counted of a set's inputs, in their order. Its position is that of a
// Reader that has read them all.
type Tally struct {
	set    *Set
	r      *Reader
	unread map[int]bool // the lines of Set.Known of which an input was not read
}

// Tally returns a Tally at the beginning of the set.
func (s *Set) Tally() (*Tally, error) {
	r, err := s.Reader(Position{})
	if err != nil {
		return nil, err
	}
	return &Tally{set: s, r: r, unread: map[int]bool{}}, nil
}

// Add adds the next input.
func (t *Tally) Add(c *Counted) (err error) {
	r := t.r
	if r.in, err = t.set.inputForCount(r.at.Input); err != nil {
		return err
	}
	if c.Spans == nil && r.in.Synth == nil {
		t.unread[len(r.at.Done)] = true
	}
	r.at.Ordinal += c.Documents
	r.noteTrailing(c.trailing)
	return r.leaveInput(c.done, r.at.Members.plus(c.members))
}

// Position returns the position after the inputs that were added.
func (t *Tally) Position() Position { return t.r.at }

// Unread reports whether an input of the i-th line of Set.Known was not read, so that its checksum is
// not known.
func (t *Tally) Unread(i int) bool { return t.unread[i] }

// Close returns cause.NoDocuments, as an error about the set, where all that was added holds none.
func (t *Tally) Close() error {
	if t.r.at.Ordinal == 0 && t.set.only == nil {
		return t.set.noDocuments(t.r.at.Members)
	}
	return nil
}
