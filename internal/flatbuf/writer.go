// Package flatbuf writes and reads FlatBuffers (flatbuffers.dev/internals), the form of Arrow's metadata, as far as
// these need it.
package flatbuf

import "encoding/binary"

// A Writer has a FlatBuffer in the making, written front to back: each object before those that it refers to, and
// each vtable just before its table. It begins at a multiple of 8 bytes. Equal calls give equal bytes.
type Writer struct {
	B []byte
	// VtableAlign is the alignment of vtables, 2 or 8. The bytes that formats promise depend on it.
	VtableAlign int
}

// Align fills up to a multiple of n bytes with zeros.
func (w *Writer) Align(n int) {
	for len(w.B)%n != 0 {
		w.B = append(w.B, 0)
	}
}

// An Object writes itself at the end of a buffer, and returns where it begins.
type Object func(w *Writer) (start int)

// A Field is a field of a table: its ordinal in the schema, where unions take two, its size, and its value, or the
// object that it refers to.
type Field struct {
	ID, Size int
	Value    uint64
	Object   Object
}

// Ref is a field that refers to an object.
func Ref(id int, o Object) Field { return Field{ID: id, Size: 4, Object: o} }

// Mark is the same object. Once it is written, at is where it begins.
func Mark(at *int, o Object) Object {
	return func(w *Writer) int {
		*at = o(w)
		return *at
	}
}

// Refer writes an object and makes the offset at a place refer to it.
func (w *Writer) Refer(at int, o Object) {
	start := o(w)
	binary.LittleEndian.PutUint32(w.B[at:], uint32(start-at))
}

// FirstField is where the first field of a table lies in it, if that has 8 bytes.
const FirstField = 8

// NewTable is a table of up to n fields, which are given in order of falling size.
func NewTable(n int, fields ...Field) Object {
	return func(w *Writer) (start int) {
		w.Align(w.VtableAlign)
		vtable := len(w.B)
		w.B = append(w.B, make([]byte, 4+2*n)...)
		w.Align(8)
		start = len(w.B)
		w.B = binary.LittleEndian.AppendUint32(w.B, uint32(start-vtable))
		slots := make([]int, len(fields))
		for i, f := range fields {
			w.Align(f.Size)
			slots[i] = len(w.B)
			binary.LittleEndian.PutUint16(w.B[vtable+4+2*f.ID:], uint16(len(w.B)-start))
			w.B = append(w.B, binary.LittleEndian.AppendUint64(nil, f.Value)[:f.Size]...)
		}
		binary.LittleEndian.PutUint16(w.B[vtable:], uint16(4+2*n))
		binary.LittleEndian.PutUint16(w.B[vtable+2:], uint16(len(w.B)-start))
		for i, f := range fields {
			if f.Object != nil {
				w.Refer(slots[i], f.Object)
			}
		}
		return start
	}
}

// CountBytes is the length of a string or a vector, which precedes its bytes or elements.
const CountBytes = 4

// Text is a string.
func Text(s string) Object {
	return func(w *Writer) (start int) {
		w.Align(4)
		start = len(w.B)
		w.B = binary.LittleEndian.AppendUint32(w.B, uint32(len(s)))
		w.B = append(append(w.B, s...), 0)
		return start
	}
}

// Vector is a vector of objects.
func Vector(objects ...Object) Object {
	return func(w *Writer) (start int) {
		w.Align(4)
		start = len(w.B)
		w.B = binary.LittleEndian.AppendUint32(w.B, uint32(len(objects)))
		w.B = append(w.B, make([]byte, 4*len(objects))...)
		for i, o := range objects {
			w.Refer(start+CountBytes+4*i, o)
		}
		return start
	}
}

// Structs is a vector of structs of some numbers each.
func Structs(each int, numbers ...int64) Object {
	return func(w *Writer) (start int) {
		for len(w.B)%8 != 4 { // the numbers follow their count
			w.B = append(w.B, 0)
		}
		start = len(w.B)
		w.B = binary.LittleEndian.AppendUint32(w.B, uint32(len(numbers)/each))
		for _, n := range numbers {
			w.B = binary.LittleEndian.AppendUint64(w.B, uint64(n))
		}
		return start
	}
}

// Pair is Arrow's table of a key and its value, a Text.
func Pair(key string, value Object) Object { return NewTable(2, Ref(0, Text(key)), Ref(1, value)) }
