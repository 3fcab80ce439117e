package dataset

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/bits"
	"unsafe"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// Example is a row. The Builder copies what it appends.
type Example struct {
	InputIDs []uint32 // below Schema.VocabSize
	// Parts are the input ids in place of InputIDs, as AppendIDs makes them; a packed row has one for each of Segments.
	Parts    [][]byte
	Length   int      // tokens of Parts
	Labels   []uint32 // target ids, of any length; only if Schema.Labels
	LossMask []bool   // for each input id, whether the loss counts it; only if Schema.LossMask
	// Segments are the positive lengths of the documents in a packed row, which add up to its length;
	// only if Schema.Segments.
	Segments []int32
	Pieces   []Piece // what each of Segments is; the Builder does not write them
	Document int64   // ordinal of the document in the corpus
	Part     int32   // the chunk of the document
}

// Tokens returns how many input ids the row has.
func (e *Example) Tokens() int { return len(e.InputIDs) + e.Length }

// fits returns an error if e does not fit the schema. Ids are checked later, where they are
// copied.
func (e *Example) fits(s shard.Schema) error {
	size := 0
	for _, part := range e.Parts {
		size += len(part)
	}
	tokens := e.Tokens()
	switch {
	case size != e.Length*s.IDWidth() || size > 0 && len(e.InputIDs) > 0:
		return fmt.Errorf("%w: %d bytes of input_ids for %d tokens", shard.ErrSchema, size, tokens)
	case tokens == 0:
		return fmt.Errorf("%w: no input_ids", shard.ErrSchema)
	case s.Labels != (e.Labels != nil):
		return fmt.Errorf("%w: labels", shard.ErrSchema)
	case s.LossMask != (e.LossMask != nil), s.LossMask && len(e.LossMask) != tokens:
		return fmt.Errorf("%w: loss_mask has %d values for %d input_ids", shard.ErrSchema, len(e.LossMask), tokens)
	case s.Segments != (e.Segments != nil):
		return fmt.Errorf("%w: segments", shard.ErrSchema)
	case e.Document < 0 || e.Part < 0:
		return fmt.Errorf("%w: document %d, part %d", shard.ErrRange, e.Document, e.Part)
	}
	if s.Segments {
		if err := shardfile.CheckSegments(e.Segments, tokens); err != nil {
			return err
		}
	}
	return nil
}

// stageBytes is the size of the buffer that collects small writes to a shard. Larger ones bypass
// it.
const stageBytes = 32 << 10

// writebackBytes is how much of a shard the system is told to write at a time, so that a sync finds little to write.
const writebackBytes = 4 << 20

// batch collects the rows of a record batch in their form on disk.
type batch struct {
	rows  int64
	bytes int64 // size of values and offsets; at most MaxBatchBytes
	cols  []batchColumn
}

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

// rowBytes returns what a row adds to batch.bytes.
func rowBytes(s shardfile.Shape, e *Example) int64 {
	n := int64(e.Tokens()+len(e.Labels))*int64(s.IDWidth()) + int64(len(e.LossMask)+7)/8 + 4*int64(len(e.Segments))
	return n + 16
}

// add appends a row that fits the schema. If an id is outside the vocabulary, it leaves the batch
// unchanged.
func (b *batch) add(l *shardfile.Layout, e *Example) error {
	ids, labels := &b.cols[0], l.ColIndex[shardfile.ColLabels]
	before, beforeN := len(ids.values), ids.n
	if len(e.Parts) > 0 {
		for _, part := range e.Parts {
			at := len(ids.values)
			ids.values = grow(ids.values, len(part))
			copy(ids.values[at:], part)
		}
		ids.endList(e.Tokens())
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
		b.cols[i].addBools(e.LossMask)
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

// addBools appends a list of bools to a bitmap.
func (c *batchColumn) addBools(v []bool) {
	n := len(v)
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
	c.endList(n)
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

// openShard is a shard being written, under its temporary name.
type openShard struct {
	fs   shardfile.FS
	path string // final
	temp string // until it is committed
	file shardfile.File
	hash *blake3.Hasher

	stage   []byte
	pos     int64 // bytes written so far, including staged ones
	synced  int64 // pos when it was synced last, or that began
	started int64 // bytes that the system was told to write to the disk
	tokens  int64
	rows    int64
	blocks  []shardfile.Block
}

func newShard(fsys shardfile.FS, path string, stage []byte, h *blake3.Hasher) *openShard {
	h.Reset()
	return &openShard{fs: fsys, path: path, temp: path + shardfile.TempSuffix, stage: stage[:0], hash: h}
}

// create creates the shard's file and writes the part before the first record batch.
func (s *openShard) create(l *shardfile.Layout) error {
	var err error
	if s.file, err = shardfile.CreateNew(s.fs, s.temp); err != nil {
		return err
	}
	s.hash.Write(l.Head) // never fails
	if err := s.write(l.Head); err != nil {
		s.file.Close()
		return err
	}
	return nil
}

// write appends p to the shard, which is in its hash already.
func (s *openShard) write(p []byte) error {
	direct := len(p) > cap(s.stage)/2 // bypasses the stage, after its content
	if direct || len(s.stage)+len(p) > cap(s.stage) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if !direct {
		s.stage = append(s.stage, p...)
		s.pos += int64(len(p))
		return nil
	}
	return s.put(p, s.pos)
}

func (s *openShard) put(p []byte, at int64) error {
	if err := shardfile.WriteAt(s.file, s.temp, p, at); err != nil {
		return err
	}
	s.pos = at + int64(len(p))
	if n := s.pos - s.started; n >= writebackBytes {
		startWriteback(s.file, s.started, n)
		s.started = s.pos
	}
	return nil
}

// flush writes staged bytes to the file.
func (s *openShard) flush() error {
	p := s.stage
	if len(p) == 0 {
		return nil
	}
	s.stage = p[:0]
	return s.put(p, s.pos-int64(len(p)))
}

// writeBatch appends a record batch, with scratch for its metadata.
func (s *openShard) writeBatch(l *shardfile.Layout, b *batch, scratch *batchScratch) error {
	scratch.Values = scratch.Values[:0]
	for i := range b.cols {
		scratch.Values = append(scratch.Values, b.cols[i].n)
	}
	var body int64
	scratch.Places, body = l.Place(scratch.Places[:0], b.rows, scratch.Values)
	scratch.Meta = l.AppendBatchMeta(scratch.Meta[:0], b.rows, scratch.Values, scratch.Places, body)
	scratch.parts = append(scratch.parts[:0], scratch.Meta)
	for i := range b.cols {
		for _, p := range [2][]byte{b.cols[i].offsets, b.cols[i].values} {
			scratch.parts = append(scratch.parts, p, shardfile.Zeros[:-len(p)&(shardfile.BufferAlign-1)])
		}
	}
	if scratch.crc == nil {
		scratch.crc = make(chan uint32, 1)
	}
	go s.hashParts(scratch.parts, scratch.crc) // while the system copies the bytes
	var err error
	for _, p := range scratch.parts {
		if err = s.write(p); err != nil {
			break
		}
	}
	s.rows += b.rows
	s.tokens += b.cols[0].n
	s.blocks = append(s.blocks, shardfile.Block{Rows: uint32(b.rows), Body: body, Crc: <-scratch.crc})
	return err
}

// hashParts takes the parts of a batch into the shard's hash, and sends their CRC.
func (s *openShard) hashParts(parts [][]byte, sum chan<- uint32) {
	hasher.Set()
	crc := uint32(0)
	for _, p := range parts {
		crc = crc32.Update(crc, crc32.IEEETable, p)
		s.hash.Write(p)
	}
	sum <- crc
}

// The goroutines of a Builder, in profiles.
var writer, hasher = cputime.Named("writer"), cputime.Named("hasher")

// batchScratch is scratch for writing batches, one at a time.
type batchScratch struct {
	shardfile.BatchScratch
	parts [][]byte
	crc   chan uint32
}

// end writes the end of the shard. It does not sync the file.
func (s *openShard) end(l *shardfile.Layout) (c committedShard, err error) {
	var content [32]byte
	s.hash.Sum(content[:0])
	footer := l.Footer(s.blocks, content)
	s.hash.Write(footer)
	if err := s.write(footer); err != nil {
		return c, err
	}
	if err := s.flush(); err != nil {
		return c, err
	}
	c = committedShard{rows: s.rows, tokens: s.tokens, bytes: s.pos, footer: blake3.Sum256(footer)}
	s.hash.Sum(c.sum[:0])
	return c, nil
}

// rename closes the shard, which is synced, and renames it to its final name. It does not sync the folder.
func (s *openShard) rename() error {
	err := s.file.Close()
	s.file = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.temp, shardfile.WithoutPath(err))
	}
	return s.fs.Rename(s.temp, s.path)
}

// committedShard is a compact ShardInfo, which a Builder keeps for each shard.
type committedShard struct {
	rows, tokens, bytes int64
	sum, footer         [32]byte
}

func (c *committedShard) info(name string) shard.ShardInfo {
	return shard.ShardInfo{Name: name, Rows: c.rows, Tokens: c.tokens, Bytes: c.bytes,
		BLAKE3: hex.EncodeToString(c.sum[:]), Footer: hex.EncodeToString(c.footer[:])}
}

func (s *openShard) sync() error {
	if err := s.flush(); err != nil {
		return err
	}
	s.synced = s.pos
	return s.syncFile()
}

// syncFile is sync without what is staged.
func (s *openShard) syncFile() error { return shardfile.Sync(s.file, s.temp) }

// size returns the number of bytes of b in a shard.
func (b *batch) size(l *shardfile.Layout) int64 {
	n := l.MetaLen
	for i := range b.cols {
		n += shardfile.Align64(int64(len(b.cols[i].offsets))) + shardfile.Align64(int64(len(b.cols[i].values)))
	}
	return n
}
