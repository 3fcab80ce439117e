package dataset

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// batch collects the rows of a record batch in their form on disk.
type batch struct {
	rows  int64
	bytes int64 // size of values and offsets; at most MaxBatchBytes
	cols  []batchColumn
	lent  [][]byte // what copyLent appends to the values of input_ids
}

// maxLent is how many lent parts of rows a batch holds. More are copied at once.
const maxLent = 2048

type batchColumn struct {
	offsets []byte // int32, rows + 1 of them
	values  []byte
	n       int64 // values
}

// keepBytes is the largest values buffer that is kept for the next batch, so that one long row does
// not hold its memory for the whole build.
const keepBytes = 2 * shardfile.MaxBatchBytes

func newBatch(l *shardfile.Layout) *batch {
	b := &batch{cols: make([]batchColumn, len(l.Cols))}
	b.reset(l)
	return b
}

func (b *batch) reset(l *shardfile.Layout) {
	b.rows, b.bytes = 0, 0
	for i := range b.cols {
		c := &b.cols[i]
		c.n = 0
		if c.values = c.values[:0]; cap(c.values) > keepBytes {
			c.values = nil
		}
		if l.Cols[i].List {
			c.offsets = append(c.offsets[:0], 0, 0, 0, 0)
		}
	}
}

// rowOverhead is what a row adds to batch.bytes besides its values.
const rowOverhead = 16

// rowBytes returns what a row adds to batch.bytes.
func rowBytes(s shardfile.Shape, e *Example) int64 {
	n := int64(e.Tokens()+len(e.Labels))*int64(s.IDWidth()) + int64(len(e.LossMask)+7)/8 + 4*int64(len(e.Segments))
	return n + rowOverhead
}

// add appends a row that fits the schema. If an id is outside the vocabulary, it leaves the batch
// unchanged.
func (b *batch) add(l *shardfile.Layout, e *Example) error {
	ids, labels := &b.cols[0], l.ColIndex[shardfile.ColLabels]
	if e.Lent == nil || len(b.lent)+len(e.Parts) > maxLent {
		b.copyLent()
	}
	before, beforeN := len(ids.values), ids.n
	if len(e.Parts) > 0 {
		b.addParts(e)
	} else if err := ids.addIDs(l.Schema, e.InputIDs); err != nil {
		return fmt.Errorf("input_ids: %w", err)
	}
	if labels >= 0 {
		if err := b.cols[labels].addIDs(l.Schema, e.Labels); err != nil {
			ids.values, ids.n = ids.values[:before], beforeN
			ids.offsets = ids.offsets[:len(ids.offsets)-4]
			return fmt.Errorf("labels: %w", err)
		}
	}
	if i := l.ColIndex[shardfile.ColLossMask]; i >= 0 {
		b.cols[i].addBits(e.LossMask)
		b.cols[i].endList(len(e.LossMask))
	}
	if i := l.ColIndex[shardfile.ColSegments]; i >= 0 {
		c := &b.cols[i]
		for _, v := range e.Segments {
			c.values = binary.LittleEndian.AppendUint32(c.values, uint32(v))
		}
		c.endList(len(e.Segments))
	}
	doc, part := &b.cols[l.ColIndex[shardfile.ColDocument]], &b.cols[l.ColIndex[shardfile.ColPart]]
	doc.values = binary.LittleEndian.AppendUint64(doc.values, uint64(e.Document))
	part.values = binary.LittleEndian.AppendUint32(part.values, uint32(e.Part))
	doc.n++
	part.n++
	b.rows++
	b.bytes += rowBytes(l.Schema, e)
	return nil
}

// addParts appends the ids of a row, or keeps where they are if they are lent and few.
func (b *batch) addParts(e *Example) {
	ids := &b.cols[0]
	if ids.endList(e.Tokens()); e.Lent == nil || len(e.Parts) > maxLent {
		ids.copyParts(e.Parts)
		return
	}
	if b.lent == nil {
		b.lent = make([][]byte, 0, maxLent)
	}
	b.lent = append(b.lent, e.Parts...)
}

// copyLent copies the parts that were lent.
func (b *batch) copyLent() {
	b.cols[0].copyParts(b.lent)
	b.lent = b.lent[:0]
}

func (c *batchColumn) copyParts(parts [][]byte) {
	for _, part := range parts {
		at := len(c.values)
		c.values = grow(c.values, len(part))
		copy(c.values[at:], part)
	}
}

func (c *batchColumn) endList(n int) {
	c.n += int64(n)
	c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(c.n))
}

// addIDs appends a list of ids, or nothing if one of them is outside the vocabulary.
func (c *batchColumn) addIDs(s shardfile.Shape, ids []uint32) (err error) {
	if c.values, err = AppendIDs(c.values, ids, shard.Schema(s)); err == nil {
		c.endList(len(ids))
	}
	return err
}

// AppendIDs appends ids as rows of a schema hold them, or nothing if one of them is outside the vocabulary.
func AppendIDs(dst []byte, ids []uint32, s shard.Schema) ([]byte, error) {
	at, width := len(dst), s.IDWidth()
	dst = grow(dst, width*len(ids))
	var top uint32
	if width == 2 {
		top = putUint16s(dst[at:], ids)
	} else {
		top = putUint32s(dst[at:], ids)
	}
	if uint64(top) >= uint64(s.VocabSize) && len(ids) > 0 {
		return dst[:at], fmt.Errorf("id %d with a vocabulary of %d: %w", top, s.VocabSize, shard.ErrRange)
	}
	return dst, nil
}

// putUint16s writes ids as uint16 and returns the largest. Four at a time with two maxima take half
// the time of the plain loop below.
func putUint16s(dst []byte, ids []uint32) (top uint32) {
	n, top2 := narrow(dst, ids)
	ids, dst = ids[n:], dst[2*n:]
	for len(ids) >= 4 && len(dst) >= 8 {
		a, b, c, d := ids[0], ids[1], ids[2], ids[3]
		binary.LittleEndian.PutUint64(dst, uint64(a)|uint64(b)<<16|uint64(c)<<32|uint64(d)<<48)
		top, top2 = max(top, a, b), max(top2, c, d)
		ids, dst = ids[4:], dst[8:]
	}
	for i, id := range ids {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(id))
		top = max(top, id)
	}
	return max(top, top2)
}

func putUint32s(dst []byte, ids []uint32) (top uint32) {
	var top2 uint32
	for len(ids) >= 2 && len(dst) >= 8 {
		a, b := ids[0], ids[1]
		binary.LittleEndian.PutUint64(dst, uint64(a)|uint64(b)<<32)
		top, top2 = max(top, a), max(top2, b)
		ids, dst = ids[2:], dst[8:]
	}
	for i, id := range ids {
		binary.LittleEndian.PutUint32(dst[4*i:], id)
		top = max(top, id)
	}
	return max(top, top2)
}

// addBits appends bools to a bitmap, after c.n of them.
func (c *batchColumn) addBits(v []bool) {
	if used := int(c.n & 7); used > 0 {
		for ; used < 8 && len(v) > 0; used++ {
			c.values[len(c.values)-1] |= bit(v[0]) << used
			v = v[1:]
		}
	}
	at, ones := len(c.values), MaskBytes(v[:len(v)&^7])
	for c.values = grow(c.values, len(ones)/8); len(ones) > 0; ones = ones[8:] {
		const gather = 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35 | 1<<42 | 1<<49 | 1<<56 // moves byte i to bit 56 + i
		c.values[at] = byte(binary.LittleEndian.Uint64(ones) * gather >> 56)
		at++
	}
	v = v[len(v)&^7:]
	for i, on := range v {
		if i == 0 {
			c.values = append(c.values, 0)
		}
		c.values[len(c.values)-1] |= bit(on) << i
	}
}

// MaskBytes returns a mask as the bytes 0 and 1, which it is in memory.
func MaskBytes(mask []bool) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(mask))), len(mask))
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// grow extends p by n bytes of any content.
func grow(p []byte, n int) []byte {
	if need := len(p) + n; need > cap(p) {
		// Powers of two, so that buffers reach their final size in few steps, which BuilderBytes
		// knows.
		bigger := make([]byte, len(p), roundUp(need))
		copy(bigger, p)
		p = bigger
	}
	return p[:len(p)+n]
}

func roundUp(n int) int { return 1 << bits.Len(uint(n-1)) }

// size returns the number of bytes of b in a shard.
func (b *batch) size(l *shardfile.Layout) int64 {
	n := l.MetaLen
	for i := range b.cols {
		n += shardfile.Align64(int64(len(b.cols[i].offsets))) + shardfile.Align64(int64(len(b.cols[i].values)))
	}
	return n
}
