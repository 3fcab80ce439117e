package source

import (
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// A framer finds the records of one input, as a frame.Framer does.
type framer interface {
	next(dst []byte, rec *Record) ([]byte, error)
	At() *frame.Place
	State() uint32
	Restore(state uint32)
}

// A textFramer is a framer of package frame.
type textFramer struct{ frame.Framer }

func (t textFramer) next(dst []byte, rec *Record) ([]byte, error) { return t.Next(dst, &rec.Record) }

// An openedInput is an open input with its framer, which is nil until the beginning was read, as is the
// framer's place.
type openedInput struct {
	framer
	place *frame.Place
	input input
}

// An input is what is read of one: text in the reader's window, a file of columns, or generated text.
type input interface {
	place(p *Position)                  // adds where the input is, without what takes time
	settle(p *Position)                 // adds that of the last place, for a resumed reader to find it
	consumed() int64                    // how far into the file reading is
	border() (offset int64, ok bool)    // whether a range may end here, and where that is
	reached(to *Mark) bool              // whether a range that ends there is read
	span() (sum checksum.Sum, to int64) // ends a stretch that has a checksum of its own
	unchanged() error                   // whether the file is still the one that was opened
	finish() Finished                   // what the input held that was read to its end
	trailing() *Trailing
	close()
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

func (in windowed) settle(p *Position) {
	sum, state := in.w.Unpin()
	p.Sum, p.Sums = sum, in.sumState(state)
}

// consumed is, for an uncompressed file, exactly what became records.
func (in windowed) consumed() int64 {
	if in.c == decompress.Plain {
		return in.w.Offset()
	}
	return in.rawFile.consumed()
}

func (in windowed) border() (int64, bool) { return in.w.Offset(), true }

func (in windowed) reached(to *Mark) bool { return in.w.Offset() >= to.Offset }

func (in windowed) span() (checksum.Sum, int64) {
	return in.w.EndSpan(), in.w.Offset()
}

func (in windowed) finish() Finished { return Finished{Bytes: in.w.Offset(), Sum: in.w.Sum()} }

func (in windowed) close() { in.Close() }

// columns is a file of columns.
type columns struct {
	*rawFile
	*tableFramer // nil until it is open
}

func (in *columns) place(p *Position) {
	p.Offset, p.Sum, p.Base, p.Group = in.bytes, in.sum(), in.base, in.group+1
	p.Groups = slices.Clip(in.cut.sums)
}

func (in *columns) settle(*Position) {}

func (in *columns) consumed() int64 { return in.tableFramer.consumed(in.size) }

func (in *columns) reached(to *Mark) bool { return in.Row >= to.Row }

func (in *columns) span() (checksum.Sum, int64) { return in.endSpan(), in.bytesBefore(in.group + 1) }

func (in *columns) finish() Finished {
	in.endGroup()
	return Finished{Bytes: in.bytes, Sum: in.sum(), Groups: in.cut.sums}
}

func (in *columns) close() {
	if in.tableFramer != nil {
		in.rows.Close()
	}
	in.Close()
}

// openInput opens the input of the position and goes to it.
func (r *Reader) openInput() error {
	var err error
	if r.in, err = r.set.Input(r.at.Input); err != nil {
		return err
	}
	in := &r.in
	r.decided, _ = r.set.opts.judge(in.URI)
	if in.Synth != nil {
		g := newGenerator(in.Synth, r.at.Row, r.at.Offset)
		r.open = &openedInput{g, g.At(), g}
		return nil
	}
	in.kept = r.set.kept.take(r.at.Input)
	raw, err := openRaw(in, &r.set.opts)
	in.kept = nil
	if err != nil {
		return r.inputError(err)
	}
	if in.Format.isColumnar() {
		return r.openTable(raw)
	}
	raw.inBackground()
	r.win.Reset(raw, r.set.opts.chunkBytes, r.set.opts.windowBytes(in.framed()))
	if in.Store != nil && in.Compression == decompress.Plain && in.archive == "" {
		r.win.KeepState()
	}
	if r.set.cuts(r.at.Input) {
		raw.leaveCheck() // the hash that a server announces is over all of it
	}
	s := &openedInput{input: windowed{raw, &r.win}}
	r.open = s
	inPlace := r.resumesInPlace()
	if origin := r.set.origin(r.at.Input); origin > 0 && !inPlace && !in.Format.layout().header {
		if err := r.seekRange(raw, origin); err != nil {
			return r.inputError(err)
		}
	} else if inPlace && !in.Format.layout().header {
		raw.binary = true // what is in the middle of a text cannot begin with a mark of its encoding
		if err := r.jump(raw); err != nil {
			return r.inputError(err)
		}
	} else if in.archive == "" && r.win.Need(3) && string(r.win.Unread()[:3]) == "\ufeff" {
		r.win.Consume(3)
	}
	f, err := r.newFramer(raw)
	if err != nil {
		return r.inputError(err)
	}
	s.framer, s.place = f, f.At()
	if inPlace && in.Format.layout().header {
		if err := r.jump(raw); err != nil {
			return r.inputError(err)
		}
	}
	return r.goOn(raw)
}

// openTable opens a file of columns and goes to the position.
func (r *Reader) openTable(raw *rawFile) error {
	c := &columns{rawFile: raw}
	r.open = &openedInput{input: c}
	t, err := newTableFramer(&r.in, &r.set.opts, raw, r.set.needs.decompressor)
	if err != nil {
		return r.inputError(err)
	}
	c.tableFramer = t
	r.open.framer, r.open.place = t, t.At()
	t.cut.keep, t.cut.sums = r.set.origin(r.at.Input) > 0, r.at.Groups
	if err := r.checkTail(raw); err != nil {
		return r.inputError(err)
	}
	if r.at.Offset == 0 {
		return nil
	}
	if origin := r.set.origin(r.at.Input); origin > 0 && r.at.Row == r.set.only.From.Row {
		if err := t.seekRange(&r.in, &r.set.only.From, &r.at); err != nil {
			return r.inputError(err)
		}
		return nil
	}
	if err := t.goOn(&r.in, &r.at); err != nil {
		return r.inputError(err)
	}
	return nil
}

// newFramer makes the framer of the input that is open.
func (r *Reader) newFramer(raw *rawFile) (framer, error) {
	if r.in.archive != "" {
		return newArchive(&r.in, &r.win, &r.set.opts, raw, &r.set.filter)
	}
	o := &r.set.opts.frame
	if r.in.Records != o.Records && r.in.Records != "" {
		found := *o
		found.Records, found.Found = r.in.Records, true
		o = &found
	}
	return newFramer(r.in.Format, &r.win, o)
}

// goOn moves an input that was just opened to the position.
func (r *Reader) goOn(raw *rawFile) error {
	at, s := &r.at, r.open
	if at.Offset == 0 {
		return nil
	}
	in := &r.in
	origin := r.set.origin(at.Input)
	if r.win.Offset() < origin {
		if err := r.seekRange(raw, origin); err != nil {
			return r.inputError(err)
		}
	}
	if r.win.Offset() > at.Offset {
		return &cause.ChangedError{URI: in.URI, What: "content",
			Was: fmt.Sprintf("a header of at most %d bytes", at.Offset), Is: "a longer one"}
	}
	if archive, ok := s.framer.(*archiveFramer); ok {
		if err := archive.seek(at); err != nil {
			return r.inputError(err)
		}
	} else if !r.win.Skip(at.Offset) {
		if err := r.win.Failed(); err != nil {
			return r.inputError(err)
		}
		return &cause.ChangedError{URI: in.URI, What: "size",
			Was: fmt.Sprintf("at least %d bytes of text", at.Offset), Is: fmt.Sprint(r.win.Offset())}
	}
	if sum := r.win.Sum(); sum != at.Sum && at.Offset > origin {
		return &cause.ChangedError{URI: in.URI, What: "content", Was: "checksum " + at.Sum.String(),
			Is: sum.String() + fmt.Sprintf(" over the first %d bytes", at.Offset)}
	}
	*s.place = frame.Place{Row: at.Row, Inside: at.Inside} // whatever was skipped on the way
	s.Restore(at.State)
	return nil
}
