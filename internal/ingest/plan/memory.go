package plan

import (
	"fmt"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
)

// A plan holds a line for each input and each partition, and writes them as one document.
const (
	// planLineBytes bounds what a line takes: the values, and the text of several stages of writing.
	planLineBytes = 2 << 10
	// copiesShare is the part of the cap that the lists of copies may take.
	copiesShare = 16
)

// Shares returns the shares of the memory cap that making a plan of so many inputs takes.
func Shares(o *option.Options, inputs, partitions int) []budget.Share {
	shares := []budget.Share{{Name: "plan", Bytes: int64(inputs+partitions) * planLineBytes,
		Why: fmt.Sprintf("a line for each of %d inputs and %d partitions", inputs, partitions)}}
	if o.Dedup != filter.None {
		shares = append(shares, budget.Share{Name: "copies", Bytes: o.Memory / copiesShare,
			Why: "lists of the documents that are left out as copies"})
	}
	return shares
}
