package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"sync"
)

// SplitReader reaches any row of a split in constant time: a search in memory over shards and record batches, then reads by
// position. It is safe for concurrent use.
type SplitReader struct {
	d      *Dataset
	info   *SplitInfo
	width  int64
	starts []int64 // the first row of each shard, and the number of rows
	shards []readShard
}

// Info is the split's entry in the manifest, not to be changed.
func (r *SplitReader) Info() *SplitInfo { return r.info }

// NumRows is the number of rows; they are numbered from 0 in the order in which they were appended.
func (r *SplitReader) NumRows() int64 { return r.info.Examples }

// IDWidth is the number of bytes of an id: 2 or 4.
func (r *SplitReader) IDWidth() int { return int(r.width) }

// Schema says which columns rows have.
func (r *SplitReader) Schema() Schema { return r.d.manifest.Schema }

// Span is where the input_ids of a row lie: Len ids from byte Off of a shard. It stays true for as long as the dataset is
// open, so a row whose length is asked for first costs only one read more.
type Span struct {
	Off   int64
	Shard int32
	Len   int32
}

// Locate finds the input_ids of rows: dst[i] for rows[i]. It takes a read of 8 bytes a row, one for a run of consecutive rows.
func (r *SplitReader) Locate(dst []Span, rows []int64) error {
	return r.locate(rows, func(i int, s Span) { dst[i] = s })
}

// Lengths gives the number of input_ids of rows: dst[i] for rows[i]. It costs what Locate costs.
func (r *SplitReader) Lengths(dst []int32, rows []int64) error {
	return r.locate(rows, func(i int, s Span) { dst[i] = s.Len })
}

func (r *SplitReader) locate(rows []int64, set func(int, Span)) error {
	sc := getScratch()
	defer putScratch(sc)
	for i := 0; i < len(rows); {
		n := 1
		for i+n < len(rows) && n < maxBatchRows && rows[i+n] == rows[i]+int64(n) {
			n++
		}
		if err := r.locateRun(sc, rows[i], n, i, set); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// locateRun locates the n rows from first on, which are those from at on in the caller's numbering.
func (r *SplitReader) locateRun(sc *readScratch, first int64, n, at int, set func(int, Span)) error {
	for n > 0 {
		p, err := r.place(first)
		if err != nil {
			return err
		}
		m := min(n, int(p.rows-p.row))
		raw := sc.take(4 * (m + 1))
		err = readFull(p.s.file, p.s.path, raw, p.body+4*p.row)
		p.s.mu.RUnlock()
		if err != nil {
			return err
		}
		a := int64(int32(binary.LittleEndian.Uint32(raw)))
		values := align64(4 * (p.rows + 1))
		for j := range m {
			b := int64(int32(binary.LittleEndian.Uint32(raw[4*j+4:])))
			if a < 0 || b <= a || b-a > maxRowTokens || values+b*r.width > p.bodyLen {
				return r.damaged(p, j, "offsets %d to %d in a batch of %d bytes", a, b, p.bodyLen)
			}
			set(at+j, Span{Off: p.body + values + a*r.width, Shard: int32(p.shard), Len: int32(b - a)})
			a = b
		}
		first, at, n = first+int64(m), at+m, n-m
	}
	return nil
}

// AppendIDs appends the input_ids of spans, in their order, as they are on disk: little-endian, IDWidth bytes an id. Spans
// that adjoin are read at once.
func (r *SplitReader) AppendIDs(dst []byte, spans []Span) ([]byte, error) {
	for i := 0; i < len(spans); {
		first := spans[i]
		if first.Shard < 0 || int(first.Shard) >= len(r.shards) || first.Off < 0 || first.Len < 0 {
			return dst, fmt.Errorf("span of shard %d: %w", first.Shard, ErrRange)
		}
		size := int64(first.Len) * r.width
		for i++; i < len(spans) && spans[i].Shard == first.Shard && spans[i].Off == first.Off+size && spans[i].Len >= 0; i++ {
			size += int64(spans[i].Len) * r.width
		}
		if first.Off+size > r.info.Shards[first.Shard].Bytes {
			return dst, fmt.Errorf("span of %d bytes at %d: %w", size, first.Off, ErrRange)
		}
		s, err := r.acquire(int(first.Shard))
		if err != nil {
			return dst, err
		}
		at := len(dst)
		dst = slices.Grow(dst, int(size))[:at+int(size)]
		err = readFull(s.file, s.path, dst[at:], first.Off)
		s.mu.RUnlock()
		if err != nil {
			return dst[:at], err
		}
	}
	return dst, nil
}

// Row is a row as it is on disk; its slices are reused by the next read into it. Columns that the schema has not or that
// were not asked for are empty.
type Row struct {
	Width    int    // bytes of an id: 2 or 4
	InputIDs []byte // little-endian ids
	Labels   []byte // likewise
	LossMask []bool
	Segments []int32
	Document int64
	Part     int32
}

// AppendInputIDs and AppendLabels append the ids as numbers.
func (row *Row) AppendInputIDs(dst []uint32) []uint32 { return appendIDs(dst, row.InputIDs, row.Width) }

// AppendLabels appends the labels as numbers.
func (row *Row) AppendLabels(dst []uint32) []uint32 { return appendIDs(dst, row.Labels, row.Width) }

func appendIDs(dst []uint32, raw []byte, width int) []uint32 {
	if width == 2 {
		for i := 0; i+2 <= len(raw); i += 2 {
			dst = append(dst, uint32(binary.LittleEndian.Uint16(raw[i:])))
		}
		return dst
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		dst = append(dst, binary.LittleEndian.Uint32(raw[i:]))
	}
	return dst
}

// Columns is a set of columns to read.
type Columns uint8

// The columns; input_ids are always read. AllColumns reads what the schema has.
const (
	ColumnLabels Columns = 1 << iota
	ColumnLossMask
	ColumnSegments
	ColumnDocument         // document and part
	AllColumns     Columns = 1<<iota - 1
)

// ReadRow reads every column of a row.
func (r *SplitReader) ReadRow(i int64, dst *Row) error { return r.ReadColumns(i, AllColumns, dst) }

// ReadColumns reads input_ids and the columns in want of row i into dst, whose buffers it reuses. Each column costs two
// reads (document and part together too), and the first one after input_ids another.
func (r *SplitReader) ReadColumns(i int64, want Columns, dst *Row) error {
	sc := getScratch()
	defer putScratch(sc)
	p, err := r.place(i)
	if err != nil {
		return err
	}
	defer p.s.mu.RUnlock()
	l := r.d.layout
	*dst = Row{Width: int(r.width), InputIDs: dst.InputIDs[:0], Labels: dst.Labels[:0], LossMask: dst.LossMask[:0], Segments: dst.Segments[:0]}
	ids := bufferPlan{offsetsLen: 4 * (p.rows + 1), valuesAt: align64(4 * (p.rows + 1))}
	ids.valuesLen = p.bodyLen - ids.valuesAt
	if dst.InputIDs, _, err = r.readList(sc, p, l.cols[0].value, ids, dst.InputIDs); err != nil {
		return err
	}
	if want &= r.has(); want == 0 {
		return nil
	}
	plans, err := r.readPlans(sc, p)
	if err != nil {
		return err
	}
	if c := l.places[colLabels]; c >= 0 && want&ColumnLabels != 0 {
		if dst.Labels, _, err = r.readList(sc, p, l.cols[c].value, plans[c], dst.Labels); err != nil {
			return err
		}
	}
	if c := l.places[colLossMask]; c >= 0 && want&ColumnLossMask != 0 {
		bits, first, err := r.readList(sc, p, typeBool, plans[c], sc.bits)
		if err != nil {
			return err
		}
		sc.bits = bits
		// The bitmap gives whole bytes; the row has as many values as ids.
		for j := range int64(len(dst.InputIDs)) / r.width {
			k := first&7 + j
			if k>>3 >= int64(len(bits)) {
				return r.damaged(p, 0, "loss_mask shorter than input_ids")
			}
			dst.LossMask = append(dst.LossMask, bits[k>>3]>>(k&7)&1 == 1)
		}
	}
	if c := l.places[colSegments]; c >= 0 && want&ColumnSegments != 0 {
		if sc.bits, _, err = r.readList(sc, p, typeInt32, plans[c], sc.bits); err != nil {
			return err
		}
		for j := 0; j < len(sc.bits); j += 4 {
			dst.Segments = append(dst.Segments, int32(binary.LittleEndian.Uint32(sc.bits[j:])))
		}
		if err := checkSegments(dst.Segments, len(dst.InputIDs)/int(r.width)); err != nil {
			return r.damaged(p, 0, "%v", err)
		}
	}
	if want&ColumnDocument != 0 {
		raw := sc.take(12)
		at := p.body + plans[l.places[colDocument]].valuesAt + 8*p.row
		if err := readFull(p.s.file, p.s.path, raw[:8], at); err != nil {
			return err
		}
		at = p.body + plans[l.places[colPart]].valuesAt + 4*p.row
		if err := readFull(p.s.file, p.s.path, raw[8:], at); err != nil {
			return err
		}
		dst.Document = int64(binary.LittleEndian.Uint64(raw))
		dst.Part = int32(binary.LittleEndian.Uint32(raw[8:]))
	}
	return nil
}

// has is the set of columns that the schema has.
func (r *SplitReader) has() Columns {
	c := ColumnDocument
	s := &r.d.manifest.Schema
	if s.Labels {
		c |= ColumnLabels
	}
	if s.LossMask {
		c |= ColumnLossMask
	}
	if s.Segments {
		c |= ColumnSegments
	}
	return c
}

// place is where a row is: in a batch of a shard, which is held shared.
type place struct {
	s       *readShard
	shard   int
	start   int64 // of the batch's message in the file
	body    int64 // of its body
	bodyLen int64
	rows    int64 // of the batch
	row     int64 // in the batch
	inShard int64 // in the shard
}

// place finds a row and opens its shard; the caller unlocks p.s.mu.
func (r *SplitReader) place(row int64) (p place, err error) {
	if row < 0 || row >= r.info.Examples {
		return p, fmt.Errorf("row %d of %d: %w", row, r.info.Examples, ErrRange)
	}
	p.shard = sort.Search(len(r.shards), func(i int) bool { return r.starts[i+1] > row })
	if p.s, err = r.acquire(p.shard); err != nil {
		return p, err
	}
	p.inShard = row - r.starts[p.shard]
	b := find(p.s.index, uint32(p.inShard))
	k, next := p.s.index[b], p.s.index[b+1]
	p.start = int64(k.pos) * bufferAlign
	p.body = p.start + r.d.layout.metaLen
	p.bodyLen = int64(next.pos)*bufferAlign - p.body
	p.rows = int64(next.row - k.row)
	p.row = p.inShard - int64(k.row)
	return p, nil
}

// readPlans reads where the columns of p's batch are, and checks the message for what it has to be.
func (r *SplitReader) readPlans(sc *readScratch, p place) ([]bufferPlan, error) {
	l := r.d.layout
	raw := sc.take(int(l.metaLen))
	if err := readFull(p.s.file, p.s.path, raw, p.start); err != nil {
		return nil, err
	}
	if !l.readBatchMeta(sc, raw, p.rows, p.bodyLen) {
		return nil, corrupt(p.s.path, p.start, "record batch metadata differ from what the footer says")
	}
	return sc.plans, nil
}

// readBatchMeta takes the plan of a batch out of its message, into sc.plans, and accepts only what appendBatchMeta makes.
func (l *layout) readBatchMeta(sc *readScratch, raw []byte, rows, body int64) bool {
	sc.values = sc.values[:0]
	node := l.nodesAt
	for _, c := range l.cols {
		if c.list {
			node += 16
		}
		n := int64(binary.LittleEndian.Uint64(raw[node:]))
		if n < 0 || n > 8*body || !c.list && n != rows {
			return false
		}
		sc.values = append(sc.values, n)
		node += 16
	}
	var planned int64
	sc.plans, planned = l.plan(sc.plans[:0], rows, sc.values)
	sc.meta = l.appendBatchMeta(sc.meta[:0], rows, sc.values, sc.plans, body)
	return planned == body && string(sc.meta) == string(raw)
}

// readList reads the values of p's row of a list column into dst, from its start, and the number of the first one in the
// batch. Bits come in whole bytes.
func (r *SplitReader) readList(sc *readScratch, p place, t valueType, plan bufferPlan, dst []byte) (_ []byte, first int64, err error) {
	raw := sc.take(8)
	if err := readFull(p.s.file, p.s.path, raw, p.body+plan.offsetsAt+4*p.row); err != nil {
		return dst[:0], 0, err
	}
	a, b := int64(int32(binary.LittleEndian.Uint32(raw))), int64(int32(binary.LittleEndian.Uint32(raw[4:])))
	from, to := t.bytes(a), t.bytes(b)
	if t == typeBool {
		from = a >> 3
	}
	if a < 0 || b < a || b-a > maxRowTokens || to > plan.valuesLen {
		return dst[:0], 0, r.damaged(p, 0, "offsets %d to %d in a column of %d bytes", a, b, plan.valuesLen)
	}
	dst = slices.Grow(dst[:0], int(to-from))[:to-from]
	return dst, a, readFull(p.s.file, p.s.path, dst, p.body+plan.valuesAt+from)
}

// damaged is the error for a row of a shard, the j-th after p's.
func (r *SplitReader) damaged(p place, j int, format string, args ...any) error {
	return &FileError{File: p.s.path, Offset: p.body, Row: p.inShard + int64(j),
		Cause: fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))}
}

// openForReading opens a file that the manifest names.
func openForReading(fsys FS, path string) (File, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &FileError{File: path, Offset: -1, Row: -1, Cause: fmt.Errorf("%w: the file is missing", ErrCorrupt)}
	}
	return f, err
}

// readScratch is what a read needs besides its result.
type readScratch struct {
	buf    []byte
	bits   []byte
	meta   []byte
	values []int64
	plans  []bufferPlan
}

var scratchPool = sync.Pool{New: func() any { return new(readScratch) }}

func getScratch() *readScratch { return scratchPool.Get().(*readScratch) }

func putScratch(sc *readScratch) {
	if cap(sc.bits) > 64<<10 {
		sc.bits = nil
	}
	scratchPool.Put(sc)
}

// take gives n bytes of any content, until the next take.
func (sc *readScratch) take(n int) []byte {
	sc.buf = slices.Grow(sc.buf[:0], n)[:n]
	return sc.buf
}
