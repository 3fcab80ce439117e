package example

import (
	"encoding/json"
	"slices"

	"github.com/dsload/dsload/internal/fault"
)

// Only the fields of a JSON record that a template names are decoded, and never to more than
// DecodedBytes allows: four megabytes of empty objects would otherwise become hundreds.

const (
	decodedPerByte = 8         // text takes one or two, fields of ordinary records three or four
	decodedFloor   = 256 << 10 // what any short record may take

	maxNumberBytes = 1 << 10 // of a number that a template computes with

	keptKeyBytes = 64 << 10 // of the buffer for strings with escapes, kept between records

	// The memory of decoded values in bytes, besides their text.
	valueCost  = 32  // in a list, which grows by doubling
	stringCost = 16  // the header of a string or number
	objectCost = 320 // a map with room for eight fields
	memberCost = 64  // a field
)

// DecodedBytes bounds the memory of the decoded fields of a JSON record of recordBytes bytes. It is
// 0 without a template.
func (f *Formatter) DecodedBytes(recordBytes int64) int64 {
	if f.template == nil {
		return 0
	}
	return decodedPerByte*recordBytes + decodedFloor
}

// A jsonDecoder decodes the fields that a template names.
type jsonDecoder struct {
	jsonScanner
	room int64
	lone int // lone surrogates that became U+FFFD
}

// fields decodes an object's wanted fields; numbers keep their text. If one is missing, it adds the
// names of some others, without values, for the error. lone is the number of lone surrogates that
// became U+FFFD.
func (d *jsonDecoder) fields(data []byte, want *fieldSet) (fields map[string]any, lone int, err error) {
	d.data, d.pos, d.nesting, d.lone = data, 0, d.nesting[:0], 0
	d.room = decodedPerByte*int64(len(data)) + decodedFloor
	fields = map[string]any{}
	var others []string
	err = d.members(func(key string) error {
		if !want.has(key) {
			if len(others) < maxFieldsTold {
				others = append(others, key)
			}
			return d.skipValue()
		}
		if err := d.spend(memberCost + len(key)); err != nil {
			return err
		}
		value, err := d.value(0)
		fields[key] = value
		return err
	})
	if cap(d.key) > keptKeyBytes {
		d.key = nil
	}
	if err == nil && (d.token() != 0 || d.pos < len(d.data)) {
		err = d.malformed("something after the object")
	}
	if err != nil {
		return nil, 0, err
	}
	if slices.ContainsFunc(want.names, func(name string) bool { _, ok := fields[name]; return !ok }) {
		for _, name := range others {
			fields[name] = nil
		}
	}
	return fields, d.lone, nil
}

// members reads an object, calling value where each value begins.
func (d *jsonDecoder) members(value func(key string) error) error {
	if err := d.openObject(); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, more, err := d.nextMember(first)
		if err != nil || !more {
			return err
		}
		d.token()
		name := d.data[key.start:key.end]
		if key.escaped {
			d.key, _ = appendUnescaped(d.key[:0], name, true)
			name = d.key
		}
		if err := value(string(name)); err != nil {
			return err
		}
	}
}

// spend counts n bytes for a value.
func (d *jsonDecoder) spend(n int) error {
	if d.room -= int64(n); d.room < 0 {
		return fault.Of(ErrTooLarge, "the fields that the template uses take more than %d bytes of memory, "+
			"%d times the record; it is made of very small values",
			decodedPerByte*int64(len(d.data))+decodedFloor, decodedPerByte)
	}
	return nil
}

func (d *jsonDecoder) value(depth int) (any, error) {
	if depth > maxNesting {
		return nil, d.malformed("nested deeper than %d", maxNesting)
	}
	switch b := d.token(); b {
	case '"':
		span, err := d.skipString()
		if err != nil {
			return nil, err
		}
		if err := d.spend(stringCost + span.end - span.start); err != nil {
			return nil, err
		}
		raw := d.data[span.start:span.end]
		if !span.escaped {
			return string(raw), nil
		}
		var lone int
		d.key, lone = appendUnescaped(d.key[:0], raw, true)
		d.lone += lone
		return string(d.key), nil
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
	err := d.members(func(key string) error {
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
	d.pos++
	if d.token() == ']' {
		d.pos++
		return list, nil
	}
	for {
		if err := d.spend(valueCost); err != nil {
			return nil, err
		}
		value, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		b := d.token()
		if b != ']' && b != ',' {
			return nil, d.malformed("no comma in a nested value")
		}
		if d.pos++; b == ']' {
			return list, nil
		}
	}
}

func (d *jsonDecoder) scalar() (any, error) {
	start := d.pos
	if err := d.skipScalar(); err != nil {
		return nil, err
	}
	switch word := string(d.data[start:d.pos]); word {
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
