package columnar

// A pageHeader is what precedes a page.
type pageHeader struct {
	kind                     int32
	uncompressed, compressed int32
	crc                      *uint32
	values                   int32
	encoding                 int32
	// in pages of the second version
	rows, nulls      int32
	defBytes, repLen int32
	isCompressed     bool
}

const (
	pageData = iota
	pageIndex
	pageDictionary
	pageDataV2
)

// isIndexed reports whether the values of a page are places in the dictionary.
func (h *pageHeader) isIndexed() bool {
	return h.encoding == encodingDictionary || h.encoding == encodingDictRLE
}

func (c *compact) pageHeader() (h pageHeader) {
	h.kind, h.values, h.isCompressed = -1, -1, true
	inner := func(v2 bool) {
		c.fields(func(id int, kind byte) {
			switch {
			case id == 1 && kind == thriftI32:
				h.values = c.i32()
			case id == 2 && kind == thriftI32 && !v2, id == 4 && kind == thriftI32 && v2:
				h.encoding = c.i32()
			case id == 2 && kind == thriftI32 && v2:
				h.nulls = c.i32()
			case id == 3 && kind == thriftI32 && v2:
				h.rows = c.i32()
			case id == 5 && kind == thriftI32 && v2:
				h.defBytes = c.i32()
			case id == 6 && kind == thriftI32 && v2:
				h.repLen = c.i32()
			case id == 7 && v2 && (kind == thriftTrue || kind == thriftFalse):
				h.isCompressed = kind == thriftTrue
			default:
				c.skip(kind)
			}
		})
	}
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			h.kind = c.i32()
		case id == 2 && kind == thriftI32:
			h.uncompressed = c.i32()
		case id == 3 && kind == thriftI32:
			h.compressed = c.i32()
		case id == 4 && kind == thriftI32:
			crc := uint32(c.i32())
			h.crc = &crc
		case id == 5 && kind == thriftStruct:
			inner(false)
		case id == 7 && kind == thriftStruct:
			inner(false)
		case id == 8 && kind == thriftStruct:
			inner(true)
		default:
			c.skip(kind)
		}
	})
	if c.err == nil && (h.uncompressed < 0 || h.compressed < 0 || h.defBytes < 0 || h.repLen < 0 ||
		h.kind == pageDataV2 && int64(h.defBytes)+int64(h.repLen) > int64(min(h.compressed, h.uncompressed))) {
		c.fail("a page header has an impossible size")
	}
	return h
}
