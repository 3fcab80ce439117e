package shard

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
)

// Span locates the values of a row in one of its list columns: Len values from offset Off of a
// shard, in bytes, or in bits for loss_mask. It stays valid while the dataset is open, so a row
// that is located first costs one more read, not two.
type Span struct {
	Off   int64
	Shard int32
	Len   int32
}

// Locate finds the input_ids of rows: dst[i] for rows[i]. It reads 8 bytes for a row, once for
// ascending rows of a record batch, and nothing if the offsets of the record batch are cached
// (ReaderOptions.MaxOffsetBytes).
func (r *Split) Locate(dst []Span, rows []int64) error {
	return r.locate(shardfile.ColInputIDs, rows, true, func(i int, s Span) { dst[i] = s })
}

// LocateUnchecked is like Locate, but does not compare record batches with their checksums: AppendIDs
// does when it reads the spans. Until then, spans in a damaged record batch may be wrong. Few rows of
// many record batches are located much faster.
func (r *Split) LocateUnchecked(dst []Span, rows []int64) error {
	return r.locate(shardfile.ColInputIDs, rows, false, func(i int, s Span) { dst[i] = s })
}

// LocateColumn is like Locate for labels, loss_mask or segments, which the schema must have.
func (r *Split) LocateColumn(c Columns, dst []Span, rows []int64) error {
	col := bits.TrailingZeros8(uint8(c)) + shardfile.ColLabels
	if bits.OnesCount8(uint8(c)) != 1 || c == ColumnDocument || r.has()&c == 0 {
		return fmt.Errorf("%s: locate column %#x: %w", r.d.dir, c, ErrSchema)
	}
	return r.locate(col, rows, true, func(i int, s Span) { dst[i] = s })
}

// Lengths stores the number of input_ids of rows[i] in dst[i]. It costs as much as Locate.
func (r *Split) Lengths(dst []int32, rows []int64) error {
	return r.locate(shardfile.ColInputIDs, rows, true, func(i int, s Span) { dst[i] = s.Len })
}

func (r *Split) locate(col int, rows []int64, check bool, set func(int, Span)) error {
	sc := getScratch()
	defer putScratch(sc)
	for i := 0; i < len(rows); {
		p, err := r.findRow(rows[i])
		if err != nil {
			return err
		}
		if check {
			if err := r.d.checkBatch(p.s, p.batch); err != nil {
				p.s.mu.RUnlock()
				return err
			}
		}
		n := 1
		for i+n < len(rows) && rows[i+n] > rows[i+n-1] && rows[i+n]-rows[i] < p.rows-p.row {
			n++
		}
		err = r.locateRun(sc, col, p, rows[i:i+n], i, set)
		p.s.mu.RUnlock()
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// locateRun locates ascending rows of one batch, of which p is the first. It passes them to set with
// numbers from at on.
func (r *Split) locateRun(sc *readScratch, col int, p rowRef, rows []int64, at int, set func(int, Span)) error {
	place, err := r.placeOf(sc, p, col)
	if err != nil {
		return err
	}
	t := r.d.layout.Cols[r.d.layout.ColIndex[col]].Value
	span := func(a, b int64) Span {
		return Span{Off: p.body + place.ValuesAt + t.Bytes(a), Shard: int32(p.shard), Len: int32(b - a)}
	}
	if t == shardfile.TypeBool {
		span = func(a, b int64) Span {
			return Span{Off: 8*(p.body+place.ValuesAt) + a, Shard: int32(p.shard), Len: int32(b - a)}
		}
	}
	if page := r.page(sc, p, col, t, place, len(rows)); page != nil {
		end, next := int64(0), int64(-1)
		for j, row := range rows {
			k := p.row + row - rows[0]
			a := end
			if k != next {
				a = page.start(k)
			}
			end, next = a+page.length(k), k+1
			set(at+j, span(a, end))
		}
		return nil
	}
	raw := sc.take(4 * int(rows[len(rows)-1]-rows[0]+2))
	if err := p.s.read(raw, p.body+place.OffsetsAt+4*p.row); err != nil {
		return err
	}
	for j, row := range rows {
		offsets := raw[4*(row-rows[0]):]
		a := int64(int32(binary.LittleEndian.Uint32(offsets)))
		b := int64(int32(binary.LittleEndian.Uint32(offsets[4:])))
		if !r.holds(place, col, t, a, b) {
			least, most := r.lengths(col)
			return r.damaged(p, int(row-rows[0]),
				"offsets %d to %d in a column of %d bytes, whose rows have %d to %d values",
				a, b, place.ValuesLen, least, most)
		}
		set(at+j, span(a, b))
	}
	return nil
}

// holds reports whether the values from a to b of a column can be those of a row.
func (r *Split) holds(place shardfile.ColumnPlace, col int, t shardfile.ValueType, a, b int64) bool {
	least, most := r.lengths(col)
	return a >= 0 && b-a >= least && b-a <= most && t.Bytes(b) <= place.ValuesLen
}

// placeOf returns where a list column's buffers are in p's batch. For input_ids the footer suffices,
// except that ValuesLen then includes padding.
func (r *Split) placeOf(sc *readScratch, p rowRef, col int) (shardfile.ColumnPlace, error) {
	if col == shardfile.ColInputIDs {
		at := shardfile.Align64(4 * (p.rows + 1))
		return shardfile.ColumnPlace{OffsetsLen: 4 * (p.rows + 1), ValuesAt: at, ValuesLen: p.bodyLen - at}, nil
	}
	places, err := r.readPlaces(sc, p)
	if err != nil {
		return shardfile.ColumnPlace{}, err
	}
	return places[r.d.layout.ColIndex[col]], nil
}

// page returns the page of a column of p's batch, cached or made now, for so many rows of it. It
// returns nil if the rows have to be looked up in the file, because making the page does not pay, the
// cache has no room or the batch is damaged.
func (r *Split) page(sc *readScratch, p rowRef, col int, t shardfile.ValueType, place shardfile.ColumnPlace, rows int) *offsetPage {
	cache := &r.d.cache
	key := pageKey{split: uint8(r.number), column: uint8(col), shard: uint32(p.shard), batch: uint32(p.batch)}
	page := cache.get(key)
	if page != nil || !cache.wants(rows) {
		return page
	}
	raw := sc.take(int(place.OffsetsLen))
	if p.s.read(raw, p.body+place.OffsetsAt) != nil {
		return nil // reading the row itself reports damage that concerns it
	}
	least, most := r.lengths(col)
	page = newOffsetPage(raw, least, most)
	if page == nil || !r.holds(place, col, t, page.start(p.rows-1), page.start(p.rows-1)+page.length(p.rows-1)) {
		return nil
	}
	cache.put(key, page)
	return page
}

// AppendIDs appends the input_ids or labels of spans, in order, as they are on disk: little-endian,
// IDWidth bytes each. Contiguous spans are read at once. An id outside the vocabulary is ErrCorrupt:
// this is the only comparison on the way to a client, so it must stay with the read.
func (r *Split) AppendIDs(dst []byte, spans []Span) ([]byte, error) {
	at := len(dst)
	dst, err := r.appendAtOnce(dst, spans)
	if bad := r.checkIDs(dst[at:], spans...); bad != nil {
		return dst[:at], bad
	}
	return dst, err
}

// appendBytes is AppendIDs without comparing ids, by one goroutine.
func (r *Split) appendBytes(dst []byte, spans []Span) ([]byte, error) {
	reader := spanReader{r: r}
	defer reader.close()
	for len(spans) > 0 {
		found := reader.find(spans)
		i := 0
		for i < len(found) {
			if found[i] != nil {
				dst = append(dst, found[i]...)
				i++
				continue
			}
			n, size, err := r.run(spans[i:], 8*r.width)
			if err != nil {
				return dst, err
			}
			at := len(dst)
			dst = slices.Grow(dst, int(size/8))[:at+int(size/8)]
			if err := reader.read(dst[at:], spans[i].Shard, spans[i].Off); err != nil {
				return dst[:at], err
			}
			i += n
		}
		spans = spans[i:]
	}
	return dst, nil
}

// EachIDs passes the input_ids or labels of spans to visit, in order, as AppendIDs gives them: those of span i at once,
// or in several pieces if they take more than most bytes. It reads short spans together. buf is the memory for that,
// and what EachIDs returns can be so for the next call.
func (r *Split) EachIDs(buf []byte, spans []Span, most int64, visit func(i int, ids []byte) error) (_ []byte, err error) {
	for i := 0; i < len(spans); {
		n, size := 0, int64(0)
		for ; i+n < len(spans) && size+int64(spans[i+n].Len)*r.width <= most; n++ {
			size += int64(spans[i+n].Len) * r.width
		}
		if n == 0 { // a long row
			for long := spans[i]; long.Len > 0; {
				piece := Span{Off: long.Off, Shard: long.Shard, Len: min(long.Len, int32(most/r.width))}
				if buf, err = r.AppendIDs(buf[:0], []Span{piece}); err != nil {
					return buf, err
				}
				if err := visit(i, buf); err != nil {
					return buf, err
				}
				long.Off += int64(piece.Len) * r.width
				long.Len -= piece.Len
			}
			i++
			continue
		}
		if buf, err = r.AppendIDs(buf[:0], spans[i:i+n]); err != nil {
			return buf, err
		}
		for rest := buf; n > 0; n-- {
			own := int64(spans[i].Len) * r.width
			if err := visit(i, rest[:own]); err != nil {
				return buf, err
			}
			rest = rest[own:]
			i++
		}
	}
	return buf, nil
}

// run returns how many leading spans are contiguous, and their size in bits. Values are width bits
// wide.
func (r *Split) run(spans []Span, width int64) (n int, size int64, err error) {
	first := spans[0]
	if first.Shard < 0 || int(first.Shard) >= r.states.n || first.Off < 0 || first.Len < 0 {
		return 0, 0, fmt.Errorf("span of shard %d: %w", first.Shard, ErrRange)
	}
	unit := min(width, 8) // bytes of an Off
	for ; n < len(spans) && spans[n].Shard == first.Shard && spans[n].Off == first.Off+size/unit &&
		spans[n].Len >= 0; n++ {
		size += int64(spans[n].Len) * width
	}
	bytes, err := r.table.size(int(first.Shard))
	if err != nil {
		return 0, 0, err
	}
	if end := first.Off + size/unit; end > bytes*8/unit {
		return 0, 0, fmt.Errorf("span of %d bits at %d: %w", size, first.Off, ErrRange)
	}
	return n, size, nil
}

// pieceBytes is how much of a decoded column is read at once.
const pieceBytes = 16 << 10

// AppendLossMask appends the loss masks of spans. ids are the spans of input_ids of the same rows:
// a mask of another length is damage.
func (r *Split) AppendLossMask(dst []bool, spans, ids []Span) ([]bool, error) {
	for i := range spans {
		if spans[i].Len != ids[i].Len {
			return dst, r.damagedSpan(spans[i], 8, "loss_mask of %d values for %d input_ids", spans[i].Len, ids[i].Len)
		}
	}
	sc := getScratch()
	defer putScratch(sc)
	reader := spanReader{r: r}
	defer reader.close()
	for len(spans) > 0 {
		n, size, err := r.run(spans, 1)
		if err != nil {
			return dst, err
		}
		for bit, end := spans[0].Off, spans[0].Off+size; bit < end; {
			stop := min(end, (bit&^7)+8*pieceBytes)
			raw := sc.take(int((stop+7)>>3 - bit>>3))
			if err := reader.read(raw, spans[0].Shard, bit>>3); err != nil {
				return dst, err
			}
			first := bit &^ 7
			for ; bit < stop; bit++ {
				dst = append(dst, raw[(bit-first)>>3]>>(bit&7)&1 == 1)
			}
		}
		spans = spans[n:]
	}
	return dst, nil
}

// AppendSegments appends the segments of spans. ids are the spans of input_ids of the same rows:
// segments that do not add up to their lengths are damage.
func (r *Split) AppendSegments(dst []int32, spans, ids []Span) ([]int32, error) {
	sc := getScratch()
	defer putScratch(sc)
	reader := spanReader{r: r}
	defer reader.close()
	at := len(dst)
	for todo := spans; len(todo) > 0; {
		n, size, err := r.run(todo, 32)
		if err != nil {
			return dst, err
		}
		for off, end := todo[0].Off, todo[0].Off+size/8; off < end; {
			raw := sc.take(int(min(end-off, pieceBytes)))
			if err := reader.read(raw, todo[0].Shard, off); err != nil {
				return dst, err
			}
			for j := 0; j < len(raw); j += 4 {
				dst = append(dst, int32(binary.LittleEndian.Uint32(raw[j:])))
			}
			off += int64(len(raw))
		}
		todo = todo[n:]
	}
	for i, s := range spans {
		if err := shardfile.CheckSegments(dst[at:at+int(s.Len)], int(ids[i].Len)); err != nil {
			return dst, r.damagedSpan(s, 1, "%v", err)
		}
		at += int(s.Len)
	}
	return dst, nil
}

// damagedSpan returns the error for a span that contradicts its row. Its Off counts perByte units
// to a byte.
func (r *Split) damagedSpan(s Span, perByte int64, format string, args ...any) error {
	if s.Shard < 0 || int(s.Shard) >= r.states.n {
		return fmt.Errorf("span of shard %d: %w", s.Shard, ErrRange)
	}
	info, err := r.table.at(int(s.Shard))
	if err != nil {
		return err
	}
	return shardfile.Corrupt(shardfile.Join(r.d.dir, info.Name), s.Off/perByte, format, args...)
}
