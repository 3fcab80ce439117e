package frame

import (
	"io"

	"github.com/dsload/dsload/internal/jsonscan"
)

// A jsonFramer frames JSON lines. A line of at most MaxRecordBytes comes whole, as it stands. If
// Options.TextField names the one wanted field, a line longer than MaxPieceBytes is streamed
// instead: its text is found, decoded and delivered in pieces, however long it is. A streamed line
// is checked as it passes: an error after pieces were delivered ends the document there, and takes
// the place of its last piece.
type jsonFramer struct {
	framing
	Stateless
	scan lineScanner
}

// NewJSONL returns the framer of JSON lines.
func NewJSONL(w *Window, o *Options) (Framer, error) {
	return &jsonFramer{framing: framing{w: w, o: o}, scan: lineScanner{w: w}}, nil
}

// NewChat returns the framer of conversations: JSON lines that always come whole.
func NewChat(w *Window, o *Options) (Framer, error) {
	whole := *o
	whole.TextField = ""
	return NewJSONL(w, &whole)
}

// LineBytes returns the longest JSON line that comes whole.
func (o *Options) LineBytes() int {
	if o.TextField != "" {
		return o.MaxPieceBytes
	}
	return o.MaxRecordBytes
}

func (f *jsonFramer) Next(dst []byte, rec *Record) ([]byte, error) {
	for !f.Inside {
		rec.Offset, rec.First = f.w.Offset(), true
		n, found, ended, err := f.line(0, f.o.LineBytes()+1)
		switch {
		case err != nil:
			return dst, err
		case n == 0 && ended:
			return dst, io.EOF
		case n > f.o.LineBytes() || !found && !ended:
			if f.o.TextField == "" {
				rec.Last, rec.Err = true, TooLarge(f.o.MaxRecordBytes)
				return dst, f.skipLine()
			}
			f.scan.begin()
			if f.scan.findField(f.o.TextField) {
				f.Inside = true
				rec.Unread = f.scan.unread()
				return f.piece(dst, rec)
			}
			if f.scan.blank {
				f.Row++ // its end, or the end of the input, was consumed
				continue
			}
			return f.spoiled(dst, rec)
		}
		data := f.w.Unread()[:n]
		if found {
			n++
		}
		blank := IsBlank(data)
		if !blank {
			dst = append(dst, data...)
		}
		f.w.Consume(n)
		if !blank {
			rec.Last = true
			return dst, nil
		}
		f.Row++
	}
	rec.Offset = f.w.Offset()
	return f.piece(dst, rec)
}

func (f *jsonFramer) Run(dst []byte, full int, ends []int32, rec *Record) ([]byte, []int32) {
	rec.Offset, rec.First, rec.Last = f.w.Offset(), true, true
	return f.run(dst, full, ends, f.o.LineBytes(), true)
}

// spoiled ends a streamed line with an error.
func (f *jsonFramer) spoiled(dst []byte, rec *Record) ([]byte, error) {
	f.Inside = false
	if err := f.w.Failed(); err != nil && len(f.w.Unread()) == 0 {
		return dst, err
	}
	rec.Last, rec.Err = true, f.scan.cause
	return dst, f.skipLine()
}

// piece delivers the next piece of the string in which the window begins.
func (f *jsonFramer) piece(dst []byte, rec *Record) ([]byte, error) {
	rec.Decoded = true
	start := len(dst)
	for n := f.o.PieceBytes; ; n = min(2*n, f.o.MaxPieceBytes) {
		f.w.Need(n)
		data := f.w.Unread()
		data = data[:min(n, len(data))]
		var end jsonscan.StringEnd
		var raw int
		dst, raw, end = jsonscan.Decode(dst[:start], data, len(data))
		switch {
		case end == jsonscan.Closed:
			f.w.Consume(raw + 1)
			if !f.scan.finish(f.o.TextField) {
				return f.spoiled(dst[:start], rec)
			}
			if after := f.scan.unread(); rec.Unread == nil {
				rec.Unread = after
			} else {
				*rec.Unread = append(*rec.Unread, *after...)
			}
			f.Inside, rec.Last = false, true
			return dst, nil
		case end == jsonscan.Bad || len(data) < n:
			f.w.Consume(raw)
			f.scan.cause = f.scan.malformed(badString, 0)
			return f.spoiled(dst[:start], rec)
		}
		text := dst[start:]
		c, forced := f.o.CutPiece(text, n)
		if c == 0 {
			continue
		}
		rec.Forced = forced
		dst, raw, _ = jsonscan.Decode(dst[:start], data, c) // again, to learn which bytes these are
		f.w.Consume(raw)
		return dst, nil
	}
}
