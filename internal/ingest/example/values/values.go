// Package values makes values of package jinja of JSON, as Python's json.loads does: objects keep the order of
// their members, of several members with one name the last counts, and NaN and infinities are numbers.
//
// A Decoder belongs to one goroutine. What it makes of a record takes no more memory than Bytes says: four megabytes
// of empty objects would otherwise become hundreds.
package values

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unsafe"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/jsonscan"
)

var (
	// ErrMalformed means that a record violates its format.
	ErrMalformed = errors.New("malformed record")
	// ErrTooDeep means that a record is malformed in no other way than that it is nested too deep for any format.
	ErrTooDeep = fmt.Errorf("%w: nested too deep", ErrMalformed)
	// ErrTooLarge means that what is made of a record exceeds a bound.
	ErrTooLarge = errors.New("too large")
)

const (
	bytesPerByte = 8         // text takes one or two, fields of ordinary records three or four
	leastBytes   = 256 << 10 // what any short record may take

	maxNumberBytes = 1 << 10

	keptTextBytes = 64 << 10 // the buffer for strings with escapes, kept between records

	maxKeys     = 1 << 8 // kept names, so that records with made-up names do not add to them
	maxKeyBytes = 32

	// StringCost, ObjectCost and MemberCost are the memory of values in bytes, besides their text.
	StringCost = 16
	ObjectCost = 96
	MemberCost = 80
)

// Bytes returns the most memory for the values of a record of that size.
func Bytes(recordBytes int64) int64 { return bytesPerByte*recordBytes + leastBytes }

// Problem returns what matches ErrMalformed for an error of package jsonscan, and others as they are.
func Problem(err error) error {
	if e, ok := err.(*jsonscan.Error); ok {
		kind := ErrMalformed
		if e.Cause == jsonscan.TooDeep {
			kind = ErrTooDeep
		}
		return fault.Of(kind, "%s", e.Error())
	}
	return err
}

// Shorten shortens an absurdly long name for an error.
func Shorten(name string) string {
	if len(name) > 100 {
		return fmt.Sprintf("%.100q…", name)
	}
	return name
}

// View returns bytes as a string that shares their memory.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Options are the same for all records.
type Options struct {
	Depth    int    // the maximum number of open brackets inside a record
	ItemCost int    // the memory of an element of a list in bytes, besides what it is
	What     string // what may take too much memory, for errors
	Decimals bool   // numbers keep the digits that a float would lose, as columns of decimals have them
	OwnText  bool   // strings with escapes have memory of their own, as the text may have, else they are valid until Clean
}

// A Decoder makes values of the text that its Scanner walks over. Strings are parts of that text, or of the
// Decoder's buffer; all else is valid until Clean.
type Decoder struct {
	jsonscan.Scanner
	Options
	Build jinja.Builder
	Left  int64 // how much memory, in bytes, the values of the record may yet take
	Lone  int   // halves of surrogate pairs that became U+FFFD
	size  int
	depth int
	text  []byte         // strings with escapes
	keys  map[string]any // names of members that occurred before
}

// Begin begins a record of size bytes.
func (d *Decoder) Begin(size int) {
	d.size, d.depth, d.Lone, d.Left = size, 0, 0, Bytes(int64(size))
}

// Clean ends the life of all that was made.
func (d *Decoder) Clean() {
	d.Build.Reset()
	if d.text = d.text[:0]; cap(d.text) > keptTextBytes {
		d.text = nil
	}
}

// ResetString is Reset for a string.
func (d *Decoder) ResetString(s string) { d.Reset(unsafe.Slice(unsafe.StringData(s), len(s))) }

// Spend counts n bytes for a value.
func (d *Decoder) Spend(n int) error {
	if d.Left -= int64(n); d.Left < 0 {
		return d.overspent()
	}
	return nil
}

func (d *Decoder) overspent() error {
	return fault.Of(ErrTooLarge, "%s take more than %d bytes of memory, %d times the record; it is made of very small "+
		"values", d.What, Bytes(int64(d.size)), bytesPerByte)
}

// Value decodes any value.
func (d *Decoder) Value() (v any, err error) {
	open := d.Token()
	switch open {
	case '"':
		s, err := d.Text()
		return d.Build.Text(s), err
	case '{', '[':
	default:
		return d.scalar()
	}
	if d.depth == d.Depth {
		return nil, d.Fail(jsonscan.Cause(fmt.Sprintf("nested deeper than %d", d.Depth)))
	}
	d.depth++
	if open == '{' {
		v, err = d.Dict(func([]byte) (any, error) { return d.Value() })
	} else {
		v, err = d.List(d.Value)
	}
	d.depth--
	return v, err
}

// Text decodes a string.
func (d *Decoder) Text() (string, error) {
	span, err := d.String()
	if err != nil {
		return "", err
	}
	raw := d.Raw(span)
	if !span.Escaped {
		return View(raw), d.Spend(StringCost)
	}
	if d.OwnText {
		d.text = make([]byte, 0, len(raw))
	}
	start, lone := len(d.text), 0
	d.text, lone = jsonscan.Unescape(d.text, raw)
	d.Lone += lone
	return View(d.text[start:]), d.Spend(StringCost + len(raw))
}

// Dict decodes an object. value decodes the value of a member, whose name is valid until then.
func (d *Decoder) Dict(value func(name []byte) (any, error)) (*jinja.Dict, error) {
	start, _ := d.Build.Mark()
	err := d.Spend(ObjectCost)
	if err == nil {
		err = d.Members(func(name []byte) error {
			if err := d.Spend(MemberCost + len(name)); err != nil {
				return err
			}
			key := d.key(name)
			v, err := value(name)
			d.Build.Member(key, v)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return d.Build.Dict(start), nil
}

// key returns the name of a member as a value. Few are different.
func (d *Decoder) key(name []byte) any {
	key, known := d.keys[string(name)]
	if !known {
		key = string(name)
		if len(d.keys) < maxKeys && len(name) <= maxKeyBytes {
			if d.keys == nil {
				d.keys = map[string]any{}
			}
			d.keys[key.(string)] = key
		}
	}
	return key
}

// List decodes the list that Token found. value decodes an element.
func (d *Decoder) List(value func() (any, error)) (*jinja.List, error) {
	_, start := d.Build.Mark()
	err := d.Spend(ObjectCost)
	d.Enter()
	for first := true; err == nil; first = false {
		more, bad := d.Element(first)
		if bad == nil && !more {
			return d.Build.List(start), nil
		}
		var v any
		if err = bad; err == nil {
			err = d.Spend(d.ItemCost)
		}
		if err == nil {
			v, err = value()
			d.Build.Item(v)
		}
	}
	return nil, err
}

// scalar decodes a number, true, false or null.
func (d *Decoder) scalar() (any, error) {
	rest, start := d.Rest(), d.Offset()
	if err := d.Scalar(); err != nil {
		return nil, err
	}
	switch word := View(rest[:d.Offset()-start]); word {
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

func (d *Decoder) number(text string) (any, error) {
	if len(text) > maxNumberBytes {
		return nil, fault.Of(ErrTooLarge, "a number of %d digits", len(text))
	}
	if strings.ContainsAny(text, ".eE") {
		f, _ := strconv.ParseFloat(text, 64) // infinite if it is too large, as in Python
		if d.Decimals && !strings.ContainsAny(text, "eE") && strconv.FormatFloat(f, 'f', -1, 64) != strings.TrimSuffix(text, ".0") {
			return jinja.Decimal(text), d.Spend(StringCost + len(text))
		}
		return f, d.Spend(StringCost)
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, d.Spend(StringCost)
	}
	v, _ := new(big.Int).SetString(text, 10)
	return v, d.Spend(StringCost + len(text))
}
