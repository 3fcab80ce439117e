package dataset

import (
	"fmt"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// Example is a row. The Builder copies what it appends.
type Example struct {
	InputIDs []uint32 // below Schema.VocabSize
	Labels   []uint32 // target ids, of any length; only if Schema.Labels
	LossMask []bool   // for each input id, whether the loss counts it; only if Schema.LossMask
	// Segments are the positive lengths of the documents in a packed row, which add up to its length;
	// only if Schema.Segments.
	Segments []int32
	Document int64 // ordinal of the document in the corpus
	Part     int32 // the chunk of the document
}

// fits returns an error if e does not fit the schema. Ids are checked later, where they are
// copied.
func (e *Example) fits(s shard.Schema) error {
	switch {
	case len(e.InputIDs) == 0:
		return fmt.Errorf("%w: no input_ids", shard.ErrSchema)
	case s.Labels != (e.Labels != nil):
		return fmt.Errorf("%w: labels", shard.ErrSchema)
	case s.LossMask != (e.LossMask != nil), s.LossMask && len(e.LossMask) != len(e.InputIDs):
		return fmt.Errorf("%w: loss_mask has %d values for %d input_ids", shard.ErrSchema, len(e.LossMask), len(e.InputIDs))
	case s.Segments != (e.Segments != nil):
		return fmt.Errorf("%w: segments", shard.ErrSchema)
	case e.Document < 0 || e.Part < 0:
		return fmt.Errorf("%w: document %d, part %d", shard.ErrRange, e.Document, e.Part)
	}
	if s.Segments {
		if err := shardfile.CheckSegments(e.Segments, len(e.InputIDs)); err != nil {
			return err
		}
	}
	return nil
}
