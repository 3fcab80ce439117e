package source

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
	scan lineScanner
}

func newJSONL(f framing) (framer, error) {
	return &jsonFramer{framing: f, scan: lineScanner{w: f.w}}, nil
}

func (f *jsonFramer) state() uint32  { return 0 }
func (f *jsonFramer) restore(uint32) {}

func (f *jsonFramer) limit() int {
	if f.o.TextField != "" {
		return f.o.MaxPieceBytes
	}
	return f.o.MaxRecordBytes
}

func (f *jsonFramer) next(dst []byte, rec *Record) ([]byte, error) {
	for !f.inside {
		rec.Offset, rec.First = f.w.offset(), true
		n, found, ended, err := f.line(0, f.limit()+1)
		switch {
		case err != nil:
			return dst, err
		case n == 0 && ended:
			return dst, io.EOF
		case n > f.limit() || !found && !ended:
			if f.o.TextField == "" {
				rec.Last, rec.Err = true, tooLarge(f.o.MaxRecordBytes)
				return dst, f.skipLine()
			}
			f.scan.begin()
			if f.scan.findField(f.o.TextField) {
				f.inside = true
				rec.Unread = f.scan.unread()
				return f.piece(dst, rec)
			}
			if f.scan.blank {
				f.row++ // its end, or the end of the input, was consumed
				continue
			}
			return f.spoiled(dst, rec)
		}
		data := f.w.unread()[:n]
		if found {
			n++
		}
		blank := isBlank(data)
		if !blank {
			dst = append(dst, data...)
		}
		f.w.consume(n)
		if !blank {
			rec.Last = true
			return dst, nil
		}
		f.row++
	}
	rec.Offset = f.w.offset()
	return f.piece(dst, rec)
}

// spoiled ends a streamed line with an error.
func (f *jsonFramer) spoiled(dst []byte, rec *Record) ([]byte, error) {
	f.inside = false
	if err := f.w.failed(); err != nil && f.w.r == f.w.w {
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
		f.w.need(n)
		data := f.w.unread()
		data = data[:min(n, len(data))]
		var end jsonscan.StringEnd
		var raw int
		dst, raw, end = jsonscan.Decode(dst[:start], data, len(data))
		switch {
		case end == jsonscan.Closed:
			f.w.consume(raw + 1)
			if !f.scan.finish(f.o.TextField) {
				return f.spoiled(dst[:start], rec)
			}
			if after := f.scan.unread(); rec.Unread == nil {
				rec.Unread = after
			} else {
				*rec.Unread = append(*rec.Unread, *after...)
			}
			f.inside, rec.Last = false, true
			return dst, nil
		case end == jsonscan.Bad || len(data) < n:
			f.w.consume(raw)
			f.scan.cause = f.scan.malformed(badString, 0)
			return f.spoiled(dst[:start], rec)
		}
		text := dst[start:]
		c := characterAligned(f.o.Cut, text)
		if c == 0 {
			if n < f.o.MaxPieceBytes {
				continue
			}
			rec.Forced = true
			if c = characterCut(text); c == 0 {
				c = len(text)
			}
		}
		dst, raw, _ = jsonscan.Decode(dst[:start], data, c) // again, to learn which bytes these are
		f.w.consume(raw)
		return dst, nil
	}
}
