package columnar

import "encoding/binary"

// A compact reads Thrift's compact protocol, in which parquet writes its metadata. It holds no more
// than what the caller keeps. The first error ends everything.
type compact struct {
	b     []byte
	pos   int
	err   error
	short bool // the data ended, and may go on where they were cut off
	depth int
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

func (c *compact) end() {
	if c.err == nil {
		c.short = true
		c.fail("its metadata ends early")
	}
}

func (c *compact) byte() byte {
	if c.err != nil || c.pos >= len(c.b) {
		c.end()
		return 0
	}
	c.pos++
	return c.b[c.pos-1]
}

func (c *compact) uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b[c.pos:])
	switch {
	case n == 0:
		c.end()
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

// binary returns a string's bytes, which are those of b.
func (c *compact) binary() []byte {
	n := c.uvarint()
	if c.err != nil {
		return nil
	}
	if n > uint64(len(c.b)-c.pos) {
		c.end()
		return nil
	}
	c.pos += int(n)
	return c.b[c.pos-int(n) : c.pos]
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

// list returns the number of elements of a list and their type. Each takes a byte at least.
func (c *compact) list() (n int, kind byte) {
	head := c.byte()
	size := uint64(head >> 4)
	if size == 15 {
		size = c.uvarint()
	}
	if c.err == nil && size > uint64(len(c.b)-c.pos) {
		c.end()
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
		if c.pos += 8; c.pos > len(c.b) {
			c.pos = len(c.b)
			c.end()
		}
	case thriftBinary:
		c.binary()
	case thriftList, thriftSet:
		n, element := c.list()
		for range n {
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
