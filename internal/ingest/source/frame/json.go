package frame

import (
	"bytes"
	"io"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/jsonscan"
)

// A valueFramer frames the format json, JSON over any number of lines: one array, whose elements
// are the records, or values one after another. A record is an object, or a string, which is the
// text itself. The framer looks at brackets and strings only: the workers find what is wrong inside
// a record, and it costs that record alone. An array that is cut off ends in a bad record.
type valueFramer struct{ jsonValues }

// jsonValues are the values of a JSON text, one after another.
type jsonValues struct {
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

func (f *valueFramer) State() uint32    { return uint32(f.place) }
func (f *valueFramer) Restore(s uint32) { f.place = jsonPlace(s) }

func (f *valueFramer) Next(dst []byte, rec *Record) ([]byte, error) {
	for {
		b, err := f.token()
		if err != nil {
			return dst, err
		}
		inArray := f.place != betweenValues && f.place != jsonEnded
		rec.Offset, rec.First, rec.Last = f.w.Offset(), true, true
		switch {
		case b == 0 && inArray:
			f.place = jsonEnded
			rec.Err = fault.Of(cause.Truncated, "the file ends within its JSON array; copy the file again")
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
			return dst, noComma(b)
		default:
			return f.value(dst, rec, b)
		}
		f.w.Consume(1)
	}
}

// token skips white space and returns the byte after it, 0 at the end.
func (f *jsonValues) token() (byte, error) {
	for {
		data := f.w.Unread()
		rest := bytes.TrimLeft(data, " \t\r\n")
		f.w.Consume(len(data) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
		if !f.w.fill() {
			return 0, f.w.Failed()
		}
	}
}

// value gives the value that the window begins with.
func (f *jsonValues) value(dst []byte, rec *Record, first byte) ([]byte, error) {
	if f.place != betweenValues {
		f.place = afterElement
	}
	var scan jsonscan.Bounds
	p := 0
	for {
		data := f.w.Unread()
		limit := min(len(data), f.o.MaxRecordBytes+1)
		p += scan.Skip(data[p:limit])
		switch {
		case scan.Ended && p <= f.o.MaxRecordBytes:
			dst = f.deliver(dst, rec, first, data[:p])
			f.w.Consume(p)
			return dst, nil
		case scan.Bad:
			return dst, noValue(first)
		case p > f.o.MaxRecordBytes:
			rec.Err = TooLarge(f.o.MaxRecordBytes)
			f.w.Consume(p)
			return dst, f.skipRest(&scan, first)
		case !f.w.fill():
			if err := f.w.Failed(); err != nil {
				return dst, err
			}
			if scan.Finish() {
				dst = f.deliver(dst, rec, first, f.w.Unread()[:p])
			} else {
				f.place = jsonEnded
				rec.Err = fault.Of(cause.Truncated, "the file ends within a JSON value; copy the file again")
			}
			f.w.Consume(p)
			return dst, nil
		}
	}
}

// skipRest consumes the rest of a value that is not wanted, or too large.
func (f *jsonValues) skipRest(scan *jsonscan.Bounds, first byte) error {
	for !scan.Ended {
		f.w.Consume(scan.Skip(f.w.Unread()))
		switch {
		case scan.Bad:
			return noValue(first)
		case !scan.Ended && !f.w.fill():
			return f.w.Failed() // nil at the end, which the caller sees again
		}
	}
	return nil
}

func noValue(b byte) error {
	return fault.Of(cause.Malformed, "malformed JSON: %s where a value belongs", named(b))
}

func noComma(b byte) error {
	return fault.Of(cause.Malformed, "malformed JSON: %s after an element of the array, where a comma or ']' belongs",
		named(b))
}

// deliver appends an object as it is, and the text of a string.
func (f *jsonValues) deliver(dst []byte, rec *Record, first byte, data []byte) []byte {
	switch first {
	case '{':
		return append(dst, data...)
	case '"':
		start := len(dst)
		text, raw, end := jsonscan.Decode(dst, data[1:], len(data))
		if end != jsonscan.Closed || raw != len(data)-2 {
			rec.Err = fault.Of(cause.Malformed, "malformed JSON: a string holds a control character or a bad escape")
			return dst[:start]
		}
		rec.Decoded = true
		return text
	}
	rec.Err = fault.Of(cause.Malformed, "%.20q is neither a JSON object nor a text", data)
	return dst
}
