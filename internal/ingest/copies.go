package ingest

import (
	"encoding/binary"
	"fmt"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/shard"
)

// A plan lists the documents of each partition that are copies of earlier documents, in whichever
// partition those are. Each phase has a list of ordinals, as varints of the distance from the one
// before.

// copyWriter gathers the copies of the partition that is scanned.
type copyWriter struct {
	lists [2][]byte
	last  [2]int64 // ordinal + 1
}

// copy notes that a document is a copy.
func (s *scan) copy(phase int, ordinal int64) error {
	w := &s.copies
	// A growing list takes twice its size. While it is written, another copy is a third longer.
	if s.copied++; 4*s.copied > s.b.opts.Memory/copiesShare {
		return fault.Errorf("plan: %w: {dedup} leaves out more documents than there is room to list, "+
			"%d so far; raise {memory}",
			ErrMemory, s.copied)
	}
	w.lists[phase] = binary.AppendUvarint(w.lists[phase], uint64(ordinal+1-w.last[phase]))
	w.last[phase] = ordinal + 1
	return nil
}

// endCopies gives its list to the partition that ends.
func (s *scan) endCopies() {
	w := &s.copies
	part := &s.plan.Parts[len(s.plan.Parts)-1]
	for phase, list := range w.lists {
		if len(list) > 0 {
			for len(part.Copies) <= phase {
				part.Copies = append(part.Copies, nil)
			}
			part.Copies[phase] = list
		}
	}
	s.copies = copyWriter{}
}

// copyReader goes through a partition's list of copies as its documents come.
type copyReader struct {
	phase int
	begun bool
	rest  []byte
	next  int64 // the ordinal of the next copy; -1 after the last
}

// has reports whether a document is listed. Ordinals must not decrease within a phase.
func (r *copyReader) has(p *Plan, number, phase int, ordinal int64) (bool, error) {
	if !r.begun || r.phase != phase {
		*r = copyReader{phase: phase, begun: true, next: -1}
		if lists := p.part(number).Copies; phase < len(lists) {
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

func (r *copyReader) advance(last int64) error {
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
