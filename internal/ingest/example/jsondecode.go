package example

import (
	"encoding/json"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/jsonscan"
)

// Only the fields of a JSON record that a template names are decoded, and never to more than
// decodedBytes allows: four megabytes of empty objects would otherwise become hundreds.

const (
	decodedPerByte = 8         // text takes one or two, fields of ordinary records three or four
	decodedFloor   = 256 << 10 // what any short record may take

	maxNumberBytes = 1 << 10 // of a number that a template computes with

	keptTextBytes = 64 << 10 // of the buffer for strings with escapes, kept between records

	// The memory of decoded values in bytes, besides their text.
	valueCost  = 32  // in a list, which grows by doubling
	stringCost = 16  // the header of a string or number
	objectCost = 320 // a map with room for eight fields
	memberCost = 64  // a field
)

// decodedBytes bounds the memory of the decoded fields of a JSON record of recordBytes bytes. It is
// 0 without a template.
func (f *Formatter) decodedBytes(recordBytes int64) int64 {
	if f.template == nil {
		return 0
	}
	return decodedPerByte*recordBytes + decodedFloor
}

// A jsonDecoder decodes the fields that a template names.
type jsonDecoder struct {
	jsonscan.Scanner
	text []byte // of a string with escapes
	size int
	room int64
	lone int // lone surrogates that became U+FFFD

	unused *Unused // notes the fields that are not wanted; may be nil
}

// fields decodes an object's wanted fields; numbers keep their text. If one is missing, it adds the
// names of some others, without values, for the error. lone is the number of lone surrogates that
// became U+FFFD.
func (d *jsonDecoder) fields(data []byte, want *fieldSet) (fields map[string]any, lone int, err error) {
	d.Reset(data)
	d.size, d.lone, d.room = len(data), 0, decodedPerByte*int64(len(data))+decodedFloor
	fields = map[string]any{}
	var others []string
	d.unused.Begin()
	err = d.Members(func(name []byte) error {
		key := string(name)
		if !want.has(key) {
			d.unused.Field(name, d.HasValue())
			if len(others) < maxFieldsTold {
				others = append(others, key)
			}
			return d.Skip()
		}
		if err := d.spend(memberCost + len(key)); err != nil {
			return err
		}
		value, err := d.value(0)
		fields[key] = value
		return err
	})
	if cap(d.text) > keptTextBytes {
		d.text = nil
	}
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, 0, asProblem(err)
	}
	if slices.ContainsFunc(want.names, func(name string) bool { _, ok := fields[name]; return !ok }) {
		for _, name := range others {
			fields[name] = nil
		}
	}
	return fields, d.lone, nil
}

// spend counts n bytes for a value.
func (d *jsonDecoder) spend(n int) error {
	if d.room -= int64(n); d.room < 0 {
		return fault.Of(ErrTooLarge, "the fields that the template uses take more than %d bytes of memory, "+
			"%d times the record; it is made of very small values",
			decodedPerByte*int64(d.size)+decodedFloor, decodedPerByte)
	}
	return nil
}

func (d *jsonDecoder) value(depth int) (any, error) {
	if depth > jsonscan.MaxNesting {
		return nil, d.Fail(jsonscan.TooDeep)
	}
	switch b := d.Token(); b {
	case '"':
		span, err := d.String()
		if err != nil {
			return nil, err
		}
		raw := d.Raw(span)
		if err := d.spend(stringCost + len(raw)); err != nil {
			return nil, err
		}
		if !span.Escaped {
			return string(raw), nil
		}
		var lone int
		d.text, lone = jsonscan.Unescape(d.text[:0], raw)
		d.lone += lone
		return string(d.text), nil
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	default:
		return d.scalar()
	}
}

func (d *jsonDecoder) object(depth int) (any, error) {
	if err := d.spend(objectCost); err != nil {
		return nil, err
	}
	fields := map[string]any{}
	err := d.Members(func(name []byte) error {
		key := string(name)
		if err := d.spend(memberCost + len(key)); err != nil {
			return err
		}
		value, err := d.value(depth + 1)
		fields[key] = value
		return err
	})
	return fields, err
}

func (d *jsonDecoder) array(depth int) (any, error) {
	list := []any{}
	d.Enter()
	for {
		more, err := d.Element(len(list) == 0)
		if err != nil {
			return nil, err
		}
		if !more {
			return list, nil
		}
		if err := d.spend(valueCost); err != nil {
			return nil, err
		}
		value, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
}

func (d *jsonDecoder) scalar() (any, error) {
	rest, start := d.Rest(), d.Offset()
	if err := d.Scalar(); err != nil {
		return nil, err
	}
	switch word := string(rest[:d.Offset()-start]); word {
	case "true", "false":
		return word == "true", nil
	case "null":
		return nil, nil
	default:
		err := d.spend(stringCost + len(word))
		if len(word) > maxNumberBytes {
			// Keep the text: a template that uses its value in a loop could take a second for each of a
			// thousand iterations.
			return word, err
		}
		return json.Number(word), err
	}
}
