package export

import (
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/zstd"
)

// parquetSink writes SPLIT.parquet, a row a document, with lists. Pages of ids refer to a dictionary, and all are compressed by zstd. No
// library is used, since those that write parquet add megabytes to the memory of every process.
type parquetSink struct {
	rows
	out     *file
	offset  int64 // bytes written
	columns []*parquetColumn
	zstd    *zstd.Encoder
	groups  []parquetGroup
	inGroup int64 // rows of the open row group
	total   int64
	bytes   int    // size of the open row group's values
	page    []byte // scratch: a page, and the same compressed
	stored  []byte
}

// A parquetColumn collects the pages of one column of a row group.
type parquetColumn struct {
	column
	kind   int    // physical type
	values []byte // the open page's; ids as they are stored in shards
	reps   []byte
	defs   []byte
	bit    int // the next bit in the last byte of values, for booleans

	entries    int // entries in the open page
	pages      []byte
	dictionary idDictionary
	chunk      parquetChunk
}

// A parquetChunk is what the footer says about a column of a row group.
type parquetChunk struct {
	dictionary, offset     int64 // where the dictionary's page begins, if there is one, and the first page of data
	entries, plain, stored int64
}

type parquetGroup struct {
	rows   int64
	chunks []parquetChunk
}

const (
	parquetPageBytes  = 1 << 20
	parquetGroupBytes = 8 << 20

	parquetBoolean, parquetInt32 = 0, 1
	parquetUint16                = 12 // converted types
	parquetList                  = 3
	parquetZstd                  = 6
	parquetPlain, parquetRLE     = 0, 3
	parquetByDictionary          = 8    // encodings
	parquetData, parquetIDs      = 0, 2 // kinds of pages
)

func newParquetSink(base string, of []column) (*parquetSink, error) {
	s := &parquetSink{}
	s.rows = rows{format: Parquet, width: of[0].width, add: s.add}
	for _, c := range of {
		kind := parquetInt32
		if c.width == 0 {
			kind = parquetBoolean
		}
		s.columns = append(s.columns, &parquetColumn{column: c, kind: kind})
	}
	var err error
	if s.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return nil, err
	}
	if s.out, err = create(base + parquetSuffix); err != nil {
		return nil, err
	}
	return s, s.write([]byte("PAR1"))
}

func (s *parquetSink) write(data []byte) error {
	s.offset += int64(len(data))
	_, err := s.out.Write(data)
	return err
}

func (s *parquetSink) add(d *document) error {
	for _, c := range s.columns {
		switch c.part {
		case inputIDs:
			c.appendIDs(d.input)
		case labelIDs:
			c.appendIDs(d.labels)
		default:
			c.appendMask(d.mask)
		}
		if len(c.values) >= parquetPageBytes {
			s.endPage(c)
		}
	}
	s.inGroup++
	s.bytes += len(d.input)/s.width*4 + len(d.labels)/s.width*4
	if s.bytes < parquetGroupBytes && s.inGroup < math.MaxInt32/2 {
		return nil
	}
	return s.endGroup()
}

// appendRun appends a run of levels that are 0 or 1.
func appendRun(dst []byte, n int, level byte) []byte {
	if n == 0 {
		return dst
	}
	return append(binary.AppendUvarint(dst, uint64(n)<<1), level)
}

// begin appends the levels of a list of n values.
func (c *parquetColumn) begin(n int) {
	c.reps = appendRun(c.reps, 1, 0)
	if n == 0 {
		c.defs = appendRun(c.defs, 1, 0)
		c.entries++
		return
	}
	c.reps = appendRun(c.reps, n-1, 1)
	c.defs = appendRun(c.defs, n, 1)
	c.entries += n
}

func (c *parquetColumn) appendIDs(raw []byte) {
	c.begin(len(raw) / c.width)
	c.values = append(c.values, raw...)
}

func (c *parquetColumn) appendMask(mask []bool) {
	c.begin(len(mask))
	for _, on := range mask {
		if c.bit == 0 {
			c.values = append(c.values, 0)
		}
		if on {
			c.values[len(c.values)-1] |= 1 << c.bit
		}
		c.bit = (c.bit + 1) % 8
	}
}

// endPage compresses the open page of a column.
func (s *parquetSink) endPage(c *parquetColumn) {
	if c.entries == 0 {
		return
	}
	page := s.page[:0]
	for _, levels := range [][]byte{c.reps, c.defs} {
		page = binary.LittleEndian.AppendUint32(page, uint32(len(levels)))
		page = append(page, levels...)
	}
	encoding := parquetPlain
	if c.kind == parquetBoolean {
		page = append(page, c.values...)
	} else if indexed, ok := c.dictionary.appendIndexes(page, c.values, c.width); ok {
		page, encoding = indexed, parquetByDictionary
	} else {
		page = appendWide(page, c.values, c.width)
	}
	c.pages = s.appendPage(c.pages, page, parquetData, &c.chunk, func(h *thriftWriter) {
		h.structure(5)
		h.int(1, int64(c.entries))
		h.int(2, int64(encoding))
		h.int(3, parquetRLE)
		h.int(4, parquetRLE)
		h.end()
	})
	c.chunk.entries += int64(c.entries)
	c.values, c.reps, c.defs, c.bit, c.entries = c.values[:0], c.reps[:0], c.defs[:0], 0, 0
}

// appendPage appends a page, compressed, after its header, whose end describe writes. page is
// s.page or grew from it.
func (s *parquetSink) appendPage(dst, page []byte, kind int, ch *parquetChunk,
	describe func(h *thriftWriter)) []byte {
	stored := s.zstd.EncodeAll(page, s.stored[:0])
	if s.page, s.stored = page, stored; cap(page) > 4*parquetPageBytes { // a long document's
		s.page, s.stored = nil, nil
	}
	var h thriftWriter
	h.begin()
	h.int(1, int64(kind))
	h.int(2, int64(len(page)))
	h.int(3, int64(len(stored)))
	describe(&h)
	h.end()
	ch.plain += int64(len(h.out) + len(page))
	ch.stored += int64(len(h.out) + len(stored))
	return append(append(dst, h.out...), stored...)
}

func (s *parquetSink) endGroup() error {
	if s.inGroup == 0 {
		return nil
	}
	g := parquetGroup{rows: s.inGroup}
	for _, c := range s.columns {
		s.endPage(c)
		if err := s.writeDictionary(c); err != nil {
			return err
		}
		c.chunk.offset = s.offset
		if err := s.write(c.pages); err != nil {
			return err
		}
		g.chunks = append(g.chunks, c.chunk)
		c.chunk, c.pages = parquetChunk{}, c.pages[:0]
		if cap(c.values) > 4*parquetPageBytes { // a long document's
			c.values, c.pages = nil, nil
		}
	}
	s.groups = append(s.groups, g)
	s.total += s.inGroup
	s.inGroup, s.bytes = 0, 0
	return nil
}

// writeDictionary writes the dictionary of a column's pages and begins another one.
func (s *parquetSink) writeDictionary(c *parquetColumn) error {
	d := &c.dictionary
	if len(d.ids) == 0 {
		return nil
	}
	c.chunk.dictionary = s.offset
	values := s.page[:0]
	for _, id := range d.ids {
		values = binary.LittleEndian.AppendUint32(values, id)
	}
	page := s.appendPage(nil, values, parquetIDs, &c.chunk, func(h *thriftWriter) {
		h.structure(7)
		h.int(1, int64(len(d.ids)))
		h.int(2, parquetPlain)
		h.end()
	})
	d.reset()
	return s.write(page)
}

func (s *parquetSink) finish() error {
	if err := s.endGroup(); err != nil {
		return err
	}
	footer := s.footer()
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	if err := s.write(append(footer, "PAR1"...)); err != nil {
		return err
	}
	return s.out.commit()
}

func (s *parquetSink) discard() { s.out.discard() }

// footer returns the metadata of the file.
func (s *parquetSink) footer() []byte {
	var w thriftWriter
	w.begin()
	w.int(1, 1)
	w.list(2, 1+3*len(s.columns), thriftStructure)
	w.begin()
	w.text(4, "schema")
	w.int(5, int64(len(s.columns)))
	w.end()
	for _, c := range s.columns {
		w.begin()
		w.int(3, 0)
		w.text(4, c.name)
		w.int(5, 1)
		w.int(6, parquetList)
		w.end()
		w.begin()
		w.int(3, 2)
		w.text(4, "list")
		w.int(5, 1)
		w.end()
		w.begin()
		w.int(1, int64(c.kind))
		w.int(3, 0)
		w.text(4, "element")
		if c.width == 2 {
			w.int(6, parquetUint16)
		}
		w.end()
	}
	w.long(3, s.total)
	w.list(4, len(s.groups), thriftStructure)
	for _, g := range s.groups {
		s.group(&w, &g)
	}
	w.text(6, "dsload")
	w.end()
	return w.out
}

func (s *parquetSink) group(w *thriftWriter, g *parquetGroup) {
	w.begin()
	w.list(1, len(g.chunks), thriftStructure)
	var plain int64
	for i, ch := range g.chunks {
		plain += ch.plain
		w.begin()
		w.long(2, ch.offset)
		w.structure(3)
		w.int(1, int64(s.columns[i].kind))
		encodings := []int64{parquetPlain, parquetRLE}
		if ch.dictionary > 0 {
			encodings = append(encodings, parquetByDictionary)
		}
		w.list(2, len(encodings), thriftInt)
		for _, encoding := range encodings {
			w.zigzag(encoding)
		}
		w.list(3, 3, thriftText)
		for _, name := range []string{s.columns[i].name, "list", "element"} {
			w.string(name)
		}
		w.int(4, parquetZstd)
		w.long(5, ch.entries)
		w.long(6, ch.plain)
		w.long(7, ch.stored)
		w.long(9, ch.offset)
		if ch.dictionary > 0 {
			w.long(11, ch.dictionary)
		}
		w.end()
		w.end()
	}
	w.long(2, plain)
	w.long(3, g.rows)
	w.end()
}
