package export

import (
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/zstd"
)

// parquetSink writes SPLIT.parquet, a row a document: input_ids, and labels and loss_mask where the
// dataset has them, as lists. Pages are plain and compressed by zstd. No library is used, since
// those that write parquet add megabytes to the memory of every process.
type parquetSink struct {
	rows
	out     *file
	offset  int64 // bytes written
	columns []*parquetColumn
	zstd    *zstd.Encoder
	groups  []parquetGroup
	inGroup int64 // of the open row group
	total   int64
	bytes   int    // of the values of the open row group
	page    []byte // scratch: a page, and the same compressed
	stored  []byte
}

// A parquetColumn collects the pages of one column of a row group.
type parquetColumn struct {
	name   string
	kind   int // physical type
	values []byte
	reps   []byte
	defs   []byte
	bit    int // of the last byte of values, for booleans

	entries int // of the open page
	pages   []byte
	chunk   parquetChunk
}

// A parquetChunk is what the footer says about a column of a row group.
type parquetChunk struct{ offset, entries, plain, stored int64 }

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
)

func newParquetSink(base string, width int, labels, mask bool) (*parquetSink, error) {
	s := &parquetSink{}
	s.rows = rows{format: Parquet, width: width, add: s.add}
	s.columns = []*parquetColumn{{name: "input_ids", kind: parquetInt32}}
	if labels {
		s.columns = append(s.columns, &parquetColumn{name: "labels", kind: parquetInt32})
	}
	if mask {
		s.columns = append(s.columns, &parquetColumn{name: "loss_mask", kind: parquetBoolean})
	}
	var err error
	if s.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<20)); err != nil {
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
		switch c.name {
		case "input_ids":
			c.appendIDs(d.input, s.width)
		case "labels":
			c.appendIDs(d.labels, s.width)
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

func (c *parquetColumn) appendIDs(raw []byte, width int) {
	c.begin(len(raw) / width)
	if width == 4 {
		c.values = append(c.values, raw...)
		return
	}
	for ; len(raw) >= 4; raw = raw[4:] { // two at once
		two := binary.LittleEndian.Uint32(raw)
		c.values = binary.LittleEndian.AppendUint64(c.values, uint64(two&0xffff)|uint64(two>>16)<<32)
	}
	if len(raw) >= 2 {
		c.values = append(c.values, raw[0], raw[1], 0, 0)
	}
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
	page = append(page, c.values...)
	stored := s.zstd.EncodeAll(page, s.stored[:0])
	if s.page, s.stored = page, stored; cap(page) > 4*parquetPageBytes { // of a long document
		s.page, s.stored = nil, nil
	}
	var h thriftWriter
	h.begin()
	h.int(1, 0) // a data page
	h.int(2, int64(len(page)))
	h.int(3, int64(len(stored)))
	h.structure(5)
	h.int(1, int64(c.entries))
	h.int(2, parquetPlain)
	h.int(3, parquetRLE)
	h.int(4, parquetRLE)
	h.end()
	h.end()
	c.pages = append(append(c.pages, h.out...), stored...)
	c.chunk.entries += int64(c.entries)
	c.chunk.plain += int64(len(h.out) + len(page))
	c.chunk.stored += int64(len(h.out) + len(stored))
	c.values, c.reps, c.defs, c.bit, c.entries = c.values[:0], c.reps[:0], c.defs[:0], 0, 0
}

func (s *parquetSink) endGroup() error {
	if s.inGroup == 0 {
		return nil
	}
	g := parquetGroup{rows: s.inGroup}
	for _, c := range s.columns {
		s.endPage(c)
		c.chunk.offset = s.offset
		if err := s.write(c.pages); err != nil {
			return err
		}
		g.chunks = append(g.chunks, c.chunk)
		c.chunk, c.pages = parquetChunk{}, c.pages[:0]
		if cap(c.values) > 4*parquetPageBytes { // of a long document
			c.values, c.pages = nil, nil
		}
	}
	s.groups = append(s.groups, g)
	s.total += s.inGroup
	s.inGroup, s.bytes = 0, 0
	return nil
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
		if c.kind == parquetInt32 && s.width == 2 {
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
		w.list(2, 2, thriftInt)
		w.zigzag(parquetPlain)
		w.zigzag(parquetRLE)
		w.list(3, 3, thriftText)
		for _, name := range []string{s.columns[i].name, "list", "element"} {
			w.string(name)
		}
		w.int(4, parquetZstd)
		w.long(5, ch.entries)
		w.long(6, ch.plain)
		w.long(7, ch.stored)
		w.long(9, ch.offset)
		w.end()
		w.end()
	}
	w.long(2, plain)
	w.long(3, g.rows)
	w.end()
}

// A thriftWriter writes Thrift's compact protocol, in which parquet has its metadata.
type thriftWriter struct {
	out  []byte
	last []int // the field written last in each open struct
}

const (
	thriftInt       = 5
	thriftLong      = 6
	thriftText      = 8
	thriftSequence  = 9
	thriftStructure = 12
)

func (w *thriftWriter) begin() { w.last = append(w.last, 0) }

func (w *thriftWriter) end() {
	w.out = append(w.out, 0)
	w.last = w.last[:len(w.last)-1]
}

// field writes the header of a field; ids increase by less than 16.
func (w *thriftWriter) field(id, kind int) {
	last := &w.last[len(w.last)-1]
	w.out = append(w.out, byte((id-*last)<<4|kind))
	*last = id
}

func (w *thriftWriter) zigzag(v int64) {
	w.out = binary.AppendUvarint(w.out, uint64(v<<1)^uint64(v>>63))
}

func (w *thriftWriter) int(id int, v int64) {
	w.field(id, thriftInt)
	w.zigzag(v)
}

func (w *thriftWriter) long(id int, v int64) {
	w.field(id, thriftLong)
	w.zigzag(v)
}

func (w *thriftWriter) string(s string) {
	w.out = append(binary.AppendUvarint(w.out, uint64(len(s))), s...)
}

func (w *thriftWriter) text(id int, s string) {
	w.field(id, thriftText)
	w.string(s)
}

func (w *thriftWriter) structure(id int) {
	w.field(id, thriftStructure)
	w.begin()
}

func (w *thriftWriter) list(id, n, kind int) {
	w.field(id, thriftSequence)
	if n < 15 {
		w.out = append(w.out, byte(n<<4|kind))
		return
	}
	w.out = binary.AppendUvarint(append(w.out, byte(15<<4|kind)), uint64(n))
}
