package loader

import (
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/arrowipc"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
)

// A Batch is one training batch: rows of tokens, padded to one length. The caller owns it.
//
// A column of shape (Rows, Length) has the element j of row i at index i*Length + j.
type Batch struct {
	// Rows is the number of rows, at least 1.
	Rows int
	// Length is the number of elements of a padded row.
	Length int
	// LabelLength is that of Labels, which differs from Length where rows have targets of their own.
	LabelLength int

	// InputIDs are the token ids, padded with the tokenizer's padding token, else its end token, else 0. Its
	// shape is (Rows, Length).
	InputIDs []int64
	// AttentionMask is 1 on tokens and 0 on padding. Its shape is (Rows, Length).
	AttentionMask []int64
	// Labels are what a model is to predict: the ids, or the targets of rows that have them; -100 where no loss
	// counts. Its shape is (Rows, LabelLength); nil with labels=none.
	Labels []int64
	// PositionIDs are the positions in the documents of packed rows. Its shape is (Rows, Length); nil where rows
	// are not packed.
	PositionIDs []int64
	// Segments are the numbers of the documents in packed rows, from 1; 0 on padding. Its shape is (Rows,
	// Length); nil where rows are not packed.
	Segments []int64

	// Lengths are the tokens of each row before padding. Its shape is (Rows).
	Lengths []int64
	// Examples are the rows' numbers in the split; -1 for a filler, which carries no loss. Its shape is (Rows).
	Examples []int64
	// Positions are the rows' places in the order, which counts on through all epochs; -1 for a filler. Its
	// shape is (Rows).
	Positions []int64
	// Datasets are the indexes of the rows' datasets in a mix. Its shape is (Rows); nil where one dataset is
	// served and the query has no sources=yes.
	Datasets []int64
	// Sources are the indexes of the rows' sources among those of the manifests' splits, of all datasets one after
	// another. Its shape is (Rows); nil without sources=yes.
	Sources []int64
	// Next is the start of the step after this one: a query with start=Next continues there.
	Next int64
}

// collated returns a batch as a folder's rows make it.
func collated(b *collate.Batch, o *feed.Opening) *Batch {
	padded := func(c collate.Column) []int64 {
		if !b.Has(c) {
			return nil
		}
		raw := make([]byte, 8*b.Rows()*b.Length(c))
		b.Fill(raw, c, 8, 0)
		return arrowipc.Ints(raw, arrowipc.Int64)
	}
	plain := func(of func(i int) int64) []int64 {
		out := make([]int64, b.Rows())
		for i := range out {
			out[i] = of(i)
		}
		return out
	}
	out := &Batch{
		Rows: b.Rows(), Length: b.Length(collate.InputIDs), InputIDs: padded(collate.InputIDs),
		AttentionMask: padded(collate.AttentionMask), Labels: padded(collate.LabelIDs),
		PositionIDs: padded(collate.PositionIDs), Segments: padded(collate.SegmentIDs),
		Lengths:  plain(func(i int) int64 { return int64(b.RowLength(i)) }),
		Examples: plain(b.Example), Positions: plain(b.Position), Next: b.Next,
	}
	out.LabelLength = len(out.Labels) / out.Rows
	if o.Mixed || o.Sources {
		out.Datasets = plain(func(i int) int64 { return int64(b.SourceOf(i)) })
	}
	if o.Sources {
		out.Sources = plain(func(i int) int64 { return int64(b.OriginOf(i)) })
	}
	return out
}

// received returns the batch of some rows that r has read from a feed.
func received(r *arrowipc.Reader, rows int, q feed.Query) (*Batch, error) {
	out := &Batch{Rows: rows}
	var next []int64
	columns := map[string]*[]int64{
		"input_ids": &out.InputIDs, "attention_mask": &out.AttentionMask, "labels": &out.Labels,
		"position_ids": &out.PositionIDs, "segments": &out.Segments, "length": &out.Lengths, "example": &out.Examples,
		"row": &out.Positions, "next": &next, "dataset": &out.Datasets, "source": &out.Sources,
	}
	for i, f := range r.Fields {
		if column := columns[f.Name]; column != nil { // a later version may have more
			*column = r.Values(i)
		}
	}
	if len(next) != rows || len(out.Lengths) != rows || len(out.Positions) != rows || out.InputIDs == nil {
		return nil, fmt.Errorf("%w: columns of a batch are missing", arrowipc.ErrCorrupt)
	}
	out.Length, out.Next = len(out.InputIDs)/rows, next[0]
	if err := out.complete(q); err != nil {
		return nil, err
	}
	if len(out.AttentionMask) != len(out.InputIDs) {
		return nil, fmt.Errorf("%w: columns of a batch differ in length", arrowipc.ErrCorrupt)
	}
	out.LabelLength = len(out.Labels) / rows
	return out, nil
}

// complete adds the columns that a batch with wire=narrow leaves out, because they follow from others.
func (b *Batch) complete(q feed.Query) error {
	noMask, noLabels := b.AttentionMask == nil, b.Labels == nil && q.Labels != collate.NoLabels
	if noMask {
		b.AttentionMask = make([]int64, len(b.InputIDs))
	}
	if noLabels {
		b.Labels = slices.Clone(b.InputIDs)
	}
	for i, tokens := range b.Lengths {
		if tokens < 0 || tokens > int64(b.Length) {
			return fmt.Errorf("%w: a row of %d tokens in a batch of length %d", arrowipc.ErrCorrupt, tokens, b.Length)
		}
		from, end := i*b.Length, i*b.Length+int(tokens) // of the tokens
		if q.Left {
			from, end = (i+1)*b.Length-int(tokens), (i+1)*b.Length
		}
		if noMask {
			setAll(b.AttentionMask[from:end], 1)
		}
		if noLabels && b.Positions[i] < 0 {
			end = from // a filler has no labels
		}
		if noLabels {
			setAll(b.Labels[i*b.Length:from], collate.Ignored)
			setAll(b.Labels[end:(i+1)*b.Length], collate.Ignored)
		}
	}
	return nil
}

// setAll sets every element of s to v.
func setAll(s []int64, v int64) {
	for i := range s {
		s[i] = v
	}
}
