package example

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/jsonscan"
)

// Only the fields of a record that a template names become values, and never more than decodedBytes
// allows: four megabytes of empty objects would otherwise become hundreds.

const (
	decodedPerByte = 8         // text takes one or two, fields of ordinary records three or four
	decodedFloor   = 256 << 10 // what any short record may take

	maxNumberBytes = 1 << 10

	keptTextBytes = 64 << 10 // the buffer for strings with escapes, kept between records

	// The memory of values in bytes, besides their text.
	valueCost  = 48 // in a list, which grows as it is read
	stringCost = 16
	objectCost = 96
	memberCost = 80
)

func decodedBytes(recordBytes int64) int64 { return decodedPerByte*recordBytes + decodedFloor }

// A decoder makes values of a record's fields. Strings are parts of the record, or of the decoder's
// buffer: they are valid until the next record.
type decoder struct {
	jsonscan.Scanner
	build jinja.Builder
	text  []byte // strings with escapes
	size  int    // the record's size
	room  int64
	lone  int // lone surrogates that became U+FFFD
}

// begin ends the life of the last record's values.
func (d *decoder) begin(size int) {
	d.build.Reset()
	if cap(d.text) > keptTextBytes {
		d.text = nil
	}
	d.text, d.size, d.lone, d.room = d.text[:0], size, 0, decodedBytes(int64(size))
}

// view returns bytes as a string that shares their memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// spend counts n bytes for a value.
func (d *decoder) spend(n int) error {
	if d.room -= int64(n); d.room < 0 {
		return fault.Of(ErrTooLarge, "the fields that the template uses take more than %d bytes of memory, "+
			"%d times the record; it is made of very small values", decodedBytes(int64(d.size)), decodedPerByte)
	}
	return nil
}

// list decodes a JSON list of strings.
func (d *decoder) list(data []byte) (*jinja.List, error) {
	d.Reset(data)
	if d.Token() != '[' {
		return nil, errNoList
	}
	_, start := d.build.Mark()
	d.Enter()
	for first := true; ; first = false {
		more, err := d.Element(first)
		switch {
		case err != nil || more && d.Token() != '"' || !more && d.End() != nil:
			return nil, errNoList
		case !more:
			return d.build.List(start), nil
		}
		text, err := d.string()
		if err == nil {
			err = d.spend(valueCost)
		}
		if err != nil {
			return nil, err
		}
		d.build.Item(d.build.Text(text))
	}
}

func (d *decoder) string() (string, error) {
	span, err := d.String()
	if err != nil {
		return "", err
	}
	raw := d.Raw(span)
	if !span.Escaped {
		return view(raw), d.spend(stringCost)
	}
	start, lone := len(d.text), 0
	d.text, lone = jsonscan.Unescape(d.text, raw)
	d.lone += lone
	return view(d.text[start:]), d.spend(stringCost + len(raw))
}

func (d *decoder) value(depth int) (any, error) {
	if depth > jsonscan.MaxNesting {
		return nil, d.Fail(jsonscan.TooDeep)
	}
	switch d.Token() {
	case '"':
		s, err := d.string()
		return d.build.Text(s), err
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	default:
		return d.scalar()
	}
}

func (d *decoder) object(depth int) (any, error) {
	if err := d.spend(objectCost); err != nil {
		return nil, err
	}
	start, _ := d.build.Mark()
	err := d.Members(func(name []byte) error {
		key := string(name)
		if err := d.spend(memberCost + len(key)); err != nil {
			return err
		}
		value, err := d.value(depth + 1)
		d.build.Member(key, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.build.Dict(start), nil
}

func (d *decoder) array(depth int) (any, error) {
	if err := d.spend(objectCost); err != nil {
		return nil, err
	}
	_, start := d.build.Mark()
	d.Enter()
	for first := true; ; first = false {
		more, err := d.Element(first)
		if err == nil && !more {
			return d.build.List(start), nil
		}
		var value any
		if err == nil {
			err = d.spend(valueCost)
		}
		if err == nil {
			value, err = d.value(depth + 1)
		}
		if err != nil {
			return nil, err
		}
		d.build.Item(value)
	}
}

// scalar decodes a number, true, false or null as Python's json.loads does.
func (d *decoder) scalar() (any, error) {
	rest, start := d.Rest(), d.Offset()
	if err := d.Scalar(); err != nil {
		return nil, err
	}
	switch word := view(rest[:d.Offset()-start]); word {
	case "true", "false":
		return word == "true", nil
	case "null":
		return nil, nil
	case "NaN":
		return math.NaN(), nil
	case "Infinity", "-Infinity":
		return math.Inf(len("Infinity") - len(word)), nil
	default:
		return d.number(word)
	}
}

func (d *decoder) number(text string) (any, error) {
	if len(text) > maxNumberBytes {
		return nil, fault.Of(ErrTooLarge, "a number of %d digits", len(text))
	}
	if strings.ContainsAny(text, ".eE") {
		f, _ := strconv.ParseFloat(text, 64) // infinite if it is too large, as in Python
		return f, d.spend(stringCost)
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, d.spend(stringCost)
	}
	v, _ := new(big.Int).SetString(text, 10)
	return v, d.spend(stringCost + len(text))
}

// readText gives a template a record that is text as it stands.
func (w *Worker) readText(r *rendering, data []byte) error {
	text := w.decode.build.Text(view(data))
	if r.whole {
		start, _ := w.decode.build.Mark()
		w.decode.build.Member(defaultTextField, text)
		r.putAll(w.decode.build.Dict(start))
		return nil
	}
	if i, ok := slices.BinarySearch(r.names, defaultTextField); ok {
		r.put(i, text)
	}
	return nil
}

// readObject gives a template the fields of a JSON object.
func (w *Worker) readObject(r *rendering, data []byte) error {
	d := &w.decode
	d.Reset(data)
	if err := d.Object(); err != nil {
		return err
	}
	start, _ := d.build.Mark()
	for first := true; ; first = false {
		key, more, err := d.Member(first)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		i := 0
		for i < len(r.names) && !d.IsKey(key, r.names[i]) {
			i++
		}
		if i == len(r.names) && !r.whole {
			if err := w.unused.skip(&d.Scanner, key); err != nil {
				return err
			}
			continue
		}
		if err := d.spend(memberCost); err != nil {
			return err
		}
		name := ""
		if r.whole {
			name = string(d.Key(key))
		}
		value, err := d.value(0)
		if err != nil {
			return err
		}
		if r.whole {
			d.build.Member(name, value)
		} else {
			r.put(i, value)
		}
	}
	if r.whole {
		r.putAll(d.build.Dict(start))
	}
	return d.End()
}

// readRow gives a template the columns of a row.
func (w *Worker) readRow(r *rendering, rec Record) error {
	lists := r.lists
	if b := findBuiltin(rec.Template); b != nil {
		lists = b.lists
	}
	if r.columns == nil {
		r.locate(rec.Columns)
	}
	if r.whole {
		start, _ := w.decode.build.Mark()
		for i, name := range rec.Columns {
			value, err := w.column(name, i, lists)
			if err != nil {
				return err
			}
			w.decode.build.Member(name, value)
		}
		r.putAll(w.decode.build.Dict(start))
		return nil
	}
	for i, column := range r.columns {
		if column < 0 {
			continue
		}
		value, err := w.column(r.names[i], column, lists)
		if err != nil {
			return err
		}
		r.put(i, value)
	}
	return nil
}

// locate finds the names in a header.
func (r *rendering) locate(columns []string) {
	r.columns, r.used = make([]int, len(r.names)), make([]int, len(columns))
	for i, name := range r.names {
		r.columns[i] = slices.Index(columns, name)
	}
	for i, name := range columns {
		r.used[i] = slices.Index(r.names, name)
	}
}

// column returns the value of a column: text, or a list where the format has one.
func (w *Worker) column(name string, column int, lists []string) (any, error) {
	field := w.fields.at(column)
	if err := w.decode.spend(memberCost); err != nil {
		return nil, err
	}
	if !slices.Contains(lists, name) {
		return w.decode.build.Text(view(field)), nil
	}
	list, err := w.decode.list(field)
	if err == errNoList {
		return nil, fault.Of(ErrMalformed, "column %s: %v, as recipes have; plain texts are read with {format} csv and "+
			"{template} or {text-field}", name, err)
	}
	return list, err
}
