package columnar

import (
	"math"
	"slices"
)

// A pageHeader is what precedes a page.
type pageHeader struct {
	kind                     int32
	uncompressed, compressed int32
	crc                      *uint32
	values                   int32
	encoding                 int32
	// in pages of the second version
	defBytes, repLen int32
	isCompressed     bool
}

const (
	pageData = iota
	pageIndex
	pageDictionary
	pageDataV2
)

func (c *compact) pageHeader() (h pageHeader) {
	const none = math.MinInt64
	v := [5]int64{1: -1, 4: none}
	h.values, h.isCompressed = -1, true
	c.numbers(v[:], func(id int, kind byte) {
		if kind != thriftStruct || id != 5 && id != 7 && id != 8 {
			c.skip(kind)
			return
		}
		of := [7]int64{1: -1}
		c.numbers(of[:], func(field int, kind byte) {
			h.isCompressed = h.isCompressed && !(id == 8 && field == 7 && kind == thriftFalse)
			c.skip(kind)
		})
		if h.values, h.encoding = int32(of[1]), int32(of[2]); id == 8 {
			h.encoding, h.defBytes, h.repLen = int32(of[4]), int32(of[5]), int32(of[6])
		}
	})
	h.kind, h.uncompressed, h.compressed = int32(v[1]), int32(v[2]), int32(v[3])
	if v[4] != none {
		h.crc = new(uint32(v[4]))
	}
	if c.err == nil && (h.uncompressed < 0 || h.compressed < 0 || h.defBytes < 0 || h.repLen < 0 ||
		h.kind == pageDataV2 && int64(h.defBytes)+int64(h.repLen) > int64(min(h.compressed, h.uncompressed))) {
		c.fail("a page header has an impossible size")
	}
	return h
}

// A pageRoom is what the pages and dictionaries of all columns take in memory, and may take.
type pageRoom struct{ held, limit int64 }

// pageSizes are the bytes of the buffers that reading a column takes, as far as they are known.
type pageSizes struct{ stored, page, dict, ends int64 }

func (s *pageSizes) sum() int64 { return s.stored + s.page + s.dict + s.ends }

// bufferFor returns n bytes of a buffer. One that is too small is made as large as any page needs it, or where that
// is not known, somewhat larger than this one does: buffers that grow with the pages leave as much garbage behind.
func bufferFor(buf *[]byte, n int32, most int64) []byte {
	if cap(*buf) < int(n) && int64(n) < most {
		grown(buf, int(most))
	} else if cap(*buf) < int(n) {
		grown(buf, int(n)+int(n)/8)
	}
	return grown(buf, int(n))
}

// grown returns n bytes of a buffer, which it replaces if it is too small.
func grown(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = nil                         // free for the collector before the new one is there
		*buf = slices.Grow([]byte(nil), n) // all that the allocator rounds n up to: pages are nearly equal in size
	}
	*buf = (*buf)[:n]
	return *buf
}
