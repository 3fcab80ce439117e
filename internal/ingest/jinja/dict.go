package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
)

// A Dict is a Python dict: it keeps its keys in insertion order. The zero value is empty.
type Dict struct {
	entries []entry
	index   map[any]int // where the keys are, once there are more than smallDict
}

// entry is a key with its value. read is set once the value was asked for.
type entry struct {
	key, hash, value any
	read             bool
}

const smallDict = 8

// Len returns the number of keys.
func (d *Dict) Len() int { return len(d.entries) }

// Set sets a key that is a string.
func (d *Dict) Set(key string, value any) {
	if i := d.place(key); i >= 0 {
		d.entries[i].value = value
		return
	}
	k := any(key)
	d.add(entry{key: k, hash: k, value: value})
}

// Get returns the value of a key that is a string.
func (d *Dict) Get(key string) (any, bool) {
	if d.index != nil {
		return d.readAt(d.place(key))
	}
	for i := range d.entries {
		e := &d.entries[i]
		if s, ok := e.hash.(string); ok && s == key {
			e.read = true
			return e.value, true
		}
	}
	return nil, false
}

// Peek is like Get, but does not count as reading the value.
func (d *Dict) Peek(key string) (value any, ok bool) {
	if i := d.place(key); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
}

// WasRead reports whether the value of a key was read.
func (d *Dict) WasRead(key string) bool {
	i := d.place(key)
	return i >= 0 && d.entries[i].read
}

// Unread calls f with each key that is a string and whose value nothing has read.
func (d *Dict) Unread(f func(key string, value any)) {
	for i := range d.entries {
		if key, ok := d.entries[i].key.(string); ok && !d.entries[i].read {
			f(key, d.entries[i].value)
		}
	}
}

// readAll notes that all values were read.
func (d *Dict) readAll() {
	for i := range d.entries {
		d.entries[i].read = true
	}
}

// At returns the i-th key and its value. ok is false if the key is not a string.
func (d *Dict) At(i int) (key string, value any, ok bool) {
	key, ok = d.entries[i].key.(string)
	return key, d.entries[i].value, ok
}

// Keys returns the keys that are strings, in order.
func (d *Dict) Keys() []string {
	var keys []string
	for i := range d.entries {
		if s, ok := d.entries[i].key.(string); ok {
			keys = append(keys, s)
		}
	}
	return keys
}

// Without returns a dict without the keys that drop names; d itself where it has none.
func (d *Dict) Without(drop func(key string, value any) bool) *Dict {
	dropped := func(e entry) bool {
		key, _ := e.key.(string)
		return drop(key, e.value)
	}
	if !slices.ContainsFunc(d.entries, dropped) {
		return d
	}
	out := &Dict{entries: make([]entry, 0, len(d.entries))}
	for _, e := range d.entries {
		if !dropped(e) {
			out.add(e)
		}
	}
	return out
}

// Clone returns a copy that shares the values.
func (d *Dict) Clone() *Dict {
	out := &Dict{entries: make([]entry, 0, len(d.entries)+1)}
	for i := range d.entries {
		out.add(d.entries[i])
	}
	return out
}

// readAt returns the value of an index, and notes that it was read. ok is false for an index below 0.
func (d *Dict) readAt(i int) (value any, ok bool) {
	if i < 0 {
		return nil, false
	}
	d.entries[i].read = true
	return d.entries[i].value, true
}

// place returns the index of a key that is text, -1 if it is not there.
func (d *Dict) place(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if s, ok := d.entries[i].hash.(string); ok && s == key {
			return i
		}
	}
	return -1
}

// placeOf returns the index of a key, -1 if it is not there.
func (d *Dict) placeOf(hash any) int {
	if key, ok := hash.(string); ok {
		return d.place(key)
	}
	if d.index != nil {
		if i, ok := d.index[hash]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(d.entries, func(e entry) bool { return e.hash == hash })
}

func (d *Dict) find(hash any) (any, bool) { return d.readAt(d.placeOf(hash)) }

func (d *Dict) put(key, hash, value any) {
	if i := d.placeOf(hash); i >= 0 {
		d.entries[i].value = value
		return
	}
	d.add(entry{key: key, hash: hash, value: value})
}

// add adds a key that the dict does not have.
func (d *Dict) add(e entry) {
	d.entries = append(d.entries, e)
	if d.index != nil {
		d.index[e.hash] = len(d.entries) - 1
	} else if len(d.entries) > smallDict {
		d.index = make(map[any]int, 2*len(d.entries))
		for i := range d.entries {
			d.index[d.entries[i].hash] = i
		}
	}
}

type tupleHash string

// hashOf returns the map key for a value. ok is false if Python cannot hash it.
func hashOf(v any) (hash any, ok bool) {
	switch v := v.(type) {
	case nil, string, int64:
		return v, true
	case markup:
		return string(v), true
	case bool:
		return int64(btoi(v)), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v), true
		}
		return v, true
	case Decimal:
		return hashOf(v.float())
	case *big.Int:
		return tupleHash(v.String()), true
	case *List:
		switch v.kind {
		case ofList:
			return nil, false
		case ofRange:
			return tupleHash(fmt.Sprint("range", *v.numbers)), true
		}
		var s []byte
		for _, item := range v.Items {
			h, ok := hashOf(item)
			if !ok {
				return nil, false
			}
			s = fmt.Appendf(s, "%T%q,", h, fmt.Sprint(h))
		}
		return tupleHash(s), true
	case *Dict, *view:
		return nil, false
	case *undefined:
		return tupleHash("undefined"), true // all are equal
	}
	return v, true
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
