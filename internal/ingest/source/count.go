package source

import (
	"context"
	"errors"
	"io"

	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// Count counts the documents of the i-th input. Files of columns are not read for it, other inputs
// are read once. It may be called by several goroutines at once, each with a buffer of its own.
func (s *Set) Count(ctx context.Context, i int, o CountOptions) (*Counted, error) {
	in, err := s.inputForCount(i)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Format.IsColumnar() && !s.opts.SkipDamaged: // where damage is a record, rows must be read
		c, err := s.countTable(&in, newCutting(&in, o.Cuts))
		o.Progress(max(0, in.Size))
		return c, err
	case in.Format.layout().lines && in.Compression == decompress.Plain && in.archive == "" && in.Synth == nil &&
		in.once == nil: // its lines that are not blank are its documents
		c, err := s.countLines(ctx, &in, &o)
		if err == nil || !errors.Is(err, errLongLine) {
			return c, err
		}
	}
	return s.countRecords(ctx, &in, &o)
}

// inputForCount is Input for several goroutines.
func (s *Set) inputForCount(i int) (Input, error) {
	s.counting.Lock()
	defer s.counting.Unlock()
	return s.list.at(i)
}

// countTable takes the rows of each group from the file's metadata.
func (s *Set) countTable(in *Input, cuts *cutting) (*Counted, error) {
	fail := func(err error) (*Counted, error) { return nil, s.inputError(in, -1, 0, err) }
	raw, err := openRaw(in, &s.opts)
	if err != nil {
		return fail(err)
	}
	defer raw.Close()
	file, err := openTable(in, &s.opts, raw, s.needs.decompressor, 0)
	if err != nil {
		return fail(err)
	}
	c := &Counted{}
	if c.Tail, err = tailSum(raw); err != nil {
		return fail(err)
	}
	at := int64(len(columnar.ParquetMagic))
	for g := range file.Groups() {
		if g > 0 && cuts.due(at) {
			c.Marks = append(c.Marks, Mark{Offset: at, Row: c.Documents, Ordinal: c.Documents})
			cuts.taken(at)
		}
		group := file.Group(g)
		at += group.Bytes
		c.Documents += group.Rows
	}
	return c, nil
}

// countRecords reads the records of an input.
func (s *Set) countRecords(ctx context.Context, in *Input, o *CountOptions) (*Counted, error) {
	cuts := newCutting(in, o.Cuts)
	one, err := s.single(in)
	if err != nil {
		return nil, err
	}
	one.only = &Range{Inputs: []Listed{{}}} // an input without a document is not an error
	r, err := one.Reader(Position{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.NoteSpans()
	c := &Counted{}
	var rec Record
	var data []byte
	var told int64
	for n := 0; ; n++ {
		if n%1024 == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			read, _ := r.Progress()
			o.Progress(read - told)
			told = read
		}
		if cap(data) > CountBytes {
			data = nil // it was one long record
		}
		if at, ok := r.Border(); ok && n > 0 && cuts.due(at) {
			r.EndSpan()
			c.Marks = append(c.Marks, Mark{Offset: at, Row: r.open.place.Row, Ordinal: r.at.Ordinal,
				State: r.open.State()})
			cuts.taken(at)
		}
		if data, err = r.Next(data[:0], &rec); err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	at := r.Position()
	c.Documents, c.done, c.trailing, c.members = at.Ordinal, at.Done[0], at.Trailing, at.Members
	if c.Spans = r.Spans(); in.OffsetsAreBytes() && in.Synth == nil {
		c.dropLast(in.Size)
	}
	return c, nil
}
