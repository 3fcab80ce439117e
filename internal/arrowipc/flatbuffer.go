package arrowipc

import "encoding/binary"

// A buffer is a flatbuffer (flatbuffers.dev/internals) in the making, written front to back: each object before
// those that it refers to. It begins at a multiple of 8 bytes.
type buffer struct{ b []byte }

func (w *buffer) align(n int) {
	for len(w.b)%n != 0 {
		w.b = append(w.b, 0)
	}
}

// An object writes itself at the end of a buffer, and returns where it begins.
type object func(w *buffer) (start int)

// A field is a field of a table: its number, its size, and its value, or the object that it refers to.
type field struct {
	id, size int
	value    uint64
	object   object
}

func ref(id int, o object) field { return field{id: id, size: 4, object: o} }

// refer writes an object and makes the offset at a place refer to it.
func (w *buffer) refer(at int, o object) {
	start := o(w)
	binary.LittleEndian.PutUint32(w.b[at:], uint32(start-at))
}

// table is a table of up to n fields, which are given in order of falling size.
func table(n int, fields ...field) object {
	return func(w *buffer) (start int) {
		w.align(2)
		vtable := len(w.b)
		w.b = append(w.b, make([]byte, 4+2*n)...)
		w.align(8)
		start = len(w.b)
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(start-vtable))
		slots := make([]int, len(fields))
		for i, f := range fields {
			w.align(f.size)
			slots[i] = len(w.b)
			binary.LittleEndian.PutUint16(w.b[vtable+4+2*f.id:], uint16(len(w.b)-start))
			w.b = append(w.b, binary.LittleEndian.AppendUint64(nil, f.value)[:f.size]...)
		}
		binary.LittleEndian.PutUint16(w.b[vtable:], uint16(4+2*n))
		binary.LittleEndian.PutUint16(w.b[vtable+2:], uint16(len(w.b)-start))
		for i, f := range fields {
			if f.object != nil {
				w.refer(slots[i], f.object)
			}
		}
		return start
	}
}

func text(s string) object {
	return func(w *buffer) (start int) {
		w.align(4)
		start = len(w.b)
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(s)))
		w.b = append(append(w.b, s...), 0)
		return start
	}
}

// vector is a vector of objects.
func vector(objects ...object) object {
	return func(w *buffer) (start int) {
		w.align(4)
		start = len(w.b)
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(objects)))
		w.b = append(w.b, make([]byte, 4*len(objects))...)
		for i, o := range objects {
			w.refer(start+4+4*i, o)
		}
		return start
	}
}

// pairs is a vector of structs of two numbers.
func pairs(numbers ...int64) object {
	return func(w *buffer) (start int) {
		for len(w.b)%8 != 4 { // the numbers follow their count
			w.b = append(w.b, 0)
		}
		start = len(w.b)
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(numbers)/2))
		for _, n := range numbers {
			w.b = binary.LittleEndian.AppendUint64(w.b, uint64(n))
		}
		return start
	}
}
