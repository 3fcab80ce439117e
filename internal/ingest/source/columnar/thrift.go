package columnar

import (
	"encoding/binary"
	"io"
)

// A compact reads Thrift's compact protocol, in which parquet writes its metadata, from a part of a
// file. It holds a window of that and what the caller keeps. The first error ends everything.
type compact struct {
	at        io.ReaderAt
	next, end int64  // what follows the window in the file
	buf       []byte // holds the window
	b         []byte // the window
	pos       int    // in b
	err       error
	depth     int
	last      int64 // where the last part of the file ends that the footer names
}

// begin makes the bytes from one offset of a file to another the data.
func (c *compact) begin(at io.ReaderAt, from, end int64) {
	*c = compact{at: at, next: from, end: end, buf: c.buf}
}

// offset returns where in the file reading is.
func (c *compact) offset() int64 { return c.next - int64(len(c.b)-c.pos) }

// left returns how many bytes there are to come.
func (c *compact) left() int64 { return c.end - c.offset() }

// has reports whether n bytes are in the window, to which it brings them if they are there.
func (c *compact) has(n int) bool {
	if len(c.b)-c.pos >= n {
		return true
	}
	if c.err != nil || c.next == c.end || n > len(c.buf) {
		return false
	}
	kept := copy(c.buf, c.b[c.pos:])
	more := c.buf[kept:][:min(int64(len(c.buf)-kept), c.end-c.next)]
	c.b, c.pos = c.buf[:kept], 0
	if err := readAt(c.at, more, c.next); err != nil {
		c.err = err
		return false
	}
	c.b, c.next = c.buf[:kept+len(more)], c.next+int64(len(more))
	return len(c.b) >= n
}

// The types of the protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12

	maxThriftDepth = 32
)

func (c *compact) fail(format string, args ...any) {
	if c.err == nil {
		c.err = corrupt(format, args...)
	}
}

// short is the error of data that end early.
func (c *compact) short() {
	if c.err == nil {
		c.fail("its metadata ends early")
	}
}

func (c *compact) byte() byte {
	if c.err != nil || c.pos == len(c.b) && !c.has(1) {
		c.short()
		return 0
	}
	c.pos++
	return c.b[c.pos-1]
}

func (c *compact) uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	if len(c.b)-c.pos < binary.MaxVarintLen64 {
		c.has(binary.MaxVarintLen64) // fewer may be left
	}
	v, n := binary.Uvarint(c.b[c.pos:])
	switch {
	case n == 0:
		c.short()
	case n < 0:
		c.fail("its metadata has a number beyond 64 bits")
	default:
		c.pos += n
	}
	return v
}

func (c *compact) varint() int64 {
	v := c.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (c *compact) i32() int32 {
	v := c.varint()
	if v != int64(int32(v)) {
		c.fail("its metadata has a number beyond 32 bits")
	}
	return int32(v)
}

// binary calls use with a string's bytes, in pieces where it is longer than the window. It returns the
// string's length.
func (c *compact) binary(use func(piece []byte)) int64 {
	n := c.uvarint()
	if c.err != nil {
		return 0
	}
	if n > uint64(c.left()) {
		c.short()
		return 0
	}
	for left := int64(n); left > 0 && c.has(1); {
		piece := c.b[c.pos:][:min(left, int64(len(c.b)-c.pos))]
		use(piece)
		c.pos += len(piece)
		left -= int64(len(piece))
	}
	return int64(n)
}

// text appends the beginning of a string to dst, most bytes at most. cut reports whether it is longer.
func (c *compact) text(dst []byte, most int) (_ []byte, cut bool) {
	start := len(dst)
	n := c.binary(func(piece []byte) { dst = append(dst, piece[:min(len(piece), most-(len(dst)-start))]...) })
	return dst, n > int64(most)
}

// skipBytes passes over n bytes without reading those beyond the window.
func (c *compact) skipBytes(n uint64) {
	switch {
	case c.err != nil:
	case n > uint64(c.left()):
		c.short()
	case n <= uint64(len(c.b)-c.pos):
		c.pos += int(n)
	default:
		c.next = c.offset() + int64(n)
		c.b, c.pos = nil, 0
	}
}

// fields calls field for each field of a struct; what it does not read it must skip.
func (c *compact) fields(field func(id int, kind byte)) {
	if c.depth++; c.depth > maxThriftDepth {
		c.fail("its metadata is nested too deep")
	}
	id := 0
	for c.err == nil {
		head := c.byte()
		if head == 0 {
			break
		}
		if delta := int(head >> 4); delta > 0 {
			id += delta
		} else {
			id = int(c.varint())
		}
		field(id, head&0xf)
	}
	c.depth--
}

// numbers puts the integers among the fields of a struct into v, by their ids, and calls other for other fields.
func (c *compact) numbers(v []int64, other func(id int, kind byte)) {
	c.fields(func(id int, kind byte) {
		switch isKnown := 0 < id && id < len(v); {
		case isKnown && kind == thriftI32:
			v[id] = int64(c.i32())
		case isKnown && kind == thriftI64:
			v[id] = c.varint()
		default:
			other(id, kind)
		}
	})
}

// list returns the number of elements of a list and their type. Each takes a byte at least.
func (c *compact) list() (n int, kind byte) {
	head := c.byte()
	size := uint64(head >> 4)
	if size == 15 {
		size = c.uvarint()
	}
	if c.err == nil && size > uint64(c.left()) {
		c.short()
	}
	if c.err != nil {
		return 0, 0
	}
	return int(size), head & 0xf
}

// skip passes over a value.
func (c *compact) skip(kind byte) {
	if c.err != nil {
		return
	}
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		c.byte()
	case thriftI16, thriftI32, thriftI64:
		c.uvarint()
	case thriftDouble:
		c.skipBytes(8)
	case thriftBinary:
		c.skipBytes(c.uvarint())
	case thriftList, thriftSet:
		n, element := c.list()
		for i := 0; i < n && c.err == nil; i++ {
			c.skipElement(element)
		}
	case thriftMap:
		if n := c.uvarint(); n > 0 {
			kinds := c.byte()
			for i := uint64(0); i < n && c.err == nil; i++ {
				c.skipElement(kinds >> 4)
				c.skipElement(kinds & 0xf)
			}
		}
	case thriftStruct:
		c.fields(func(_ int, kind byte) { c.skip(kind) })
	default:
		c.fail("its metadata has a value of an unknown type")
	}
}

// skipElement passes over an element of a list, where truth values take a byte.
func (c *compact) skipElement(kind byte) {
	if kind == thriftTrue || kind == thriftFalse {
		c.byte()
		return
	}
	if c.depth++; c.depth > maxThriftDepth {
		c.fail("its metadata is nested too deep")
	}
	c.skip(kind)
	c.depth--
}
