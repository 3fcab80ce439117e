package serve

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
)

// A rowStream reads the rows of each step into a batch: the sampler chooses them, the shards hold
// them. It belongs to one goroutine.
type rowStream struct {
	reader  *Reader
	members []member
	needs   shard.Columns // besides input_ids
	order   *sampler.Order
	steps   *sampler.Steps
	ahead   *prefetcher // nil if the datasets are not in a bucket

	step    sampler.Batch
	rows    []int64         // scratch: the rows of a run of items of one member
	spans   []shard.Span    // input_ids of the step's items
	more    [3][]shard.Span // their values in the columns of needs: labels, loss mask, segments
	located locations       // scratch of locate
	read    func(dst *collate.Buffers) error

	leave   func()          // see share
	stopped func() error    // the error of the context of the current call to Next
	done    <-chan struct{} // closed when that context ends
}

// Indexes of columns in rowStream.more.
const (
	moreLabels = iota
	moreLossMask
	moreSegments
)

// moreColumns are their names in shard.
var moreColumns = [3]shard.Columns{moreLabels: shard.ColumnLabels, moreLossMask: shard.ColumnLossMask,
	moreSegments: shard.ColumnSegments}

// newRowStream connects the order of rows with the splits that hold them. Errors about options come
// from the sampler.
func (r *Reader) newRowStream(c *choice) (s *rowStream, err error) {
	s = &rowStream{reader: r, members: c.members, needs: c.needs}
	s.read = s.appendColumns // once: a method value allocates
	if s.order, err = sampler.NewOrder(c.order, s.locate); err != nil {
		return nil, err
	}
	if s.steps, err = sampler.NewSteps(s.order, c.steps); err != nil {
		return nil, err
	}
	window := int64(c.order.Bucket)
	if window == 0 && (c.steps.MaxTokens > 0 || c.bound.balanced > 0) {
		window = aheadRows
	}
	s.ahead, err = r.newPrefetcher(c, window)
	return s, err
}

// bytes bounds the memory of the stream besides its batches: the sampler's windows, and the spans of a step's rows.
func (s *rowStream) bytes(c *choice) int64 {
	const item, span, rowAndSpan = 40, 16, 8 + 16
	rows, balanced, byTokens := c.bound.rows, c.bound.balanced, c.steps.MaxTokens > 0
	n := rows*(item+rowAndSpan+span*int64(bits.OnesCount8(uint8(s.needs)))) + s.ahead.bytes()
	if balanced > 0 {
		n += sampler.BalanceBytes(balanced)
		if !byTokens && c.order.Bucket == 0 {
			n += (balanced + 2*int64(c.steps.Ahead)) * (item + locationBytes)
		}
	}
	if c.order.Bucket > 0 || byTokens || balanced > 0 {
		n += locateBytes
	}
	if byTokens {
		n += (rows + 2*int64(c.steps.Ahead)) * (item + locationBytes)
	}
	if bucket := c.order.Bucket; bucket > 0 {
		n += sampler.WindowBytes(bucket) + int64(bucket)*locationBytes
	}
	if len(s.members) > 1 {
		n += 16 << 10
	}
	return n
}

// Close ends reading ahead, and leaves what it shares to other streams. The files belong to the Reader.
func (s *rowStream) Close() {
	s.ahead.close()
	if s.leave != nil {
		s.leave()
	}
}

// share makes the stream share, by with, what its steps make with others of the same rows, until leave is called.
func (s *rowStream) share(with func(*sampler.Shared, string, func(<-chan struct{}) error), leave func()) {
	var sources strings.Builder
	for _, m := range s.members {
		fmt.Fprintf(&sources, "%q %q ", m.dataset.name, m.split.Info().Name)
	}
	with(&s.reader.shared, sources.String(), func(ready <-chan struct{}) error {
		select {
		case <-ready:
			return nil
		case <-s.done:
			return s.stopped()
		}
	})
	s.leave = leave
}

// Next reads the next step's rows.
func (s *rowStream) Next(ctx context.Context, b *collate.Batch) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := s.reader.checkCurrent(); err != nil {
		return err
	}
	s.stopped, s.done = ctx.Err, ctx.Done()
	if s.leave == nil {
		s.share(s.steps.Share, s.steps.Release)
	}
	s.ahead.reached(s.steps.Position())
	if err := s.steps.Next(&s.step); err != nil {
		return s.reader.explain(s.noStep(err))
	}
	if err := s.readRows(b); err != nil {
		return s.reader.explain(err)
	}
	b.Next = s.step.Next
	return b.Seal()
}

// noStep converts the reason why there is no step to an error for the client.
func (s *rowStream) noStep(err error) error {
	if empty, ok := errors.AsType[*sampler.EmptyEpochError](err); ok {
		return feed.BadParam("world", empty.Error(),
			"ask for a smaller batch_size or world, or for tail=once, which serves every row")
	}
	return err
}

// readRows reads the step's rows: first their spans, then one column of all of them after another.
func (s *rowStream) readRows(b *collate.Batch) error {
	items := s.step.Items
	s.spans = slices.Grow(s.spans[:0], len(items))[:len(items)]
	if err := s.spansOf(items); err != nil {
		return err
	}
	for i, c := range moreColumns {
		if s.needs&c == 0 {
			continue
		}
		s.more[i] = slices.Grow(s.more[i][:0], len(items))[:len(items)]
		if err := s.locateColumn(items, c, s.more[i]); err != nil {
			return err
		}
	}
	if err := b.Read(s.read); err != nil {
		return err
	}
	for i, it := range items {
		n := collate.Counts{IDs: int(s.spans[i].Len), LossMask: s.needs&shard.ColumnLossMask != 0}
		if s.needs&shard.ColumnLabels != 0 {
			n.Labels = int(s.more[moreLabels][i].Len)
		}
		if s.needs&shard.ColumnSegments != 0 {
			n.Segments = int(s.more[moreSegments][i].Len)
		}
		row, counter := s.row(it.Ref, it.Position)
		if err := b.Take(n, row); err != nil {
			return err
		}
		if it.Position != sampler.Filler {
			b.Count(counter, 1, int64(n.IDs))
		}
	}
	return nil
}

// row describes a row to its batch, and returns the counter of its source. A filler is not an example of the split.
func (s *rowStream) row(ref sampler.Ref, position int64) (row collate.Row, counter int) {
	row = collate.Row{Source: ref.Source, Example: ref.Row, Position: position}
	row.Origin, counter = s.members[ref.Source].locate(ref.Row)
	if position == sampler.Filler {
		row.Example = -1
	}
	return row, counter
}

// appendColumns appends the values of the step's items.
func (s *rowStream) appendColumns(dst *collate.Buffers) (err error) {
	return s.eachRun(s.step.Items, func(split *shard.Split, from, to int) (err error) {
		if dst.IDs, err = split.AppendIDs(dst.IDs, s.spans[from:to]); err != nil {
			return err
		}
		if s.needs&shard.ColumnLabels != 0 {
			if dst.Labels, err = split.AppendIDs(dst.Labels, s.more[moreLabels][from:to]); err != nil {
				return err
			}
		}
		if s.needs&shard.ColumnLossMask != 0 {
			if dst.LossMask, err = split.AppendLossMask(dst.LossMask, s.more[moreLossMask][from:to],
				s.spans[from:to]); err != nil {
				return err
			}
		}
		if s.needs&shard.ColumnSegments != 0 {
			dst.Segments, err = split.AppendSegments(dst.Segments, s.more[moreSegments][from:to], s.spans[from:to])
		}
		return err
	})
}

// eachRun calls do for each run of items of one member.
func (s *rowStream) eachRun(items []sampler.Item, do func(split *shard.Split, from, to int) error) error {
	for from := 0; from < len(items); {
		to := from + 1
		for to < len(items) && items[to].Source == items[from].Source {
			to++
		}
		if err := do(s.members[items[from].Source].split, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// spansOf finds the spans of the step's items, which the sampler has where it asked for them, else in the shards.
func (s *rowStream) spansOf(items []sampler.Item) error {
	for i := range items {
		if items[i].Length < 0 {
			return s.locateColumn(items, 0, s.spans)
		}
		s.spans[i] = shard.Span{Off: items[i].Off, Shard: items[i].Shard, Len: items[i].Length}
	}
	return nil
}

// locateColumn finds the spans of items in the shards; column 0 is input_ids.
func (s *rowStream) locateColumn(items []sampler.Item, c shard.Columns, spans []shard.Span) error {
	return s.eachRun(items, func(split *shard.Split, from, to int) error {
		s.rows = slices.Grow(s.rows[:0], to-from)
		for _, it := range items[from:to] {
			s.rows = append(s.rows, it.Row)
		}
		if c == 0 {
			return split.LocateUnchecked(spans[from:to], s.rows)
		}
		return split.LocateColumn(c, spans[from:to], s.rows)
	})
}

// locate is the sampler's LocateFunc. A row whose span is known takes one read instead of two.
func (s *rowStream) locate(items []sampler.Item) error {
	if err := s.stopped(); err != nil {
		return err // one step of many ranks may need the lengths of a whole epoch
	}
	s.located.reset(len(items), len(s.members))
	for i := range items {
		s.located.add(items[i].Ref)
	}
	if err := s.located.locate(s.members); err != nil {
		return err
	}
	for i, span := range s.located.spans {
		it := &items[s.located.index(i)]
		it.Length, it.Shard, it.Off = span.Len, span.Shard, span.Off
	}
	return nil
}
