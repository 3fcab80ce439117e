package ingest

import (
	"fmt"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/ingest/filter"
)

// A plan holds a line for each input and each partition, and writes them as one document.
const (
	// planLineBytes bounds what a line takes: the values, and the text of several stages of writing.
	planLineBytes = 2 << 10
	// copiesShare is the part of the cap that the lists of copies may take.
	copiesShare = 16
)

func (s *scan) memory() (heldOut int64, why string, more []budget.Share) {
	o, inputs := &s.b.opts, 0
	for _, p := range s.b.Phases {
		inputs += p.Set.Len()
	}
	more = append(more, budget.Share{Name: "plan", Bytes: int64(inputs+s.partitions) * planLineBytes,
		Why: fmt.Sprintf("a line for each of %d inputs and %d partitions", inputs, s.partitions)})
	if o.Dedup != filter.None {
		more = append(more, budget.Share{Name: "copies", Bytes: o.Memory / copiesShare,
			Why: "lists of the documents that are left out as copies"})
	}
	heldOut, why, _ = s.whole.memory()
	return heldOut, why, more
}
