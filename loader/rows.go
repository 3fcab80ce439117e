package loader

import (
	"cmp"
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
	rows  []int64      // of a run of items of one part, for a call to shard
	spans []shard.Span // of the step's items
	known [2]places    // rows whose lengths the sampler asked for, the latest first
	read  func(dst []byte) ([]byte, error)
	row   shard.Row
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
	const item, rowAndSpan = 32, 8 + 16
	n := rows*(item+rowAndSpan) + longestRun*rowAndSpan
	if s.needs != 0 { // one row at a time, which may be all of the tokens
		n += tokens / max(rows, 1) * 16
	}
	if byTokens {
		n += (rows + 512) * (item + 4 + 2*placedBytes)
	}
	if bucket > 0 {
		n += sampler.WindowBytes(bucket) + int64(bucket)*2*placedBytes
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
	if err := s.locate(items); err != nil {
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

// locate finds the places of the step's items: among those that are known, else in the shards.
func (s *rowStream) locate(items []sampler.Item) error {
	if len(s.known[0].places) > 0 {
		missing := false
		for i, it := range items {
			var found bool
			if s.spans[i], found = s.known[0].find(it); !found {
				if s.spans[i], found = s.known[1].find(it); !found {
					missing = true
					break
				}
			}
		}
		if !missing {
			return nil
		}
	}
	for i := 0; i < len(items); {
		s.rows = s.rows[:0]
		n := 0
		for ; i+n < len(items) && items[i+n].Source == items[i].Source; n++ {
			s.rows = append(s.rows, items[i+n].Row)
		}
		if err := s.parts[items[i].Source].split.Locate(s.spans[i:i+n], s.rows); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// lengths is the sampler's LengthsFunc. What it finds is kept until the rows are read: a row whose place is known costs one read instead of two.
func (s *rowStream) lengths(items []sampler.Item, out []int32) error {
	s.known[0], s.known[1] = s.known[1], s.known[0]
	known := &s.known[0]
	known.reset(len(items))
	for i, it := range items {
		known.add(it, i)
	}
	if err := known.locate(s.parts); err != nil {
		known.reset(0)
		return err
	}
	for _, p := range known.places {
		out[p.at] = p.span.Len
	}
	return nil
}

// places are rows whose place in the shards is known, in the order of source and row.
type places struct {
	places []placed
	rows   []int64 // scratch for a run
	spans  []shard.Span
}

type placed struct {
	row    int64
	source int32
	at     int32 // in the items that were asked for
	span   shard.Span
}

// placedBytes is what a row takes in places, scratch apart.
const placedBytes = 32

func (p *places) reset(n int) { p.places = slices.Grow(p.places[:0], n) }

func (p *places) add(it sampler.Item, at int) {
	p.places = append(p.places, placed{row: it.Row, source: it.Source, at: int32(at)})
}

func comparePlaced(a, b placed) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.row, b.row))
}

const (
	// fillGap is how many rows between two wanted ones are located along with them: decoding some offsets costs less than another read.
	fillGap = 64
	// longestRun bounds the rows that are located at once.
	longestRun = 1024
)

// locate sorts the rows and finds their places, neighbours in one read.
func (p *places) locate(parts []part) error {
	slices.SortFunc(p.places, comparePlaced)
	for todo := p.places; len(todo) > 0; {
		first, n := todo[0], 1
		for n < len(todo) && todo[n].source == first.source && todo[n].row-todo[n-1].row <= fillGap && todo[n].row-first.row < longestRun {
			n++
		}
		p.rows = p.rows[:0]
		for row := first.row; row <= todo[n-1].row; row++ {
			p.rows = append(p.rows, row)
		}
		p.spans = slices.Grow(p.spans[:0], len(p.rows))[:len(p.rows)]
		if err := parts[first.source].split.Locate(p.spans, p.rows); err != nil {
			return err
		}
		for i := range todo[:n] {
			todo[i].span = p.spans[todo[i].row-first.row]
		}
		todo = todo[n:]
	}
	return nil
}

// find is the place of a row, if it is known.
func (p *places) find(it sampler.Item) (shard.Span, bool) {
	i, found := slices.BinarySearchFunc(p.places, placed{row: it.Row, source: it.Source}, comparePlaced)
	if !found {
		return shard.Span{}, false
	}
	return p.places[i].span, true
}
