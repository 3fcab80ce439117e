package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/shard"
)

// packDefault returns how requests that do not set pack are packed.
func (o *Options) packDefault() (pack.Policy, error) {
	policy, ok := pack.Parse(string(cmp.Or(o.Pack, pack.None)))
	switch {
	case !ok:
		return "", fault.BadOption("pack", string(o.Pack), "%v",
			spelling.OneOf(string(o.Pack), pack.Policies, pack.Aliases()...))
	case policy == pack.None && o.PackLength != 0:
		return "", fault.BadOption("max-length", o.PackLength,
			"it is the length of packed rows; choose a policy with {pack}, or leave it out")
	case o.PackLength < 0 || o.PackLength > pack.MaxLength:
		return "", fault.BadOption("max-length", o.PackLength,
			"must be 1 to %d", pack.MaxLength)
	}
	return policy, nil
}

// defaults returns the parameters that packing sets, as a query.
func (r *Reader) defaults() string {
	if r.pack == pack.None {
		return ""
	}
	text := "pack=" + string(r.pack)
	if r.length > 0 {
		text += fmt.Sprintf("&max_length=%d", r.length)
	}
	return text
}

// A packedStream packs the rows of the order, window by window, and reads each step's into a batch.
// It belongs to one goroutine.
type packedStream struct {
	base   rowStream // its members, order and needs
	opts   sampler.PackOptions
	packed *sampler.Packed
	steps  *sampler.PackedSteps
	length int

	batch   *collate.Batch // the one that Next fills
	pieces  []packedPiece  // scratch of a row
	rows    []int64
	spans   []shard.Span
	more    []shard.Span
	whole   []int32 // segments of a row that was packed by the build
	taking  func(sampler.PackedRow) error
	reading func(*collate.Buffers) error
	reset   func()
}

// packedPiece is a run of the tokens of one row of a member.
type packedPiece struct {
	source  int32
	row     int64
	from    int64
	span    shard.Span // its input_ids
	rowSpan shard.Span // the input_ids of its row
}

// newPackedStream makes the stream of a choice. Errors about options come from the sampler.
func (r *Reader) newPackedStream(c *choice) (*packedStream, error) {
	s := &packedStream{length: c.length, base: rowStream{reader: r, members: c.members, needs: c.needs},
		opts: sampler.PackOptions{Policy: c.query.Pack, Length: c.length}}
	for _, m := range c.members {
		s.opts.Tokens += m.split.Info().Tokens
		s.opts.Longest = max(s.opts.Longest, m.split.Info().MaxLength)
	}
	s.taking, s.reading, s.reset = s.take, s.read, func() { s.batch.Reset() }
	var err error
	if s.base.order, err = sampler.NewOrder(c.order, s.locate); err != nil {
		return nil, err
	}
	if s.packed, err = sampler.NewPacked(s.base.order, s.opts); err != nil {
		return nil, err
	}
	c.epoch = s.packed.Rows()
	window := sampler.PackWindow(s.base.order.Rows(), s.opts)
	if s.steps, err = sampler.NewPackedSteps(s.packed, c.steps); err != nil {
		return nil, err
	}
	s.base.ahead, err = r.newPrefetcher(c, window)
	return s, err
}

// bytes bounds the memory of the stream besides its batches.
func (s *packedStream) bytes() int64 {
	const perToken = 8 + 3*16 + 56 + 4 // pieces of one token each: row, spans, packedPiece, segment
	rows := s.base.order.Rows()
	n := sampler.PackBytes(rows, s.opts) + sampler.PackWindow(rows, s.opts)*locationBytes + locateBytes +
		int64(s.length)*perToken + s.base.ahead.bytes()
	if len(s.base.members) > 1 {
		n += 16 << 10
	}
	return n
}

// dropped returns how many tokens of an epoch best fit decreasing drops at least, as they are beyond the length of a packed
// row. Rows of one bucket of the histogram may have any of its lengths.
func (s *packedStream) dropped() (tokens int64) {
	if s.opts.Policy != pack.BFD {
		return 0
	}
	length := int64(s.length)
	for _, m := range s.base.members {
		info, least := m.split.Info(), int64(0)
		for _, bucket := range info.Lengths {
			least += max(0, bucket[2]-bucket[1]*length)
		}
		tokens += max(least, info.MaxLength-length)
	}
	return tokens
}

// Close ends reading ahead. The files belong to the Reader.
func (s *packedStream) Close() { s.base.Close() }

// Next reads the next step's rows.
func (s *packedStream) Next(ctx context.Context, b *collate.Batch) (err error) {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	r := s.base.reader
	if err := r.checkCurrent(); err != nil {
		return err
	}
	s.base.stopped, s.base.done, s.batch = ctx.Err, ctx.Done(), b
	if s.base.leave == nil && s.base.ahead == nil { // what is read ahead is told of each window
		s.base.share(s.steps.Share, s.steps.Release)
	}
	next, err := s.steps.Next(s.taking, s.reset)
	if err != nil {
		return r.explain(s.base.noStep(err))
	}
	b.Next = next
	return b.Seal()
}

// locate is the sampler's LocateFunc.
func (s *packedStream) locate(items []sampler.Item) error {
	s.base.ahead.reached(items[0].Position)
	return s.base.locate(items)
}

// take reads a packed row into the batch.
func (s *packedStream) take(row sampler.PackedRow) error {
	s.pieces = s.pieces[:0]
	n := collate.Counts{LossMask: s.base.needs&shard.ColumnLossMask != 0}
	for _, p := range row.Pieces {
		u := &row.Units[p.Item]
		rowSpan := shard.Span{Off: u.Off, Shard: u.Shard, Len: u.Length}
		width := int64(s.base.members[u.Source].split.IDWidth())
		s.pieces = append(s.pieces, packedPiece{source: u.Source, row: u.Row, from: int64(p.From), rowSpan: rowSpan,
			span: shard.Span{Off: u.Off + int64(p.From)*width, Shard: u.Shard, Len: p.Len}})
		n.IDs += int(p.Len)
	}
	if err := s.batch.Read(s.reading); err != nil {
		return err
	}
	n.Segments = s.batch.Unclaimed()
	described, _ := s.base.row(sampler.Ref{Source: s.pieces[0].source, Row: s.pieces[0].row}, row.Position)
	for i := 0; i < len(s.pieces) && row.Position != sampler.Filler; i++ {
		p, begun := &s.pieces[i], int64(0)
		if p.from == 0 {
			begun = 1 // a row that is cut counts once
		}
		_, counter := s.base.members[p.source].locate(p.row)
		s.batch.Count(counter, begun, int64(p.span.Len))
	}
	return s.batch.Take(n, described)
}

// read appends the values of the row's pieces, those of one member at a time.
func (s *packedStream) read(dst *collate.Buffers) error {
	for from := 0; from < len(s.pieces); {
		to := from + 1
		for to < len(s.pieces) && s.pieces[to].source == s.pieces[from].source {
			to++
		}
		if err := s.readRun(dst, s.base.members[s.pieces[from].source].split, s.pieces[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// readRun appends the values of pieces of one member.
func (s *packedStream) readRun(dst *collate.Buffers, split *shard.Split, pieces []packedPiece) (err error) {
	s.rows, s.spans = s.rows[:0], s.spans[:0]
	for i := range pieces {
		s.rows, s.spans = append(s.rows, pieces[i].row), append(s.spans, pieces[i].span)
	}
	if dst.IDs, err = split.AppendIDs(dst.IDs, s.spans); err != nil {
		return err
	}
	if s.base.needs&shard.ColumnLossMask != 0 {
		s.more = slices.Grow(s.more[:0], len(pieces))[:len(pieces)]
		if err := split.LocateColumn(shard.ColumnLossMask, s.more, s.rows); err != nil {
			return err
		}
		for i := range pieces {
			s.more[i].Off += pieces[i].from // in bits
			s.more[i].Len = pieces[i].span.Len
		}
		if dst.LossMask, err = split.AppendLossMask(dst.LossMask, s.more, s.spans); err != nil {
			return err
		}
	}
	if s.base.needs&shard.ColumnSegments == 0 {
		for _, p := range pieces { // each of a row that is one document
			dst.Segments = append(dst.Segments, p.span.Len)
		}
		return nil
	}
	s.more = slices.Grow(s.more[:0], len(pieces))[:len(pieces)]
	if err := split.LocateColumn(shard.ColumnSegments, s.more, s.rows); err != nil {
		return err
	}
	for i, p := range pieces {
		if s.whole, err = split.AppendSegments(s.whole[:0], s.more[i:i+1], []shard.Span{p.rowSpan}); err != nil {
			return err
		}
		dst.Segments = appendCut(dst.Segments, s.whole, p.from, int64(p.span.Len))
	}
	return nil
}

// appendCut appends the lengths of segments within the n tokens from a row's token number from on.
func appendCut(dst, segments []int32, from, n int64) []int32 {
	for _, length := range segments {
		if k := min(int64(length)-from, n); k > 0 {
			dst = append(dst, int32(k))
			n -= k
		}
		from = max(0, from-int64(length))
	}
	return dst
}
