package source

import (
	"bytes"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/units"
)

// A framer finds the records of one input. It sets the fields of Record that depend on the format,
// appends the record's bytes to dst, and returns io.EOF after the last record. Any other error ends
// the input.
type framer interface {
	next(dst []byte, rec *Record) ([]byte, error)
	common() *framing
	state() uint32 // what a position needs besides framing, for restore
	restore(state uint32)
}

// framing is the part of a position that every framer has.
type framing struct {
	w      *window
	o      *Options
	row    int64 // rows that are complete
	inside bool  // the window begins within a document whose first piece was delivered
}

func (f *framing) common() *framing { return f }

// line finds the end of the line that goes on at an offset in the window, looking no further than the limit.
// n is where its "\n" is; found reports whether there is one, ended whether the input ends after the n bytes.
func (f *framing) line(scanned, limit int) (n int, found, ended bool, err error) {
	for {
		data := f.w.unread()
		data = data[:min(len(data), limit)]
		if i := bytes.IndexByte(data[scanned:], '\n'); i >= 0 {
			return scanned + i, true, false, nil
		}
		scanned = len(data)
		if scanned == limit {
			return scanned, false, false, nil
		}
		if !f.w.fill() {
			return scanned, false, true, f.w.failed()
		}
	}
}

// skipLine consumes everything up to and including the next "\n".
func (f *framing) skipLine() error {
	for {
		data := f.w.unread()
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			f.w.consume(i + 1)
			return nil
		}
		f.w.consume(len(data))
		if !f.w.fill() {
			return f.w.failed()
		}
	}
}

// A spanner finds the end of the document in which the window begins.
type spanner interface {
	// span looks for the end within the first n bytes. Where it is there, text is the length of
	// what is left of the document, total that with the separator after it; else both are n. At the
	// end of the input, total is 0 if nothing is left.
	span(n int) (text, total int, end bool, err error)
	// advance is called before bytes are consumed.
	advance(data []byte)
}

// cuttable frames formats whose documents may be delivered in pieces.
type cuttable struct {
	framing
	spanner
	blankRows bool // documents of white space only are not documents, but count as rows
}

func (f *cuttable) next(dst []byte, rec *Record) ([]byte, error) {
	for {
		text, total, end, err := f.span(f.o.PieceBytes)
		if err != nil {
			return dst, err
		}
		if total == 0 && end && !f.inside {
			return dst, io.EOF
		}
		if !f.inside {
			data := f.w.unread()[:text]
			if !end {
				data = data[:text-unfinished(data)] // at least 13 bytes are left
			}
			if isBlank(data) {
				// A longer run of white space than a piece is dropped a piece at a time: nothing
				// can be held until its end is known.
				if !end {
					total = len(data)
				} else if f.blankRows {
					f.row++
				}
				f.consume(total)
				continue
			}
		}
		rec.Offset, rec.First, rec.Decoded = f.w.offset(), !f.inside, true
		if !end && f.o.Whole {
			return dst, f.reject(rec)
		}
		if !end {
			if text, total, end, rec.Forced, err = f.cut(); err != nil {
				return dst, err
			}
		}
		dst = append(dst, f.w.unread()[:text]...)
		f.consume(total)
		rec.Last, f.inside = end, !end
		return dst, nil
	}
}

// cut finds the end of the next piece of a document that is longer than one.
func (f *cuttable) cut() (text, total int, end, forced bool, err error) {
	for n := f.o.PieceBytes; ; n = min(2*n, f.o.MaxPieceBytes) {
		if text, total, end, err = f.span(n); err != nil || end {
			return text, total, end, false, err
		}
		if c := characterAligned(f.o.Cut, f.w.unread()[:n]); c > 0 {
			return c, c, false, false, nil
		}
		if n == f.o.MaxPieceBytes {
			c := characterCut(f.w.unread()[:n])
			return c, c, false, true, nil
		}
	}
}

// characterAligned cuts text where cut says, but never within a character: ill-formed text may hide
// one from a tokenizer.
func characterAligned(cut func([]byte) int, text []byte) int {
	for {
		c := cut(text)
		if c <= 0 {
			return 0
		}
		c = min(c, len(text))
		whole := characterCut(text[:c])
		if whole == c {
			return c
		}
		text = text[:whole]
	}
}

// reject skips a document that is too large where only whole ones are wanted.
func (f *cuttable) reject(rec *Record) error {
	rec.Err, rec.Last = tooLarge(f.o.MaxRecordBytes), true
	for {
		_, total, end, err := f.span(f.o.PieceBytes)
		if err != nil {
			return err
		}
		f.consume(total)
		if end {
			return nil
		}
	}
}

func tooLarge(limit int) error {
	return fault.Of(cause.TooLarge, "record is longer than the %s that a record of this kind may have",
		units.Size(limit))
}

func (f *cuttable) consume(n int) {
	f.advance(f.w.unread()[:n])
	f.w.consume(n)
}

func (f *cuttable) state() uint32 { return 0 }

func (f *cuttable) restore(uint32) {}

// lines frames text with one document on each line.
type lines struct{ *framing }

func (l lines) advance([]byte) {}

func (l lines) span(n int) (text, total int, end bool, err error) {
	at, found, ended, err := l.line(0, n+2) // the text and its line end
	if err != nil {
		return 0, 0, false, err
	}
	text, total = at, at
	if found {
		total++
		if at > 0 && l.w.unread()[at-1] == '\r' {
			text--
		}
	}
	if (found || ended) && text <= n {
		return text, total, true, nil
	}
	return n, n, false, nil
}

// files frames each file as one document.
type files struct{ *framing }

func (d files) advance([]byte) {}

func (d files) span(n int) (text, total int, end bool, err error) {
	if d.w.need(n + 1) {
		return n, n, false, nil
	}
	left := len(d.w.unread())
	if left > n {
		return n, n, false, nil // the window ended in an error, or held it already
	}
	return left, left, true, d.w.failed()
}

func newText(f framing) (framer, error) {
	c := &cuttable{framing: f, blankRows: true}
	c.spanner = lines{&c.framing}
	return c, nil
}

func newDocument(f framing) (framer, error) {
	c := &cuttable{framing: f}
	c.spanner = files{&c.framing}
	return c, nil
}

// isBlank reports whether text is white space only, as Python's str.isspace sees it, or empty.
func isBlank(text []byte) bool {
	for len(text) > 0 {
		c := text[0]
		if c < utf8.RuneSelf {
			if c > ' ' || !asciiSpace(c) {
				return false
			}
			text = text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		if !unicode.IsSpace(r) {
			return false
		}
		text = text[size:]
	}
	return true
}

func asciiSpace(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' || 0x1c <= c && c <= 0x1f
}
