package source

import (
	"bytes"
	"io"

	"github.com/dsload/dsload/internal/fault"
)

// A valueFramer frames the format json, JSON over any number of lines: one array, whose elements
// are the records, or values one after another. A record is an object, or a string, which is the
// text itself. The framer looks at brackets and strings only: the workers find what is wrong inside
// a record, and it costs that record alone. An array that is cut off ends in a bad record.
type valueFramer struct {
	framing
	place jsonPlace
}

// A jsonPlace is what may come next.
type jsonPlace uint32

const (
	betweenValues jsonPlace = iota // a value or an array
	arrayBegun                     // a value, or the array's end
	afterElement                   // a comma, or the array's end
	afterComma                     // a value
	jsonEnded                      // nothing more: the input was cut off
)

func newJSON(f framing) framer { return &valueFramer{framing: f} }

func (f *valueFramer) state() uint32    { return uint32(f.place) }
func (f *valueFramer) restore(s uint32) { f.place = jsonPlace(s) }

func (f *valueFramer) next(dst []byte, rec *Record) ([]byte, error) {
	for {
		b, err := f.token()
		if err != nil {
			return dst, err
		}
		inArray := f.place != betweenValues && f.place != jsonEnded
		rec.Offset, rec.First, rec.Last = f.w.offset(), true, true
		switch {
		case b == 0 && inArray:
			f.place = jsonEnded
			rec.Err = fault.Of(ErrTruncated, "the file ends within its JSON array; copy the file again")
			return dst, nil
		case b == 0 || f.place == jsonEnded:
			return dst, io.EOF
		case !inArray && b == '[':
			f.place = arrayBegun
		case b == ']' && (f.place == arrayBegun || f.place == afterElement):
			f.place = betweenValues
		case b == ',' && f.place == afterElement:
			f.place = afterComma
		case f.place == afterElement:
			return dst, fault.Of(ErrMalformed,
				"malformed JSON: %s after an element of the array, where a comma or ']' belongs",
				named(b))
		default:
			return f.value(dst, rec, b)
		}
		f.w.consume(1)
	}
}

// token skips white space and returns the byte after it, 0 at the end.
func (f *valueFramer) token() (byte, error) {
	for {
		data := f.w.unread()
		rest := bytes.TrimLeft(data, " \t\r\n")
		f.w.consume(len(data) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
		if !f.w.fill() {
			return 0, f.w.failed()
		}
	}
}

// value gives the value that the window begins with.
func (f *valueFramer) value(dst []byte, rec *Record, first byte) ([]byte, error) {
	if f.place != betweenValues {
		f.place = afterElement
	}
	var scan valueScanner
	p := 0
	for {
		data := f.w.unread()
		limit := min(len(data), f.o.MaxRecordBytes+1)
		p += scan.skip(data[p:limit])
		switch {
		case scan.ended && p <= f.o.MaxRecordBytes:
			dst = f.deliver(dst, rec, first, data[:p])
			f.w.consume(p)
			return dst, nil
		case scan.bad:
			return dst, fault.Of(ErrMalformed, "malformed JSON: %s where a value belongs", named(first))
		case p > f.o.MaxRecordBytes:
			rec.Err = tooLarge(f.o.MaxRecordBytes)
			f.w.consume(p)
			return dst, f.skipRest(&scan)
		case !f.w.fill():
			if err := f.w.failed(); err != nil {
				return dst, err
			}
			if scan.finish() {
				dst = f.deliver(dst, rec, first, f.w.unread()[:p])
			} else {
				f.place = jsonEnded
				rec.Err = fault.Of(ErrTruncated, "the file ends within a JSON value; copy the file again")
			}
			f.w.consume(p)
			return dst, nil
		}
	}
}

// skipRest consumes the rest of a value that is too large.
func (f *valueFramer) skipRest(scan *valueScanner) error {
	for !scan.ended {
		f.w.consume(scan.skip(f.w.unread()))
		if !scan.ended && !f.w.fill() {
			return f.w.failed()
		}
	}
	return nil
}

// deliver appends an object as it is, and the text of a string.
func (f *valueFramer) deliver(dst []byte, rec *Record, first byte, data []byte) []byte {
	switch first {
	case '{':
		return append(dst, data...)
	case '"':
		start := len(dst)
		text, raw, end := decodeString(dst, data[1:], len(data))
		if end != stringClosed || raw != len(data)-2 {
			rec.Err = fault.Of(ErrMalformed, "malformed JSON: a string holds a control character or a bad escape")
			return dst[:start]
		}
		rec.Decoded = true
		return text
	}
	rec.Err = fault.Of(ErrMalformed, "%.20q is neither a JSON object nor a text", data)
	return dst
}

// A valueScanner finds the end of a JSON value, piece by piece.
type valueScanner struct {
	depth    int
	begun    bool
	inString bool
	escaped  bool // the next byte of the string is part of an escape
	scalar   bool
	ended    bool
	bad      bool
}

// skip returns how much of data belongs to the value.
func (s *valueScanner) skip(data []byte) int {
	for p := 0; p < len(data); p++ {
		b := data[p]
		if s.inString {
			if p = s.string(data, p); s.inString {
				return p
			}
			if s.depth == 0 {
				s.ended = true
				return p + 1
			}
			continue
		}
		switch {
		case b == '"' && !s.scalar:
			s.inString, s.begun = true, true
		case (b == '{' || b == '[') && !s.scalar:
			s.depth++
			s.begun = true
		case b == '}' || b == ']':
			if s.depth == 0 {
				s.ended, s.bad = s.scalar, !s.scalar
				return p
			}
			if s.depth--; s.depth == 0 {
				s.ended = true
				return p + 1
			}
		case s.depth == 0 && (b == ',' || b == ' ' || b == '\t' || b == '\r' || b == '\n'):
			s.ended, s.bad = s.scalar, !s.scalar
			return p
		case s.depth == 0:
			s.scalar = true
		}
	}
	return len(data)
}

// string skips the inside of a string from p on: to its closing quote, or to the end of data.
func (s *valueScanner) string(data []byte, p int) int {
	for p < len(data) {
		if s.escaped {
			s.escaped = false
			p++
			continue
		}
		n := bytes.IndexByte(data[p:], '"')
		end := len(data)
		if n >= 0 {
			end = p + n
		}
		if i := bytes.IndexByte(data[p:end], '\\'); i >= 0 {
			p += i + 1
			s.escaped = true
			continue
		}
		if n >= 0 {
			s.inString = false
			return end
		}
		p = end
	}
	return p
}

// finish reports whether the end of the input ends the value.
func (s *valueScanner) finish() bool { return s.ended || s.scalar && s.depth == 0 && !s.inString }
