package source

import (
	"io"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/synth"
)

// A framer finds the records of one input, as a frame.Framer does.
type framer interface {
	next(dst []byte, rec *Record) ([]byte, error)
	At() *frame.Place
	State() uint32
	Restore(state uint32)
}

// A runner is a framer that also finds records many at a time, as a frame.Runner does.
type runner interface {
	run(dst []byte, full int, ends []int32, rec *Record) ([]byte, []int32)
}

// A textFramer is a framer of package frame.
type textFramer struct{ frame.Framer }

func (t textFramer) next(dst []byte, rec *Record) ([]byte, error) { return t.Next(dst, &rec.Record) }

func (t textFramer) run(dst []byte, full int, ends []int32, rec *Record) ([]byte, []int32) {
	if runner, ok := t.Framer.(frame.Runner); ok {
		return runner.Run(dst, full, ends, &rec.Record)
	}
	return dst, ends
}

// newFramer returns the framer of an input, or of a member of an archive, that has a format.
func newFramer(format Format, w *frame.Window, o *frame.Options) (framer, error) {
	if frames := format.layout().frames; frames != nil {
		f, err := frames(w, o)
		if err != nil {
			return nil, err
		}
		return textFramer{f}, nil
	}
	return nil, fault.Of(cause.Unsupported, "format %s", format)
}

// An openedInput is an open input with its framer, which is nil until the beginning was read, as is the
// framer's place.
type openedInput struct {
	framer
	place *frame.Place
	input input
	raw   *rawFile // the file that the input is read from; nil for generated text
}

// An input is what is read of one: text in the reader's window, a file of columns, or generated text.
type input interface {
	place(p *Position)                  // adds where the input is, without what takes time
	consumed() int64                    // how far into the file reading is
	border() (offset int64, ok bool)    // whether a range may end here, and where that is
	span() (sum checksum.Sum, to int64) // ends a stretch that has a checksum of its own
	finish() Finished                   // what the input held that was read to its end
}

// windowed is text in the reader's window.
type windowed struct {
	*rawFile
	w *frame.Window
}

func (in windowed) place(p *Position) {
	p.Offset = in.w.Offset()
	in.w.Pin()
}

// settle adds the checksum of the last place, for a resumed reader to find it.
func (in windowed) settle(p *Position) {
	var state []byte
	p.Sum, state = in.w.Unpin()
	if p.Sums = nil; state == nil {
		return // the input is read again up to the position
	}
	o := in.remote.Object()
	p.Sums = &sumState{XXH3: state, ETag: o.ETag, Modified: o.Modified, Revision: o.Revision}
	if c := in.check; c != nil {
		p.Sums.Check, p.Sums.CheckAt = c.state(), c.at
	}
}

// consumed is, for an uncompressed file, exactly what became records.
func (in windowed) consumed() int64 {
	if in.c == decompress.Plain {
		return in.w.Offset()
	}
	return in.rawFile.consumed()
}

func (in windowed) border() (int64, bool) { return in.w.Offset(), true }

func (in windowed) span() (checksum.Sum, int64) {
	return in.w.EndSpan(), in.w.Offset()
}

func (in windowed) finish() Finished { return Finished{Bytes: in.w.Offset(), Sum: in.w.Sum()} }

// columns is a file of columns.
type columns struct {
	*rawFile
	*tableFramer // nil until it is open
}

func (in *columns) place(p *Position) {
	p.Offset, p.Base, p.Group = in.bytes, in.base, in.group+1
	p.Groups = slices.Clip(in.cut.sums)
	in.sums.place()
}

func (in *columns) settle(p *Position) { p.Sum = in.sums.placedAfter(p.Base) }

func (in *columns) consumed() int64 { return in.tableFramer.consumed(in.size) }

func (in *columns) span() (checksum.Sum, int64) { return in.endSpan(), in.bytesBefore(in.group + 1) }

func (in *columns) finish() Finished {
	in.endGroup()
	return Finished{Bytes: in.bytes, Sum: in.sum(), Groups: in.cut.sums}
}

// A generator frames generated text: each document is a record.
type generator struct {
	frame.Place
	frame.Stateless
	spec   *synth.Spec
	offset int64 // bytes generated before
}

// generated text is an input of its own.

func (g *generator) place(p *Position)           { p.Offset = g.offset }
func (g *generator) consumed() int64             { return g.offset }
func (g *generator) border() (int64, bool)       { return g.offset, true }
func (g *generator) span() (checksum.Sum, int64) { return checksum.Sum{}, -1 } // it needs no checksum
func (g *generator) finish() Finished            { return Finished{Bytes: g.offset} }

func (g *generator) next(dst []byte, rec *Record) ([]byte, error) {
	if g.spec.Ended(g.Row, g.offset) {
		return dst, io.EOF
	}
	rec.Offset, rec.First, rec.Last = g.offset, true, true
	if rec.Decoded = g.spec.Kind != synth.Recipe; !rec.Decoded {
		rec.Columns, rec.Comma = synth.RecipeColumns, ','
	}
	out := g.spec.Append(dst, g.Row)
	g.offset += int64(len(out) - len(dst))
	return out, nil
}
