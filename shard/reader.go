package shard

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/shardfile"
)

// Split reads any row of a split, by a search in memory over shards and record batches and
// then a few reads by position. It is safe for concurrent use.
type Split struct {
	d      *Dataset
	number int // among the splits of d
	info   *SplitInfo
	width  int64
	table  shardTable
	states *shardStates
}

// Info returns the split's entry in the manifest. It must not be changed.
func (r *Split) Info() *SplitInfo { return r.info }

// NumRows returns the number of rows. They are numbered from 0 in the order in which they were
// appended.
func (r *Split) NumRows() int64 { return r.info.Examples }

// IDWidth returns the number of bytes of an id: 2 or 4.
func (r *Split) IDWidth() int { return int(r.width) }

// Schema returns the schema, which says which columns rows have.
func (r *Split) Schema() Schema { return r.d.manifest.Schema }

// ReadRow reads every column of a row.
func (r *Split) ReadRow(i int64, dst *Row) error { return r.ReadColumns(i, AllColumns, dst) }

// Rows iterates over rows from up to, without, end. The Row is the same one each time, and its buffers are used
// again. The first error ends the loop; its Row is nil.
func (r *Split) Rows(from, end int64) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		if from < 0 || from > end || end > r.NumRows() {
			yield(nil, fmt.Errorf("rows %d to %d of %d: %w", from, end, r.NumRows(), ErrRange))
			return
		}
		var row Row
		for i := from; i < end; i++ {
			if err := r.ReadRow(i, &row); err != nil {
				yield(nil, err)
				return
			}
			if !yield(&row, nil) {
				return
			}
		}
	}
}

// ReadColumns reads input_ids and the columns in want of row i into dst, and reuses dst's buffers.
// Each column costs two reads (document and part count as one), and the first one after input_ids
// costs another.
func (r *Split) ReadColumns(i int64, want Columns, dst *Row) error {
	sc := getScratch()
	defer putScratch(sc)
	p, err := r.openRow(i)
	if err != nil {
		return err
	}
	defer p.s.mu.RUnlock()
	l := r.d.layout
	*dst = Row{Width: int(r.width), InputIDs: dst.InputIDs[:0], Labels: dst.Labels[:0], LossMask: dst.LossMask[:0],
		Segments: dst.Segments[:0]}
	ids, err := r.placeOf(sc, p, shardfile.ColInputIDs)
	if err != nil {
		return err
	}
	if dst.InputIDs, err = r.readIDs(sc, p, shardfile.ColInputIDs, ids, dst.InputIDs); err != nil {
		return err
	}
	if want &= r.has(); want == 0 {
		return nil
	}
	places, err := r.readPlaces(sc, p)
	if err != nil {
		return err
	}
	if c := l.ColIndex[shardfile.ColLabels]; c >= 0 && want&ColumnLabels != 0 {
		if dst.Labels, err = r.readIDs(sc, p, shardfile.ColLabels, places[c], dst.Labels); err != nil {
			return err
		}
	}
	if c := l.ColIndex[shardfile.ColLossMask]; c >= 0 && want&ColumnLossMask != 0 {
		if err := r.readLossMask(sc, p, places[c], dst); err != nil {
			return err
		}
	}
	if c := l.ColIndex[shardfile.ColSegments]; c >= 0 && want&ColumnSegments != 0 {
		if err := r.readSegments(sc, p, places[c], dst); err != nil {
			return err
		}
	}
	if want&ColumnDocument != 0 {
		return r.readDocument(sc, p, places, dst)
	}
	return nil
}

// readLossMask reads the loss mask of p's row, whose input_ids are already in dst.
func (r *Split) readLossMask(sc *readScratch, p rowRef, place shardfile.ColumnPlace, dst *Row) error {
	bits, first, err := r.readList(sc, p, shardfile.TypeBool, place, sc.bits)
	if err != nil {
		return err
	}
	sc.bits = bits
	// The bitmap is read in whole bytes; the row has as many values as ids.
	for j := range int64(len(dst.InputIDs)) / r.width {
		k := first&7 + j
		if k>>3 >= int64(len(bits)) {
			return r.damaged(p, 0, "loss_mask shorter than input_ids")
		}
		dst.LossMask = append(dst.LossMask, bits[k>>3]>>(k&7)&1 == 1)
	}
	return nil
}

// readSegments reads the segments of p's row, whose input_ids are already in dst.
func (r *Split) readSegments(sc *readScratch, p rowRef, place shardfile.ColumnPlace, dst *Row) (err error) {
	if sc.bits, _, err = r.readList(sc, p, shardfile.TypeInt32, place, sc.bits); err != nil {
		return err
	}
	for j := 0; j < len(sc.bits); j += 4 {
		dst.Segments = append(dst.Segments, int32(binary.LittleEndian.Uint32(sc.bits[j:])))
	}
	if err := shardfile.CheckSegments(dst.Segments, len(dst.InputIDs)/int(r.width)); err != nil {
		return r.damaged(p, 0, "%v", err)
	}
	return nil
}

// readDocument reads document and part of p's row.
func (r *Split) readDocument(sc *readScratch, p rowRef, places []shardfile.ColumnPlace, dst *Row) error {
	raw := sc.take(12)
	at := p.body + places[r.d.layout.ColIndex[shardfile.ColDocument]].ValuesAt + 8*p.row
	if err := p.s.read(raw[:8], at); err != nil {
		return err
	}
	at = p.body + places[r.d.layout.ColIndex[shardfile.ColPart]].ValuesAt + 4*p.row
	if err := p.s.read(raw[8:], at); err != nil {
		return err
	}
	dst.Document = int64(binary.LittleEndian.Uint64(raw))
	dst.Part = int32(binary.LittleEndian.Uint32(raw[8:]))
	return nil
}

func (r *Split) has() Columns {
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

// rowRef locates a row in a batch of a shard, which is locked for reading.
type rowRef struct {
	s       *readShard
	shard   int
	batch   int   // the batch's number in the shard
	start   int64 // where the batch's message begins in the file
	body    int64 // where its body begins
	bodyLen int64
	rows    int64 // rows in the batch
	row     int64 // in the batch
	inShard int64 // in the shard
}

// openRow finds a row, opens its shard and checks its record batch. The caller unlocks p.s.mu.
func (r *Split) openRow(row int64) (p rowRef, err error) {
	if p, err = r.findRow(row); err != nil {
		return p, err
	}
	if err := r.d.checkBatch(p.s, p.batch); err != nil {
		p.s.mu.RUnlock()
		return rowRef{}, err
	}
	return p, nil
}

// findRow is openRow without the check.
func (r *Split) findRow(row int64) (p rowRef, err error) {
	if row < 0 || row >= r.info.Examples {
		return p, fmt.Errorf("row %d of %d: %w", row, r.info.Examples, ErrRange)
	}
	var first int64
	if p.shard, first, err = r.table.find(row); err != nil {
		return p, err
	}
	if p.s, err = r.acquire(p.shard); err != nil {
		return p, err
	}
	p.inShard = row - first
	p.batch = find(p.s.index, uint32(p.inShard))
	k, next := p.s.index[p.batch], p.s.index[p.batch+1]
	p.start = int64(k.pos) * shardfile.BufferAlign
	p.body = p.start + r.d.layout.MetaLen
	p.bodyLen = int64(next.pos)*shardfile.BufferAlign - p.body
	p.rows = int64(next.row - k.row)
	p.row = p.inShard - int64(k.row)
	return p, nil
}

// readList reads the values of p's row of a list column into dst[:0]. first is the index of the
// first value in the batch. Bits come in whole bytes.
func (r *Split) readList(sc *readScratch, p rowRef, t shardfile.ValueType, place shardfile.ColumnPlace, dst []byte) (_ []byte,
	first int64, err error) {
	raw := sc.take(8)
	if err := p.s.read(raw, p.body+place.OffsetsAt+4*p.row); err != nil {
		return dst[:0], 0, err
	}
	a, b := int64(int32(binary.LittleEndian.Uint32(raw))), int64(int32(binary.LittleEndian.Uint32(raw[4:])))
	from, to := t.Bytes(a), t.Bytes(b)
	if t == shardfile.TypeBool {
		from = a >> 3
	}
	if a < 0 || b < a || b-a > shardfile.MaxRowTokens || to > place.ValuesLen {
		return dst[:0], 0, r.damaged(p, 0, "offsets %d to %d in a column of %d bytes", a, b, place.ValuesLen)
	}
	dst = slices.Grow(dst[:0], int(to-from))[:to-from]
	return dst, a, p.s.read(dst, p.body+place.ValuesAt+from)
}

// readIDs reads the ids of p's row. It checks that they are in the vocabulary, and their number
// against the manifest.
func (r *Split) readIDs(sc *readScratch, p rowRef, col int, place shardfile.ColumnPlace, dst []byte) ([]byte, error) {
	dst, first, err := r.readList(sc, p, r.d.layout.Cols[r.d.layout.ColIndex[col]].Value, place, dst)
	if err != nil {
		return dst, err
	}
	n := int64(len(dst)) / r.width
	if least, most := r.lengths(col); n < least || n > most {
		return dst, r.damaged(p, 0, "%d %s where the manifest says %d to %d", n,
			r.d.layout.Cols[r.d.layout.ColIndex[col]].Name, least, most)
	}
	return dst, r.checkIDs(dst, Span{Off: p.body + place.ValuesAt + first*r.width, Shard: int32(p.shard), Len: int32(n)})
}

// lengths returns the minimum and maximum number of values of a row in a list column.
func (r *Split) lengths(col int) (least, most int64) {
	switch col {
	case shardfile.ColInputIDs, shardfile.ColLossMask:
		return r.info.MinLength, r.info.MaxLength
	case shardfile.ColLabels:
		return 0, r.info.MaxLabels
	default: // segments
		return 1, r.info.MaxLength
	}
}

// damaged returns the error for a row of a shard, the j-th after p's.
func (r *Split) damaged(p rowRef, j int, format string, args ...any) error {
	return &shardfile.FileError{File: p.s.path, Offset: p.body, Row: p.inShard + int64(j),
		Cause: fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))}
}

// readScratch holds the temporary buffers of a read.
type readScratch struct {
	buf   []byte
	bits  []byte
	batch shardfile.BatchScratch
}

var scratchPool = sync.Pool{New: func() any { return new(readScratch) }}

func getScratch() *readScratch { return scratchPool.Get().(*readScratch) }

func putScratch(sc *readScratch) {
	if cap(sc.bits) > 64<<10 {
		sc.bits = nil
	}
	scratchPool.Put(sc)
}

// take returns n bytes of any content, valid until the next take.
func (sc *readScratch) take(n int) []byte {
	sc.buf = slices.Grow(sc.buf[:0], n)[:n]
	return sc.buf
}

// Documents stores the document number of row first+i in dst[i]. It costs one read for each record
// batch of these rows.
func (r *Split) Documents(dst []int64, first int64) error {
	sc := getScratch()
	defer putScratch(sc)
	for at := 0; at < len(dst); {
		p, err := r.openRow(first + int64(at))
		if err != nil {
			return err
		}
		n := min(len(dst)-at, int(p.rows-p.row))
		err = r.documentsOf(sc, p, dst[at:at+n])
		p.s.mu.RUnlock()
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// documentsOf is Documents for rows of one record batch, from p's row on.
func (r *Split) documentsOf(sc *readScratch, p rowRef, dst []int64) error {
	places, err := r.readPlaces(sc, p)
	if err != nil {
		return err
	}
	at := p.body + places[r.d.layout.ColIndex[shardfile.ColDocument]].ValuesAt + 8*p.row
	raw := sc.take(8 * len(dst))
	if err := p.s.read(raw, at); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return nil
}

// Extent is a record batch: what is read of a shard when one of its rows is first read.
type Extent struct {
	Path       string // where the shard is
	Off, Len   int64  // in bytes
	First, End int64  // its rows, as the split numbers them
}

// ShardOf returns the number of the shard that holds a row.
func (r *Split) ShardOf(row int64) (int, error) {
	if row < 0 || row >= r.info.Examples {
		return 0, fmt.Errorf("row %d of %d: %w", row, r.info.Examples, ErrRange)
	}
	i, _, err := r.table.find(row)
	return i, err
}

// OpenShard opens a shard as reading a row of it does, and checks its footer.
func (r *Split) OpenShard(i int) error {
	s, err := r.acquire(i)
	if err == nil {
		s.mu.RUnlock()
	}
	return err
}

// Extent returns the record batch of a row. It reads nothing where the shard is open.
func (r *Split) Extent(row int64) (Extent, error) {
	p, err := r.findRow(row)
	if err != nil {
		return Extent{}, err
	}
	defer p.s.mu.RUnlock()
	first := row - p.row
	return Extent{Path: p.s.path, Off: p.start, Len: p.body + p.bodyLen - p.start, First: first,
		End: first + p.rows}, nil
}
