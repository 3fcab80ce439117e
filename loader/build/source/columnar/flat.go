package columnar

import "encoding/binary"

// A table is a FlatBuffers table, the form of Arrow's metadata. Its methods give a default for what
// is not there or lies outside the buffer: what matters is checked where it is used.
type table struct {
	b   []byte
	pos int
}

func u16(b []byte, at int) int {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(b[at:]))
}

func u32(b []byte, at int) int {
	if at < 0 || at+4 > len(b) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(b[at:]))
}

func i64(b []byte, at int) int64 {
	if at < 0 || at+8 > len(b) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b[at:]))
}

// rootTable returns the table that a buffer begins with.
func rootTable(b []byte) table { return table{b, u32(b, 0)} }

// field returns where a field lies, 0 if it is not there.
func (t table) field(slot int) int {
	vtable := t.pos - int(int32(u32(t.b, t.pos)))
	if t.b == nil || t.pos <= 0 || vtable < 0 || 4+2*slot+2 > u16(t.b, vtable) {
		return 0
	}
	offset := u16(t.b, vtable+4+2*slot)
	if offset == 0 || t.pos+offset >= len(t.b) {
		return 0
	}
	return t.pos + offset
}

func (t table) byte(slot int, def byte) byte {
	if at := t.field(slot); at > 0 {
		return t.b[at]
	}
	return def
}

func (t table) short(slot, def int) int {
	if at := t.field(slot); at > 0 {
		return int(int16(u16(t.b, at)))
	}
	return def
}

func (t table) int(slot, def int) int {
	if at := t.field(slot); at > 0 {
		return int(int32(u32(t.b, at)))
	}
	return def
}

func (t table) long(slot int) int64 {
	if at := t.field(slot); at > 0 {
		return i64(t.b, at)
	}
	return 0
}

// table returns the table that a field refers to; ok reports whether it is there.
func (t table) table(slot int) (to table, ok bool) {
	at := t.field(slot)
	if at == 0 {
		return to, false
	}
	to = table{t.b, at + u32(t.b, at)}
	return to, to.pos < len(t.b)
}

// vector returns where a vector's elements begin and how many there are, of at least size bytes.
func (t table) vector(slot, size int) (at, n int) {
	if at = t.field(slot); at == 0 {
		return 0, 0
	}
	at += u32(t.b, at)
	n = u32(t.b, at)
	if at += 4; at < 0 || at > len(t.b) || n > (len(t.b)-at)/size {
		return 0, 0
	}
	return at, n
}

func (t table) text(slot int) string {
	at, n := t.vector(slot, 1)
	return string(t.b[at : at+n])
}
