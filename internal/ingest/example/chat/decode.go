package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
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
	*reused
	build *jinja.Builder
	raw   []byte
	data  string // the same
	pos   int
	room  int64
	depth int
	lone  int // lone surrogates that became U+FFFD
}

// reused is what decoders of one goroutine share, one after the other.
type reused struct {
	built jinja.Builder
	text  []byte // a string with escapes
	tools sharedTools
	keys  map[string]any // names of members that occurred before
	room  int64          // what the last record left for what its strings hold
	lone  int            // lone surrogates in those that became U+FFFD
}

// sharedTools are tools that record after record repeats: they are decoded once. They are never changed.
type sharedTools struct {
	raw  string      // the last tools' text
	list *jinja.List // nil until they are repeated
	cost int64
	lone int
}

const (
	maxSharedTools = 16 << 10 // bytes

	maxKeys     = 1 << 8 // in reused, so that one with made-up names does not grow
	maxKeyBytes = 32
	keptText    = 64 << 10
)

// key returns a key as a value.
func (r *reused) key(name string) any {
	if v, ok := r.keys[name]; ok {
		return v
	}
	if len(r.keys) < maxKeys && len(name) <= maxKeyBytes {
		if r.keys == nil {
			r.keys = map[string]any{}
		}
		name = strings.Clone(name)
		r.keys[name] = name
	}
	return name
}

// clean ends the life of the records that were decoded, besides sharedTools.
func (r *reused) clean() {
	r.built.Reset()
	if cap(r.text) > keptText {
		r.text = nil
	}
}

// decode decodes a whole record. lone is the number of lone surrogates that became U+FFFD.
func (r *reused) decode(data []byte) (record *jinja.Dict, lone int, err error) {
	d := decoder{reused: r, build: &r.built, raw: data, data: string(data), room: decodedBytes(int64(len(data)))}
	err = d.try(func() {
		switch d.token() {
		case '{':
		case '[':
			d.malformed(`no object but a list; a conversation is an object, as in {"messages": [...]}`)
		default:
			d.malformed("no object")
		}
		record = d.object()
		if d.token() != 0 || d.pos < len(data) {
			d.malformed("something after the object")
		}
		d.unwrap(record)
	})
	r.room, r.lone = d.room, 0
	return record, d.lone, err
}

// parse decodes JSON in a string of the last record.
func (r *reused) parse(s string) (v any, err error) {
	d := decoder{reused: r, build: &r.built, raw: []byte(s), data: s, room: r.room - int64(len(s))}
	err = d.try(func() {
		v = d.value()
		if d.token() != 0 || d.pos < len(s) {
			d.malformed("something after the value")
		}
	})
	r.room, r.lone = d.room, r.lone+d.lone
	return v, orOfPython(s, err)
}

// orOfPython returns the error about a string that is not JSON, or what it is if Python wrote it.
func orOfPython(s string, err error) error {
	if s = strings.TrimLeft(s, "[ "); err != nil && !errors.Is(err, ErrTooLarge) && strings.HasPrefix(s, "{'") {
		return errors.New("it is what Python's str() writes; write it with json.dumps")
	}
	return err
}

// decodeRow makes a record of a row of CSV of size bytes: its fields are strings, and an empty one
// has no value.
func (r *reused) decodeRow(columns []string, at func(column int) []byte, size int) (record *jinja.Dict, lone int,
	err error) {
	d := decoder{reused: r, build: &r.built, room: decodedBytes(int64(size))}
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
	r.room, r.lone = d.room, 0
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
	for _, fields := range [...][]string{listFields, toolFields} {
		for _, field := range fields {
			s, _ := peek(record, field).(string)
			if s = strings.TrimLeft(s, " \t\r\n"); strings.HasPrefix(s, "[") {
				record.Set(field, d.listIn(field, s))
			}
		}
	}
}

// listIn decodes the list that is the string in a field.
func (d *decoder) listIn(field, s string) (list *jinja.List) {
	d.spend(len(s))
	inner := decoder{reused: d.reused, build: d.build, raw: []byte(s), data: s, room: d.room}
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
	}
	panic(fault.Of(ErrShape, "%q is a string but not a JSON list: %v", field, orOfPython(s, err)))
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
