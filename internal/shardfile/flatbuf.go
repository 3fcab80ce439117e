package shardfile

import "encoding/binary"

// fbWriter writes FlatBuffers (flatbuffers.dev/internals) front to back: each parent before its
// children, so that every offset points forward, and each vtable just before its table. It supports
// what Arrow's metadata need. Equal calls give equal bytes.
//
// Positions are relative to the buffer's start, which must be aligned to 8 in the file.
type fbWriter struct{ b []byte }

// fbField is an inline field of a table: its id (the field's ordinal in the schema, unions taking
// two), its size and its value. Offsets to children are size 4 with value 0 until point sets them.
type fbField struct {
	id, size int
	value    uint64
}

func (w *fbWriter) align(n int) {
	for len(w.b)%n != 0 {
		w.b = append(w.b, 0)
	}
}

// table writes a table with the given fields, in order of falling size, and returns the position of
// each value. numFields is the length of the vtable.
func (w *fbWriter) table(numFields int, fields ...fbField) (start int, at []int) {
	w.align(8)
	vtable := len(w.b)
	w.b = append(w.b, make([]byte, 4+2*numFields)...)
	w.align(8)
	start = len(w.b)
	binary.LittleEndian.PutUint16(w.b[vtable:], uint16(4+2*numFields))
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(start-vtable))
	for _, f := range fields {
		w.align(f.size)
		at = append(at, len(w.b))
		binary.LittleEndian.PutUint16(w.b[vtable+4+2*f.id:], uint16(len(w.b)-start))
		var v [8]byte
		binary.LittleEndian.PutUint64(v[:], f.value)
		w.b = append(w.b, v[:f.size]...)
	}
	binary.LittleEndian.PutUint16(w.b[vtable+2:], uint16(len(w.b)-start))
	return start, at
}

// point makes the offset at position at refer to target.
func (w *fbWriter) point(at, target int) {
	binary.LittleEndian.PutUint32(w.b[at:], uint32(target-at))
}

// str writes a string.
func (w *fbWriter) str(s string) int {
	w.align(4)
	at := len(w.b)
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(s)))
	w.b = append(w.b, s...)
	w.b = append(w.b, 0)
	return at
}

// vector starts a vector of n elements, the first of which is aligned. The caller appends the
// elements.
func (w *fbWriter) vector(n, align int) int {
	for (len(w.b)+4)%align != 0 {
		w.b = append(w.b, 0)
	}
	at := len(w.b)
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(n))
	return at
}

// offsets writes a vector of n offsets and returns the position of each.
func (w *fbWriter) offsets(n int) (start int, at []int) {
	start = w.vector(n, 4)
	for range n {
		at = append(at, len(w.b))
		w.b = append(w.b, 0, 0, 0, 0)
	}
	return start, at
}

func (w *fbWriter) int64s(v ...int64) {
	for _, x := range v {
		w.b = binary.LittleEndian.AppendUint64(w.b, uint64(x))
	}
}

// keyValues writes a vector of Arrow KeyValue tables. values are the positions of the bytes of each
// pair's value.
func (w *fbWriter) keyValues(kv ...[2]string) (start int, values []int) {
	start, at := w.offsets(len(kv))
	for i, pair := range kv {
		t, slots := w.table(2, fbField{0, 4, 0}, fbField{1, 4, 0})
		w.point(at[i], t)
		w.point(slots[0], w.str(pair[0]))
		v := w.str(pair[1])
		w.point(slots[1], v)
		values = append(values, v+4)
	}
	return start, values
}
