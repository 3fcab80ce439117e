package chat

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat/jinja"
	"github.com/dsload/dsload/internal/jsonscan"
)

// A record is decoded in the order in which it is written, since a template's tojson writes keys in
// that order. Decoding never takes more than decodedBytes allows.
const (
	decodedPerByte = 8
	decodedFloor   = 256 << 10
	maxNesting     = 500

	// The memory of decoded values in bytes, besides their text.
	valueCost  = 32
	stringCost = 16
	objectCost = 96
	memberCost = 80

	maxNumberBytes = 1 << 10
)

// decoder turns a JSON object into values of package jinja, as Python's json.loads does: of several
// members with one name the last counts, and NaN and infinities are numbers.
type decoder struct {
	data  []byte
	pos   int
	room  int64
	depth int
	lone  int // lone surrogates that became U+FFFD
}

// decode decodes a whole record. lone is the number of lone surrogates that became U+FFFD.
func decode(data []byte) (record *jinja.Dict, lone int, err error) {
	d := decoder{data: data, room: decodedBytes(int64(len(data)))}
	err = d.try(func() {
		if d.token() != '{' {
			d.malformed("no object")
		}
		record = d.object()
		if d.token() != 0 || d.pos < len(data) {
			d.malformed("something after the object")
		}
		d.unwrap(record)
	})
	return record, d.lone, err
}

// decodeRow makes a record of a row of CSV of size bytes: its fields are strings, and an empty one
// has no value.
func decodeRow(columns []string, at func(column int) []byte, size int) (record *jinja.Dict, lone int, err error) {
	d := decoder{room: decodedBytes(int64(size))}
	err = d.try(func() {
		d.spend(objectCost + size) // the row's fields, decoded, lie beside the record
		record = &jinja.Dict{}
		for i, name := range columns {
			d.spend(memberCost)
			if field := at(i); len(field) > 0 {
				d.spend(stringCost + len(field))
				record.Set(name, string(field))
			} else {
				record.Set(name, nil)
			}
		}
		d.unwrap(record)
	})
	return record, d.lone, err
}

// try calls f and returns the problem with which it panics.
func (d *decoder) try(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p, ok := r.(*fault.Error)
			if !ok {
				panic(r)
			}
			err = p
		}
	}()
	f()
	return nil
}

// unwrap decodes the lists of messages and of tools that a record holds as JSON in a string, as
// formats without lists do.
func (d *decoder) unwrap(record *jinja.Dict) {
	for _, field := range slices.Concat(listFields, toolFields) {
		s, _ := get(record, field).(string)
		if s = strings.TrimLeft(s, " \t\r\n"); strings.HasPrefix(s, "[") {
			record.Set(field, d.listIn(field, s))
		}
	}
}

// listIn decodes the list that is the string in a field.
func (d *decoder) listIn(field, s string) (list *jinja.List) {
	d.spend(len(s))
	inner := decoder{data: []byte(s), room: d.room}
	err := inner.try(func() {
		list = inner.list()
		if inner.token() != 0 || inner.pos < len(s) {
			inner.malformed("something after the list")
		}
	})
	switch {
	case err == nil:
		d.room, d.lone = inner.room, d.lone+inner.lone
		return list
	case errors.Is(err, ErrTooLarge):
		panic(err)
	case strings.HasPrefix(strings.TrimLeft(s[1:], " "), "{'"):
		err = errors.New("it is what Python's str() writes; write it with json.dumps")
	}
	panic(fault.Of(ErrShape, "%q is a string but not a JSON list: %v", field, err))
}

// decodedBytes bounds the memory of a decoded record of recordBytes bytes.
func decodedBytes(recordBytes int64) int64 { return decodedPerByte*recordBytes + decodedFloor }

func (d *decoder) malformed(format string, args ...any) {
	panic(fault.Of(ErrMalformed, "malformed JSON at byte %d: %s", d.pos, fmt.Sprintf(format, args...)))
}

func (d *decoder) spend(n int) {
	if d.room -= int64(n); d.room < 0 {
		panic(fault.Of(ErrTooLarge,
			"its values take more than %d bytes of memory, %d times the record; it is made of very small values",
			decodedBytes(int64(len(d.data))), decodedPerByte))
	}
}

// token skips white space and returns the byte after it, 0 at the end.
func (d *decoder) token() byte {
	for d.pos < len(d.data) {
		switch b := d.data[d.pos]; b {
		case ' ', '\t', '\r', '\n':
			d.pos++
		default:
			return b
		}
	}
	return 0
}

func (d *decoder) value() any {
	switch b := d.token(); {
	case b == '"':
		return d.text()
	case b == '{':
		return d.object()
	case b == '[':
		return d.list()
	case b == '-' || b >= '0' && b <= '9':
		return d.number()
	}
	return d.word()
}

func (d *decoder) nest() {
	if d.depth++; d.depth > maxNesting {
		d.malformed("nested deeper than %d", maxNesting)
	}
}

func (d *decoder) object() *jinja.Dict {
	d.nest()
	d.spend(objectCost)
	d.pos++
	out := &jinja.Dict{}
	for first := true; ; first = false {
		b := d.token()
		if b == '}' && (first || d.data[d.pos-1] != ',') {
			break
		}
		if !first {
			if b != ',' {
				d.malformed("no comma after a value")
			}
			d.pos++
			b = d.token()
		}
		if b != '"' {
			d.malformed("no key")
		}
		key := d.text()
		if d.token() != ':' {
			d.malformed("no colon after a key")
		}
		d.pos++
		d.spend(memberCost)
		out.Set(key, d.value())
	}
	d.pos++
	d.depth--
	return out
}

func (d *decoder) list() *jinja.List {
	d.nest()
	d.spend(objectCost)
	d.pos++
	out := &jinja.List{}
	if d.token() == ']' {
		d.pos++
		d.depth--
		return out
	}
	for {
		d.spend(valueCost)
		out.Items = append(out.Items, d.value())
		b := d.token()
		if b != ',' && b != ']' {
			d.malformed("no comma in a list")
		}
		if d.pos++; b == ']' {
			d.depth--
			return out
		}
	}
}

// text decodes a string from its opening quote.
func (d *decoder) text() string {
	d.pos++
	start := d.pos
	var out []byte
	for d.pos < len(d.data) {
		switch b := d.data[d.pos]; {
		case b == '"':
			raw := d.data[start:d.pos]
			d.pos++
			d.spend(stringCost + len(raw) + len(out))
			if out == nil {
				return string(raw)
			}
			return string(append(out, raw...))
		case b < ' ':
			d.malformed("a control character in a string")
		case b == '\\':
			if out == nil {
				out = make([]byte, 0, len(d.data[start:d.pos])+64)
			}
			out = append(out, d.data[start:d.pos]...)
			out = d.escape(out)
			start = d.pos
		default:
			d.pos++
		}
	}
	d.malformed("a string is not closed")
	return ""
}

func (d *decoder) escape(out []byte) []byte {
	if d.pos+1 >= len(d.data) {
		d.malformed("a string is not closed")
	}
	b := d.data[d.pos+1]
	d.pos += 2
	switch b {
	case '"', '\\', '/':
		return append(out, b)
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'u':
		r := d.hex(d.pos)
		if r < 0 {
			d.malformed("a bad escape")
		}
		d.pos += 4
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if d.pos+1 < len(d.data) && d.data[d.pos] == '\\' && d.data[d.pos+1] == 'u' {
				low = d.hex(d.pos + 2)
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				d.lone++
			} else {
				d.pos += 6
			}
		}
		return utf8.AppendRune(out, r)
	}
	d.pos -= 2
	d.malformed("a bad escape")
	return nil
}

// hex returns the value of the four hexadecimal digits at an offset, -1 if they are not digits.
func (d *decoder) hex(at int) rune {
	if at+4 > len(d.data) {
		return -1
	}
	v := rune(0)
	for _, b := range d.data[at : at+4] {
		switch {
		case '0' <= b && b <= '9':
			v = v<<4 | rune(b-'0')
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			v = v<<4 | rune(b|0x20-'a'+10)
		default:
			return -1
		}
	}
	return v
}

func (d *decoder) word() any {
	for word, v := range map[string]any{"true": true, "false": false, "null": nil, "NaN": "NaN", "Infinity": "Inf"} {
		if len(d.data)-d.pos >= len(word) && string(d.data[d.pos:d.pos+len(word)]) == word {
			d.pos += len(word)
			if s, ok := v.(string); ok {
				f, _ := strconv.ParseFloat(s, 64)
				return f
			}
			return v
		}
	}
	d.malformed("no value")
	return nil
}

func (d *decoder) number() any {
	rest := d.data[d.pos:]
	if len(rest) >= 9 && string(rest[:9]) == "-Infinity" {
		d.pos += 9
		f, _ := strconv.ParseFloat("-Inf", 64)
		return f
	}
	n, isFloat := jsonscan.NumberLen(rest)
	if n == 0 {
		d.malformed("no value")
	}
	if n > maxNumberBytes {
		panic(fault.Of(ErrTooLarge, "a number of %d digits", n))
	}
	d.spend(stringCost)
	d.pos += n
	text := string(rest[:n])
	if !isFloat {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v
		}
		v, _ := new(big.Int).SetString(text, 10)
		return v
	}
	f, _ := strconv.ParseFloat(text, 64) // infinite if it is too large, as in Python
	return f
}
