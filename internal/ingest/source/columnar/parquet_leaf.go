package columnar

import (
	"encoding/binary"
	"errors"
	"io"
)

// A leafReader gives the entries of one column of a row group: levels, and values where they are
// there. It holds one page, as it is stored and as it is read, and the dictionary.
type leafReader struct {
	f     *parquetFile
	n     *node
	codec *codec
	pages *pageRoom
	need  int64 // the most that page and dictionary have taken together
	most  pageSizes
	limit int64 // bytes of a value that is made of parts

	ahead *lookahead // nil where no pages are unpacked ahead

	group    int
	slot     int
	ch       *chunk
	pos, end int64 // where the pages to come lie in the file
	left     int64 // entries in pages to come
	inPage   int32 // entries of the page that are left

	head   compact // reads a page's header
	stored []byte  // a page as it is in the file, where it is compressed
	page   []byte
	dict   dictionary
	hasOne bool // a dictionary

	reps, defs hybrid
	vals       values

	have     bool // the current entry was read
	rep, def int
	value    []byte // nil if it is null or not there

	begun   int64 // rows of which an entry was taken
	broken  bool  // the last error was of this column
	damaged pageSpan
}

// A pageSpan is a page that may have to be passed over: where the next one begins, and its entries.
// next is 0 if that is not known.
type pageSpan struct{ next, entries int64 }

// headBytes is what of a page's header is in memory at once: statistics may make it any length.
const headBytes = 512

// seek goes to the beginning of a row group.
func (l *leafReader) seek(group, slot int) {
	l.group, l.slot, l.ch = group, slot, &l.f.groups.at(group).chunks[slot]
	l.pos, l.end, l.left = l.ch.offset, l.ch.offset+l.ch.size, l.ch.values
	l.inPage, l.have, l.hasOne = 0, false, false
	l.begun, l.broken, l.damaged = 0, false, pageSpan{}
}

// header reads a page's header; l.pos is then where the page begins.
func (l *leafReader) header() (h pageHeader, err error) {
	if l.head.buf == nil {
		l.head.buf = make([]byte, headBytes)
	}
	l.head.begin(l.f.at, l.pos, l.end)
	if h = l.head.pageHeader(); l.head.err != nil {
		return h, l.head.err
	}
	if l.pos = l.head.offset(); int64(h.compressed) > l.end-l.pos {
		return h, corrupt("a page is longer than its column")
	}
	return h, l.plausible(&h)
}

// plausible refuses a header that claims more than its column has: nothing is allocated for it.
func (l *leafReader) plausible(h *pageHeader) error {
	const much = 1 << 20
	if n := int64(h.uncompressed); n > much && n > l.ch.uncompressed && n > 8*int64(h.compressed) {
		return corrupt("a page is larger than its column")
	}
	if h.kind == pageDictionary && h.values > h.uncompressed {
		return corrupt(shortDictionary)
	}
	return nil
}

// peek goes to the next entry: io.EOF after the last one.
func (l *leafReader) peek() error {
	if l.have {
		return nil
	}
	err := l.read()
	l.broken = err != nil && err != io.EOF
	return err
}

func (l *leafReader) read() error {
	for l.inPage == 0 {
		if l.left == 0 {
			return io.EOF
		}
		if err := l.nextPage(); err != nil {
			return err
		}
	}
	l.inPage--
	l.rep, l.def, l.value = 0, l.n.def, nil
	if l.n.rep > 0 {
		v, err := l.reps.next()
		if err != nil {
			return err
		}
		if l.rep = int(v); l.rep > l.n.rep {
			return corrupt("a value repeats at an unknown level")
		}
	}
	if l.n.def > 0 {
		v, err := l.defs.next()
		if err != nil {
			return err
		}
		if l.def = int(v); l.def > l.n.def {
			return corrupt("a value is defined at an unknown level")
		}
	}
	if l.def == l.n.def {
		var err error
		if l.value, err = l.vals.next(); err != nil {
			return err
		}
	}
	l.have = true
	return nil
}

// take consumes the current entry.
func (l *leafReader) take() {
	if l.have = false; l.rep == 0 {
		l.begun++
	}
}

// nextPage reads the next page with values.
func (l *leafReader) nextPage() error {
	for {
		l.ahead.run(l)
		l.damaged = pageSpan{}
		if l.pos >= l.end {
			return corrupt("the column ends %d values early", l.left)
		}
		h, err := l.header()
		if err != nil {
			return err
		}
		l.damaged.next = l.pos + int64(h.compressed)
		switch h.kind {
		case pageDictionary:
			if err := l.dictionary(&h); err != nil {
				return err
			}
			continue
		case pageData, pageDataV2:
		default: // an index, or a kind that a later version adds
			l.pos += int64(h.compressed)
			continue
		}
		if h.values < 0 || int64(h.values) > l.left {
			l.damaged.next = 0
			return corrupt("a page has %d values where %d are left", h.values, l.left)
		}
		l.damaged.entries = int64(h.values)
		if err := l.data(&h); err != nil {
			return err
		}
		l.inPage, l.left = h.values, l.left-int64(h.values)
		l.damaged = pageSpan{}
		return nil
	}
}

// room checks that the page fits what was planned.
func (l *leafReader) room(h *pageHeader, what string) error {
	need := int64(h.uncompressed) + int64(len(l.dict.data)) + 4*int64(len(l.dict.ends))
	if what == "a dictionary" {
		need = int64(h.uncompressed) + 4*int64(max(0, h.values))
	}
	if l.ch.codec != codecNone {
		need += int64(h.compressed)
	}
	if need > l.need {
		if l.pages.held+need-l.need > l.pages.limit {
			return &SizeError{what, need}
		}
		l.pages.held += need - l.need
		l.need = need
	}
	return nil
}

// content reads a page's bytes and decompresses them into *dst, which takes at most so many bytes. The first plain
// bytes are not compressed.
func (l *leafReader) content(h *pageHeader, dst *[]byte, most int64, plain int) ([]byte, error) {
	isCompressed := l.ch.codec != codecNone && h.isCompressed
	p := packedPage{pageHeader: *h, at: l.pos, codec: l.ch.codec, plain: plain}
	if ready := l.ahead.take(&p); ready != nil {
		*dst, ready.bytes = ready.bytes, *dst
		l.pos += int64(h.compressed)
		return *dst, nil
	}
	into, mostInto := dst, most
	if isCompressed {
		into, mostInto = &l.stored, l.most.stored
	}
	stored := bufferFor(into, h.compressed, mostInto)
	if err := readAt(l.f.at, stored, l.pos); err != nil {
		return nil, err
	}
	l.pos += int64(h.compressed)
	if p.stored = stored; isCompressed {
		p.bytes = bufferFor(dst, h.uncompressed, most)
		return p.bytes, p.unpack(l.codec)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if h.compressed != h.uncompressed {
		return nil, corrupt("a page that is not compressed has two sizes")
	}
	return stored, nil
}

func (l *leafReader) dictionary(h *pageHeader) error {
	if l.hasOne || h.values < 0 {
		return corrupt("a column has two dictionaries")
	}
	if h.encoding != encodingPlain && h.encoding != encodingDictionary {
		return unsupported("a dictionary has encoding %d", h.encoding)
	}
	if err := l.room(h, "a dictionary"); err != nil {
		return err
	}
	data, err := l.content(h, &l.dict.data, l.most.dict, 0)
	if err != nil {
		return err
	}
	d := &l.dict
	d.data, d.width, d.n, d.ends = data, widthOf(l.n), int(h.values), d.ends[:0]
	if d.width > 0 {
		if len(data) < d.n*d.width {
			return corrupt(shortDictionary)
		}
		l.hasOne = true
		return nil
	}
	if l.n.kind == typeBoolean || len(data) < 4*d.n {
		return corrupt(shortDictionary)
	}
	if cap(d.ends) < d.n {
		d.ends = nil
		d.ends = make([]uint32, 0, max(d.n, int(l.most.ends/4)))
	}
	at := 0
	for range d.n {
		if len(data)-at < 4 {
			return corrupt(shortDictionary)
		}
		size := binary.LittleEndian.Uint32(data[at:])
		if uint64(size) > uint64(len(data)-at-4) {
			return corrupt(shortDictionary)
		}
		at += 4 + int(size)
		d.ends = append(d.ends, uint32(at))
	}
	l.hasOne = true
	return nil
}

// data prepares the values of a data page.
func (l *leafReader) data(h *pageHeader) error {
	if err := l.room(h, "a page"); err != nil {
		return err
	}
	levels := 0
	if h.kind == pageDataV2 {
		levels = int(h.defBytes) + int(h.repLen)
	}
	page, err := l.content(h, &l.page, l.most.page, levels)
	if err != nil {
		return err
	}
	if h.kind == pageDataV2 {
		l.reps = hybrid{data: page[:h.repLen], width: levelBits(l.n.rep)}
		l.defs = hybrid{data: page[h.repLen:levels], width: levelBits(l.n.def)}
		page = page[levels:]
	} else {
		for _, level := range []struct {
			max int
			to  *hybrid
		}{{l.n.rep, &l.reps}, {l.n.def, &l.defs}} {
			if level.max == 0 {
				continue
			}
			if len(page) < 4 || uint64(binary.LittleEndian.Uint32(page)) > uint64(len(page)-4) {
				return corrupt("the levels of a page are longer than it is")
			}
			n := 4 + int(binary.LittleEndian.Uint32(page))
			*level.to = hybrid{data: page[4:n], width: levelBits(level.max)}
			page = page[n:]
		}
	}
	there := int(h.values)
	if l.n.def > 0 && h.encoding == encodingSplit {
		// the page holds the split values alone, so its length gives their number
		there = len(page) / max(1, widthOf(l.n))
	}
	l.vals.limit = int(min(l.limit, 1<<30))
	var dict *dictionary
	if l.hasOne {
		dict = &l.dict
	}
	if there == 0 || len(page) == 0 && l.n.def > 0 {
		l.vals = values{encoding: encodingPlain, width: 1, last: l.vals.last[:0]} // any value is one too many
		return nil
	}
	return l.vals.begin(l.n, h.encoding, page, there, dict)
}

// Of a remote chunk, the headers of the first pages are looked at: so many of them, or of those that
// hold their values themselves, as all do once a dictionary is full. The rest are then taken to be at
// most twice as large.
const (
	firstPages      = 64
	firstPlainPages = 4
	firstBytes      = 4 << 20 // what is asked for at once
)

// largest returns the bytes that reading a chunk takes at most, from the headers of its pages. It
// stops early once it knows that they are at most enough. What it found out is in l.most.
func (l *leafReader) largest(enough int64) (int64, error) {
	var s pageSizes
	defer func() {
		l.most = pageSizes{max(l.most.stored, s.stored), max(l.most.page, s.page), max(l.most.dict, s.dict),
			max(l.most.ends, s.ends)}
	}()
	pages, plain := 0, 0
	left := l.ch.values
	if l.f.options.Remote {
		l.f.announce([]Span{{l.pos, l.pos + min(firstBytes, l.ch.size)}}, false)
	}
	for left > 0 && l.pos < l.end {
		h, err := l.header()
		if errors.Is(err, ErrCorrupt) {
			break // reading ends here as well
		}
		if err != nil {
			return 0, err
		}
		l.pos += int64(h.compressed)
		if l.ch.codec != codecNone {
			s.stored = max(s.stored, int64(h.compressed))
		}
		if h.kind == pageDictionary {
			s.dict, s.ends = int64(h.uncompressed), 4*int64(max(0, h.values))
			continue
		}
		s.page = max(s.page, int64(h.uncompressed))
		left -= int64(max(0, h.values))
		if pages++; h.encoding != encodingDictionary && h.encoding != encodingDictRLE {
			plain++
		}
		if l.f.options.Remote && left > 0 && (pages == firstPages || plain == firstPlainPages) {
			return min(s.sum()+s.page+s.stored, l.ch.bound()), nil
		}
		if rest := 2*(l.end-l.pos) + l.ch.uncompressed; s.sum()+rest <= enough {
			return max(s.sum(), enough), nil
		}
	}
	return s.sum(), nil
}
