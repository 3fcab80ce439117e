package build

import (
	"fmt"

	"github.com/dsload/dsload/loader/build/shape"
	"github.com/dsload/dsload/loader/build/source"
	"github.com/dsload/dsload/loader/internal/budget"
)

// A plan holds a line for each input and each partition, and writes them as one document.
const (
	// planLineBytes bounds what a line takes: the values, and the text of several stages of writing.
	planLineBytes = 2 << 10
	// copiesShare is the part of the cap that the lists of copies may take.
	copiesShare = 16
)

// planParts returns the parts of the memory cap that the plan itself takes, none for a build without one.
func planParts(o *Options, phases []phase) (parts []budget.Part) {
	if o.Partition != nil {
		return []budget.Part{{Name: "plan", Bytes: o.Partition.Plan.bytes(),
			Why: fmt.Sprintf("what the plan says about partition %d", o.Partition.Number)}}
	}
	if o.partitions == 0 {
		return nil
	}
	inputs := 0
	for _, p := range phases {
		inputs += p.set.Len()
	}
	parts = append(parts, budget.Part{Name: "plan", Bytes: int64(inputs+o.partitions) * planLineBytes,
		Why: fmt.Sprintf("a line for each of %d inputs and %d partitions", inputs, o.partitions)})
	if o.Dedup != shape.None {
		parts = append(parts, budget.Part{Name: "copies", Bytes: o.Memory / copiesShare,
			Why: "lists of the documents that are left out as copies"})
	}
	return parts
}

// countReaders returns how many inputs can be counted at once in the free bytes.
func countReaders(o *Options, phases []phase, free int64) int {
	each := sourceBytes(phases) + 2*source.CountBytes
	return int(max(1, min(int64(o.Workers), free/each)))
}
