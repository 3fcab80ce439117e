package shard

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/zeebo/blake3"
)

// splitChecker checks the rows of a split, shard by shard in order.
type splitChecker struct {
	*verifier
	splitState
	whole *blake3.Hasher // hash of what was read of the current shard
	sc    readScratch
}

// splitState is what the rows before determine.
type splitState struct {
	stats    shardfile.Stats
	document int64
	part     int32
}

// shard checks a shard, and returns the BLAKE3 of its bytes. It reads them once, in order, after
// the footer.
func (c *splitChecker) shard(info *ShardInfo) (sum string, err error) {
	path := shardfile.Join(c.dir, info.Name)
	f, err := shardfile.OpenForReading(c.fs, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	blocks, err := c.layout.ReadBlocks(f, path, info.entry())
	if err != nil {
		return "", err
	}
	c.whole.Reset()
	c.whole.Write(c.layout.Head) // ReadBlocks compared it
	c.count(len(c.layout.Head))
	b := batchChecker{splitChecker: c, f: &heldFile{File: f}, path: path, pos: int64(len(c.layout.Head))}
	tokens := c.stats.Tokens
	for i, k := range blocks {
		if err := c.ctx.Err(); err != nil {
			return "", err
		}
		b.number = i
		if err := b.batch(k); err != nil {
			return "", err
		}
		b.pos += c.layout.MetaLen + k.Body
		b.firstRow += int64(k.Rows)
	}
	if n := c.stats.Tokens - tokens; n != info.Tokens {
		return "", shardfile.Corrupt(path, -1, "%d tokens, want %d", n, info.Tokens)
	}
	if err := c.content(f, path, b.pos); err != nil {
		return "", err
	}
	return hex.EncodeToString(c.whole.Sum(nil)), nil
}

// content compares the BLAKE3 of everything before the footer, which begins at end, with the one in
// the footer.
func (c *splitChecker) content(f shardfile.File, path string, end int64) error {
	size, err := shardfile.FileSize(f)
	if err != nil {
		return err
	}
	tail := make([]byte, size-end)
	if err := shardfile.ReadFull(f, path, tail, end); err != nil {
		return err
	}
	_, want, ok := c.layout.ReadFooter(tail, end)
	if have := [32]byte(c.whole.Sum(nil)); !ok || have != want {
		return shardfile.Corrupt(path, end, "the BLAKE3 of what comes before the footer is %x, the footer says %x", have, want)
	}
	c.whole.Write(tail)
	c.count(len(tail))
	return nil
}

// heldFile is a file with a stretch of it in memory: a record batch is read once, and looked at
// several times.
type heldFile struct {
	shardfile.File
	from int64
	held []byte
}

// maxHeld is the longest stretch that is held. Longer record batches have a single row.
const maxHeld = 1 << 20

// hold reads the bytes from at up to end, if they are few enough.
func (f *heldFile) hold(path string, at, end int64) error {
	f.held = f.held[:0]
	if end-at > maxHeld {
		return nil
	}
	f.held, f.from = slices.Grow(f.held, int(end-at))[:end-at], at
	if err := shardfile.ReadFull(f.File, path, f.held, at); err != nil {
		f.held = f.held[:0]
		return err
	}
	return nil
}

// ReadAt reads what is held from memory.
func (f *heldFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.from && off+int64(len(p)) <= f.from+int64(len(f.held)) {
		return copy(p, f.held[off-f.from:]), nil
	}
	return f.File.ReadAt(p, off)
}

// maxBlamed is the maximum number of damaged record batches that an error names.
const maxBlamed = 3

// blame returns the error for a shard with the wrong checksum sum. It names the record batches
// whose own checksums are wrong.
func (c *splitChecker) blame(info *ShardInfo, sum string) error {
	path := shardfile.Join(c.dir, info.Name)
	whole := fmt.Sprintf("its BLAKE3 is %s, the manifest says %s", sum, info.BLAKE3)
	f, err := shardfile.OpenForReading(c.fs, path)
	if err != nil {
		return err
	}
	defer f.Close()
	blocks, err := c.layout.ReadBlocks(f, path, info.entry())
	if err != nil {
		return err
	}
	at, row, first, wrong := int64(len(c.layout.Head)), int64(0), int64(-1), 0
	var named []string
	for i, k := range blocks {
		end := at + c.layout.MetaLen + k.Body
		crc, err := c.crc(f, path, at, end, nil)
		if err != nil {
			return err
		}
		if crc != k.Crc {
			if wrong++; wrong == 1 {
				first = at
			}
			if wrong <= maxBlamed {
				named = append(named, fmt.Sprintf("%d (rows %d to %d, bytes %d to %d)", i, row, row+int64(k.Rows)-1,
					at, end-1))
			}
		}
		at, row = end, row+int64(k.Rows)
	}
	if wrong == 0 {
		return shardfile.Corrupt(path, -1, "%s, though head, record batches and footer are right", whole)
	}
	more := ""
	if wrong > maxBlamed {
		more = fmt.Sprintf(" and %d more", wrong-maxBlamed)
	}
	return shardfile.Corrupt(path, first, "damaged record batches: %s%s; %s", strings.Join(named, ", "), more, whole)
}

// crc returns the CRC-32 of a file's bytes from at to end, and calls each, where not nil, with them.
func (v *verifier) crc(f shardfile.File, path string, at, end int64, each func([]byte)) (crc uint32, err error) {
	for at < end && v.ctx.Err() == nil {
		p := v.buf[:min(end-at, int64(len(v.buf)))]
		if err := shardfile.ReadFull(f, path, p, at); err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, crc32.IEEETable, p)
		if each != nil {
			each(p)
		}
		at += int64(len(p))
	}
	return crc, v.ctx.Err()
}

// batchChecker checks the record batches of a shard.
type batchChecker struct {
	*splitChecker
	f        *heldFile
	path     string
	number   int                           // the batch's number in the shard
	pos      int64                         // where the batch's message begins
	firstRow int64                         // the first row of the batch, counted in the shard
	lists    [shardfile.NumColumns][]int64 // offsets of the list columns
}

func (b *batchChecker) bad(row int64, format string, args ...any) error {
	return &shardfile.FileError{File: b.path, Offset: b.pos, Row: b.firstRow + row,
		Cause: fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))}
}

func (b *batchChecker) batch(k shardfile.Block) error {
	l, rows := b.layout, int64(k.Rows)
	end := b.pos + l.MetaLen + k.Body
	if err := b.f.hold(b.path, b.pos, end); err != nil {
		return err
	}
	raw := b.sc.take(int(l.MetaLen))
	if err := shardfile.ReadFull(b.f, b.path, raw, b.pos); err != nil {
		return err
	}
	if !l.ReadBatchMeta(&b.sc.batch, raw, rows, k.Body) {
		return shardfile.Corrupt(b.path, b.pos, "record batch metadata differ from what the footer says")
	}
	crc, err := b.crc(b.f, b.path, b.pos, end, func(p []byte) {
		b.whole.Write(p)
		b.count(len(p))
	})
	if err != nil {
		return err
	}
	if crc != k.Crc {
		return batchDamage(b.path, b.number, b.pos, b.firstRow, b.firstRow+rows, crc, k.Crc)
	}
	body := b.pos + l.MetaLen
	for id, i := range l.ColIndex {
		if i < 0 || !l.Cols[i].List {
			continue
		}
		if err := b.offsets(id, body+b.sc.batch.Places[i].OffsetsAt, rows, b.sc.batch.Values[i]); err != nil {
			return err
		}
	}
	ids := b.lists[shardfile.ColInputIDs]
	for row := range rows {
		length := ids[row+1] - ids[row]
		if length < 1 || length > shardfile.MaxRowTokens {
			return b.bad(row, "%d input_ids", length)
		}
		labels := int64(0)
		if l.Schema.Labels {
			labels = b.lists[shardfile.ColLabels][row+1] - b.lists[shardfile.ColLabels][row]
		}
		if mask := b.lists[shardfile.ColLossMask]; l.Schema.LossMask && mask[row+1]-mask[row] != length {
			return b.bad(row, "loss_mask has %d values for %d input_ids", mask[row+1]-mask[row], length)
		}
		b.stats.Add(int(length), int(labels))
	}
	return b.values(body, rows)
}

// offsets reads a list column's offsets into lists, and checks that they increase from 0 to n.
func (b *batchChecker) offsets(id int, at, rows, n int64) error {
	raw := b.sc.take(int(4 * (rows + 1)))
	if err := shardfile.ReadFull(b.f, b.path, raw, at); err != nil {
		return err
	}
	list := b.lists[id][:0]
	last := int64(0)
	for i := range rows + 1 {
		v := int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		if v < last || i == 0 && v != 0 {
			return b.bad(max(i-1, 0), "offset %d after %d", v, last)
		}
		list = append(list, v)
		last = v
	}
	if b.lists[id] = list; last != n {
		return b.bad(rows-1, "offsets end at %d of %d values", last, n)
	}
	return nil
}

// values checks the values of every column, and the zeros between buffers.
func (b *batchChecker) values(body, rows int64) error {
	l := b.layout
	for id, i := range l.ColIndex {
		if i < 0 {
			continue
		}
		p := b.sc.batch.Places[i]
		if err := b.padding(body+p.OffsetsAt+p.OffsetsLen, shardfile.Align64(p.OffsetsLen)-p.OffsetsLen); err != nil {
			return err
		}
		if err := b.padding(body+p.ValuesAt+p.ValuesLen, shardfile.Align64(p.ValuesLen)-p.ValuesLen); err != nil {
			return err
		}
		var err error
		switch at := body + p.ValuesAt; id {
		case shardfile.ColInputIDs, shardfile.ColLabels:
			err = b.ids(id, at, p.ValuesLen)
		case shardfile.ColLossMask:
			err = b.lastBits(at, p.ValuesLen, b.sc.batch.Values[i])
		case shardfile.ColSegments:
			err = b.segments(at, rows)
		case shardfile.ColPart:
			err = b.order(body+b.sc.batch.Places[l.ColIndex[shardfile.ColDocument]].ValuesAt, at, rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *batchChecker) padding(at, n int64) error {
	var p [shardfile.BufferAlign]byte
	if err := shardfile.ReadFull(b.f, b.path, p[:n], at); err != nil {
		return err
	}
	if p != shardfile.Zeros {
		return shardfile.Corrupt(b.path, at, "padding is not zero")
	}
	return nil
}

// ids checks that every id is below the vocabulary's size.
func (b *batchChecker) ids(id int, at, size int64) error {
	width := b.layout.Schema.IDWidth()
	for pos := int64(0); pos < size; {
		p := b.buf[:min(size-pos, int64(len(b.buf)))]
		if err := shardfile.ReadFull(b.f, b.path, p, at+pos); err != nil {
			return err
		}
		top := uint32(0)
		if width == 2 {
			for i := 0; i+2 <= len(p); i += 2 {
				top = max(top, uint32(binary.LittleEndian.Uint16(p[i:])))
			}
		} else {
			for i := 0; i+4 <= len(p); i += 4 {
				top = max(top, binary.LittleEndian.Uint32(p[i:]))
			}
		}
		if uint64(top) >= uint64(b.layout.Schema.VocabSize) {
			return shardfile.Corrupt(b.path, at+pos, "%s: id %d with a vocabulary of %d",
				b.layout.Cols[b.layout.ColIndex[id]].Name, top, b.layout.Schema.VocabSize)
		}
		pos += int64(len(p))
	}
	return nil
}

// lastBits checks that the bits after the last value are zero.
func (b *batchChecker) lastBits(at, size, n int64) error {
	if n&7 == 0 {
		return nil
	}
	var p [1]byte
	if err := shardfile.ReadFull(b.f, b.path, p[:], at+size-1); err != nil {
		return err
	}
	if p[0]>>(n&7) != 0 {
		return shardfile.Corrupt(b.path, at+size-1, "bits after the last value are not zero")
	}
	return nil
}

// segments checks that the documents of every packed row add up to its length.
func (b *batchChecker) segments(at, rows int64) error {
	ids, segs := b.lists[shardfile.ColInputIDs], b.lists[shardfile.ColSegments]
	for row := range rows {
		sum := int64(0)
		for j := segs[row]; j < segs[row+1]; {
			n := min(segs[row+1]-j, int64(len(b.buf)/4))
			p := b.buf[:4*n]
			if err := shardfile.ReadFull(b.f, b.path, p, at+4*j); err != nil {
				return err
			}
			for i := 0; i < len(p); i += 4 {
				v := int64(int32(binary.LittleEndian.Uint32(p[i:])))
				if v < 1 {
					return b.bad(row, "segment of %d ids", v)
				}
				sum += v
			}
			j += n
		}
		if sum != ids[row+1]-ids[row] {
			return b.bad(row, "segments of %d ids in a row of %d", sum, ids[row+1]-ids[row])
		}
	}
	return nil
}

// order checks document and part.
func (b *batchChecker) order(documents, parts, rows int64) error {
	p := b.sc.take(int(12 * rows))
	docs, prts := p[:8*rows], p[8*rows:]
	if err := errors.Join(shardfile.ReadFull(b.f, b.path, docs, documents), shardfile.ReadFull(b.f, b.path, prts, parts)); err != nil {
		return err
	}
	for row := range rows {
		d, k := int64(binary.LittleEndian.Uint64(docs[8*row:])), int32(binary.LittleEndian.Uint32(prts[4*row:]))
		if d < 0 || k < 0 || !b.layout.Schema.Segments && (d < b.document || d == b.document && k <= b.part) {
			return b.bad(row, "document %d part %d after document %d part %d", d, k, b.document, b.part)
		}
		b.document, b.part = d, k
	}
	return nil
}
