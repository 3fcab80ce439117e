package plan

import (
	"encoding/binary"
	"fmt"

	"github.com/dsload/dsload/shard"
)

// A plan lists the documents of each partition that are copies of earlier documents, in whichever
// partition those are. Each phase has a list of ordinals, as varints of the distance from the one
// before.

// A CopyWriter makes the lists of one partition.
type CopyWriter struct {
	lists [2][]byte
	last  [2]int64 // ordinal + 1
}

// Add adds a document. Ordinals increase within a phase.
func (w *CopyWriter) Add(phase int, ordinal int64) {
	w.lists[phase] = binary.AppendUvarint(w.lists[phase], uint64(ordinal+1-w.last[phase]))
	w.last[phase] = ordinal + 1
}

// Lists returns the lists of the phases up to the last that has copies.
func (w *CopyWriter) Lists() (lists [][]byte) {
	for phase, list := range w.lists {
		if len(list) > 0 {
			for len(lists) <= phase {
				lists = append(lists, nil)
			}
			lists[phase] = list
		}
	}
	return lists
}

// A CopyReader goes through a partition's lists of copies as its documents come.
type CopyReader struct {
	phase int
	begun bool
	rest  []byte
	next  int64 // the ordinal of the next copy; -1 after the last
}

// Has reports whether a document is listed. Ordinals must not decrease within a phase.
func (r *CopyReader) Has(lists [][]byte, phase int, ordinal int64) (bool, error) {
	if !r.begun || r.phase != phase {
		*r = CopyReader{phase: phase, begun: true, next: -1}
		if phase < len(lists) {
			r.rest, r.next = lists[phase], 0
			if err := r.advance(-1); err != nil {
				return false, err
			}
		}
	}
	for r.next >= 0 && r.next < ordinal {
		if err := r.advance(r.next); err != nil {
			return false, err
		}
	}
	return r.next == ordinal, nil
}

func (r *CopyReader) advance(last int64) error {
	if len(r.rest) == 0 {
		r.next = -1
		return nil
	}
	step, n := binary.Uvarint(r.rest)
	if n <= 0 || step == 0 || step > 1<<62 {
		return fmt.Errorf("the plan's list of copies: %w", shard.ErrCorrupt)
	}
	r.rest, r.next = r.rest[n:], last+int64(step)
	return nil
}
