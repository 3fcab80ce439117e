package loader

import (
	"context"
	"slices"

	"github.com/dsload/dsload/loader/collate"
	"github.com/dsload/dsload/loader/sampler"
	"github.com/dsload/dsload/shard"
)

// rowStream reads the rows of each step into a batch: the sampler says which, the shards have them. It belongs to one goroutine.
type rowStream struct {
	parts []part
	needs shard.Columns // besides input_ids
	order *sampler.Order
	steps *sampler.Steps

	step  sampler.Batch
	rows  []int64      // of one part, for a call to shard
	at    []int        // their places in the step
	spans []shard.Span // of the step's items
	read  func(dst []byte) ([]byte, error)
	row   shard.Row
	lens  []int32
}

// neededColumns are the columns that the batches are made of, input_ids apart.
func neededColumns(s shard.Schema, o collate.Options) (c shard.Columns) {
	if o.Labels == collate.Seq2Seq && s.Labels {
		c |= shard.ColumnLabels
	}
	if o.Labels == collate.Causal && s.LossMask {
		c |= shard.ColumnLossMask
	}
	if s.Segments {
		c |= shard.ColumnSegments
	}
	return c
}

// bytes is what the stream holds while it runs, for steps of so many rows and tokens: the sampler's windows, the places of a step's rows, and
// a row that is read by columns.
func (s *rowStream) bytes(bucket int, byTokens bool, rows, tokens int64) int64 {
	const item, place, span = 32, 16, 16
	n := rows * (item + place + span)
	if s.needs != 0 { // one row at a time, which may be all of the tokens
		n += tokens / max(rows, 1) * 16
	}
	if byTokens {
		n += (rows + 512) * (item + place + 4)
	}
	if bucket > 0 {
		n += sampler.WindowBytes(bucket) + int64(bucket)*place
	}
	if len(s.parts) > 1 {
		n += 16 << 10
	}
	return n
}

// Close gives nothing back: files belong to the Reader.
func (s *rowStream) Close() {}

// Next reads the next step's rows.
func (s *rowStream) Next(ctx context.Context, b *collate.Batch) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := s.steps.Next(&s.step); err != nil {
		return err
	}
	read := s.readIDs
	if s.needs != 0 {
		read = s.readColumns
	}
	if err := read(b); err != nil {
		return err
	}
	b.Next = s.step.Next
	return b.Close()
}

// readIDs reads rows that are made of input_ids alone: where they lie first, then all of them.
func (s *rowStream) readIDs(b *collate.Batch) error {
	items := s.step.Items
	s.spans = slices.Grow(s.spans[:0], len(items))[:len(items)]
	if err := s.byPart(items, func(p *part, at []int, rows []int64) error {
		if len(s.parts) == 1 {
			return p.split.Locate(s.spans, rows)
		}
		for i := range rows {
			if err := p.split.Locate(s.spans[at[i]:at[i]+1], rows[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if s.read == nil {
		s.read = s.appendSpans // once: a method value allocates
	}
	if err := b.Read(s.read); err != nil {
		return err
	}
	for i, it := range items {
		if err := b.Add(collate.Row{Read: int(s.spans[i].Len), Source: it.Source, Example: it.Row, Position: it.Position}); err != nil {
			return err
		}
	}
	return nil
}

// appendSpans appends the ids of the step's items.
func (s *rowStream) appendSpans(dst []byte) (_ []byte, err error) {
	if len(s.parts) == 1 {
		return s.parts[0].split.AppendIDs(dst, s.spans)
	}
	for i, it := range s.step.Items {
		if dst, err = s.parts[it.Source].split.AppendIDs(dst, s.spans[i:i+1]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// readColumns reads rows that have labels, a loss mask or segments, one by one.
func (s *rowStream) readColumns(b *collate.Batch) error {
	for _, it := range s.step.Items {
		if err := s.parts[it.Source].split.ReadColumns(it.Row, s.needs, &s.row); err != nil {
			return err
		}
		r := collate.Row{
			IDs: s.row.InputIDs, Labels: s.row.Labels, Segments: s.row.Segments, Source: it.Source, Example: it.Row, Position: it.Position,
		}
		if s.needs&shard.ColumnLossMask != 0 {
			r.LossMask = s.row.LossMask
		}
		if err := b.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// byPart calls read once for each part that items have rows of.
func (s *rowStream) byPart(items []sampler.Item, read func(p *part, at []int, rows []int64) error) error {
	for i := range s.parts {
		s.rows, s.at = s.rows[:0], s.at[:0]
		for j, it := range items {
			if int(it.Source) == i {
				s.rows, s.at = append(s.rows, it.Row), append(s.at, j)
			}
		}
		if len(s.rows) == 0 {
			continue
		}
		if err := read(&s.parts[i], s.at, s.rows); err != nil {
			return err
		}
	}
	return nil
}

// lengths is the sampler's LengthsFunc.
func (s *rowStream) lengths(items []sampler.Item, out []int32) error {
	return s.byPart(items, func(p *part, at []int, rows []int64) error {
		if len(s.parts) == 1 {
			return p.split.Lengths(out, rows)
		}
		s.lens = slices.Grow(s.lens[:0], len(rows))[:len(rows)]
		if err := p.split.Lengths(s.lens, rows); err != nil {
			return err
		}
		for i, n := range s.lens {
			out[at[i]] = n
		}
		return nil
	})
}
