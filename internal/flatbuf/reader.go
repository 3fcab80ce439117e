package flatbuf

import (
	"encoding/binary"
	"iter"
)

// A Buffer is a FlatBuffer that is read. A short one is in memory as a whole, of a long one some pages are. Err is why
// it could not be read; values are then 0, as are those outside the buffer.
type Buffer struct {
	Size int
	Err  error

	read  func(p []byte, at int64) error
	from  int64
	whole []byte // all of it; nil for a long one
	pages []page
	clock int
	split [8]byte // a value on two pages
}

type page struct {
	number int // -1 for none
	used   int // when it was used last
	data   []byte
}

const (
	pageBytes = 16 << 10
	numPages  = 8
	// BufferBytes is what a Buffer takes at most.
	BufferBytes = pageBytes * numPages
)

// Of returns the buffer of some bytes.
func Of(data []byte) *Buffer { return &Buffer{whole: data, Size: len(data)} }

// Open makes the size bytes of a file from an offset on the buffer. read fills p with the bytes at an offset.
func (b *Buffer) Open(read func(p []byte, at int64) error, from int64, size int) error {
	*b = Buffer{read: read, from: from, Size: size, whole: b.whole, pages: b.pages}
	if size > BufferBytes/2 {
		b.whole = nil
		if b.pages == nil {
			b.pages = make([]page, numPages)
		}
		for i := range b.pages {
			b.pages[i].number = -1
		}
		return nil
	}
	b.pages = nil
	b.Err = read(grown(&b.whole, size), from)
	return b.Err
}

// grown returns n bytes of a slice, which it replaces if it is too small.
func grown(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	*buf = (*buf)[:n]
	return *buf
}

// get returns n bytes, 8 at most, valid until the next call; nil where they are not there.
func (b *Buffer) get(at, n int) []byte {
	switch {
	case at < 0 || at > b.Size-n || b.Err != nil:
		return nil
	case b.whole != nil:
		return b.whole[at : at+n]
	}
	number, from := at/pageBytes, at%pageBytes
	page := b.page(number)
	if b.Err != nil {
		return nil
	}
	if from+n <= len(page) {
		return page[from : from+n]
	}
	got := copy(b.split[:n], page[from:])
	copy(b.split[got:n], b.page(number+1))
	return b.split[:n]
}

// page returns a page, which takes the place of the one that was used least recently.
func (b *Buffer) page(number int) []byte {
	b.clock++
	oldest := &b.pages[0]
	for i := range b.pages {
		p := &b.pages[i]
		if p.number == number {
			p.used = b.clock
			return p.data
		}
		if p.used < oldest.used {
			oldest = p
		}
	}
	oldest.number, oldest.used = -1, b.clock
	from := number * pageBytes
	b.Err = b.read(grown(&oldest.data, min(pageBytes, b.Size-from)), b.from+int64(from))
	if b.Err == nil {
		oldest.number = number
	}
	return oldest.data
}

// number returns a number of up to 8 bytes, 0 where it is not there.
func (b *Buffer) number(at, size int) uint64 {
	var v [8]byte
	copy(v[:], b.get(at, size))
	return binary.LittleEndian.Uint64(v[:])
}

// Uint32 returns the number at an offset.
func (b *Buffer) Uint32(at int) int { return int(b.number(at, 4)) }

// Int64 returns the number at an offset.
func (b *Buffer) Int64(at int) int64 { return int64(b.number(at, 8)) }

// Root returns the table that a buffer begins with.
func (b *Buffer) Root() Table { return Table{b, b.Uint32(0)} }

// A Table is a table of a buffer, which is nil if there is none. Its methods give a default for what
// is not there or lies outside the buffer: what matters is checked where it is used.
type Table struct {
	*Buffer
	pos int
}

// field returns where a field lies, 0 if it is not there.
func (t Table) field(slot int) int {
	if t.Buffer == nil {
		return 0
	}
	vtable := t.pos - int(int32(t.Uint32(t.pos)))
	if t.pos <= 0 || vtable < 0 || 4+2*slot+2 > int(t.number(vtable, 2)) {
		return 0
	}
	offset := int(t.number(vtable+4+2*slot, 2))
	if offset == 0 || t.pos+offset >= t.Size {
		return 0
	}
	return t.pos + offset
}

// Byte returns a number of 8 bits.
func (t Table) Byte(slot int, def byte) byte {
	if at := t.field(slot); at > 0 {
		return byte(t.number(at, 1))
	}
	return def
}

// Short returns a number of 16 bits.
func (t Table) Short(slot, def int) int {
	if at := t.field(slot); at > 0 {
		return int(int16(t.number(at, 2)))
	}
	return def
}

// Int returns a number of 32 bits.
func (t Table) Int(slot, def int) int {
	if at := t.field(slot); at > 0 {
		return int(int32(t.Uint32(at)))
	}
	return def
}

// Long returns a number of 64 bits, whose default is 0.
func (t Table) Long(slot int) int64 {
	if at := t.field(slot); at > 0 {
		return t.Int64(at)
	}
	return 0
}

// Table returns the table that a field refers to; ok reports whether it is there.
func (t Table) Table(slot int) (to Table, ok bool) {
	at := t.field(slot)
	if at == 0 {
		return to, false
	}
	to = t.follow(at)
	return to, to.pos < t.Size
}

// follow returns the table that the offset at a place refers to.
func (t Table) follow(at int) Table { return Table{t.Buffer, at + t.Uint32(at)} }

// Vector returns where a vector's elements begin and how many there are, of at least size bytes.
func (t Table) Vector(slot, size int) (at, n int) {
	if at = t.field(slot); at == 0 {
		return 0, 0
	}
	at += t.Uint32(at)
	n = t.Uint32(at)
	if at += CountBytes; at < 0 || at > t.Size || n > (t.Size-at)/size {
		return 0, 0
	}
	return at, n
}

// Tables returns the tables of a vector.
func (t Table) Tables(slot int) iter.Seq[Table] {
	return func(yield func(Table) bool) {
		at, n := t.Vector(slot, 4)
		for i := range n {
			if !yield(t.follow(at + 4*i)) {
				return
			}
		}
	}
}

// Text appends the beginning of a string to dst, most bytes at most. cut reports whether it is longer.
func (t Table) Text(dst []byte, slot, most int) (_ []byte, cut bool) {
	at, n := t.Vector(slot, 1)
	for end := at + min(n, most); at < end; {
		p := t.get(at, min(end-at, len(t.split)))
		if p == nil {
			break
		}
		dst, at = append(dst, p...), at+len(p)
	}
	return dst, n > most
}
