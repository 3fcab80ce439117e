package columnar

import (
	"encoding/binary"
	"io"
)

// A flat is a FlatBuffers buffer in a file: a footer, or the metadata of a message. A short one is read
// as a whole, of a long one some pages are in memory. err is why the file could not be read; values
// are then 0.
type flat struct {
	at    io.ReaderAt
	from  int64
	size  int
	whole []byte // all of it; nil for a long one
	pages []flatPage
	clock int
	split [8]byte // a value on two pages
	err   error
}

type flatPage struct {
	number int // -1 for none
	used   int // when it was used last
	data   []byte
}

const (
	flatPageBytes = 16 << 10
	flatPages     = 8
	// flatBytes is what a flat takes at most.
	flatBytes = flatPageBytes * flatPages
)

// open makes size bytes of a file the buffer.
func (f *flat) open(at io.ReaderAt, from int64, size int) error {
	*f = flat{at: at, from: from, size: size, whole: f.whole, pages: f.pages}
	if size > flatBytes/2 {
		f.whole = nil
		if f.pages == nil {
			f.pages = make([]flatPage, flatPages)
		}
		for i := range f.pages {
			f.pages[i].number = -1
		}
		return nil
	}
	f.pages = nil
	f.err = readAt(at, grown(&f.whole, size), from)
	return f.err
}

// get returns n bytes, 8 at most, valid until the next call; nil where they are not there.
func (f *flat) get(at, n int) []byte {
	switch {
	case at < 0 || at > f.size-n || f.err != nil:
		return nil
	case f.whole != nil:
		return f.whole[at : at+n]
	}
	number, from := at/flatPageBytes, at%flatPageBytes
	page := f.page(number)
	if f.err != nil {
		return nil
	}
	if from+n <= len(page) {
		return page[from : from+n]
	}
	got := copy(f.split[:n], page[from:])
	copy(f.split[got:n], f.page(number+1))
	return f.split[:n]
}

// page returns a page, which takes the place of the one that was used least recently.
func (f *flat) page(number int) []byte {
	f.clock++
	oldest := &f.pages[0]
	for i := range f.pages {
		p := &f.pages[i]
		if p.number == number {
			p.used = f.clock
			return p.data
		}
		if p.used < oldest.used {
			oldest = p
		}
	}
	oldest.number, oldest.used = -1, f.clock
	from := number * flatPageBytes
	f.err = readAt(f.at, grown(&oldest.data, min(flatPageBytes, f.size-from)), f.from+int64(from))
	if f.err == nil {
		oldest.number = number
	}
	return oldest.data
}

func u16(b *flat, at int) int {
	if p := b.get(at, 2); p != nil {
		return int(binary.LittleEndian.Uint16(p))
	}
	return 0
}

func u32(b *flat, at int) int {
	if p := b.get(at, 4); p != nil {
		return int(binary.LittleEndian.Uint32(p))
	}
	return 0
}

func i64(b *flat, at int) int64 {
	if p := b.get(at, 8); p != nil {
		return int64(binary.LittleEndian.Uint64(p))
	}
	return 0
}

// root returns the table that a buffer begins with.
func (f *flat) root() table { return table{f, u32(f, 0)} }

// A table is a FlatBuffers table, the form of Arrow's metadata. Its methods give a default for what
// is not there or lies outside the buffer: what matters is checked where it is used.
type table struct {
	b   *flat
	pos int
}

// field returns where a field lies, 0 if it is not there.
func (t table) field(slot int) int {
	if t.b == nil {
		return 0
	}
	vtable := t.pos - int(int32(u32(t.b, t.pos)))
	if t.pos <= 0 || vtable < 0 || 4+2*slot+2 > u16(t.b, vtable) {
		return 0
	}
	offset := u16(t.b, vtable+4+2*slot)
	if offset == 0 || t.pos+offset >= t.b.size {
		return 0
	}
	return t.pos + offset
}

func (t table) byte(slot int, def byte) byte {
	if at := t.field(slot); at > 0 {
		if p := t.b.get(at, 1); p != nil {
			return p[0]
		}
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
	return to, to.pos < t.b.size
}

// vector returns where a vector's elements begin and how many there are, of at least size bytes.
func (t table) vector(slot, size int) (at, n int) {
	if at = t.field(slot); at == 0 {
		return 0, 0
	}
	at += u32(t.b, at)
	n = u32(t.b, at)
	if at += 4; at < 0 || at > t.b.size || n > (t.b.size-at)/size {
		return 0, 0
	}
	return at, n
}

// text appends the beginning of a string to dst, most bytes at most. cut reports whether it is longer.
func (t table) text(dst []byte, slot, most int) (_ []byte, cut bool) {
	at, n := t.vector(slot, 1)
	for end := at + min(n, most); at < end; {
		p := t.b.get(at, min(end-at, len(t.b.split)))
		if p == nil {
			break
		}
		dst, at = append(dst, p...), at+len(p)
	}
	return dst, n > most
}
