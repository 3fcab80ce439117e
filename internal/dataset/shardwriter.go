package dataset

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// Example is a row. The Builder copies what it appends, before Row returns unless it is Lent.
type Example struct {
	InputIDs []uint32 // below Schema.VocabSize
	// Parts are the input ids in place of InputIDs, as AppendIDs makes them; a packed row has one for each of Segments.
	Parts [][]byte
	// Parts that are Lent stay as they are until they are returned, and are copied by then; only of rows of Parts and
	// Segments without Labels. nil lends none.
	Lent     *Loan
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

// A Loan is what rows lend of memory that is used again once it is returned.
type Loan struct{ borrower *Builder }

// Return ends the loan: what was not copied yet is.
func (l *Loan) Return() {
	if l.borrower != nil {
		l.borrower.returnLent()
	}
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
	case e.Lent != nil && (s.Labels || !s.Segments || len(e.Parts) == 0):
		return fmt.Errorf("%w: a lent row", shard.ErrSchema)
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

// stageBytes is the size of the buffer that collects what is written to a shard. Of larger writes the whole multiples
// bypass it: the system then keeps the file in larger pages, which takes it two thirds of the time.
const stageBytes = 64 << 10

// writebackBytes is how much of a shard the system is told to write at a time, so that a sync finds little to write.
const writebackBytes = 4 << 20

// openShard is a shard being written, under its temporary name.
type openShard struct {
	fs   shardfile.FS
	path string // final
	temp string // until it is committed
	file shardfile.File
	hash *blake3.Hasher

	writebacks *sync.WaitGroup // the goroutines of startWriteback, for which close waits

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
	return &openShard{fs: fsys, path: path, temp: path + shardfile.TempSuffix, stage: stage[:0], hash: h,
		writebacks: new(sync.WaitGroup)}
}

// create creates the shard's file and writes the part before the first record batch.
func (s *openShard) create(l *shardfile.Layout) error {
	var err error
	if s.file, err = shardfile.CreateNew(s.fs, s.temp); err != nil {
		return err
	}
	s.hash.Write(l.Head) // never fails
	if err := s.write(l.Head); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

// write appends p to the shard, which is in its hash already. Save after a sync and at the end, what goes to the file
// begins and ends at multiples of stageBytes.
func (s *openShard) write(p []byte) (err error) {
	for len(p) > 0 && err == nil {
		n := stageBytes - int(s.pos%stageBytes)
		if n == stageBytes && len(p) >= n {
			n = len(p) / n * n
			err = s.put(p[:n], s.pos)
		} else {
			n = min(n, len(p))
			s.stage = append(s.stage, p[:n]...)
			if s.pos += int64(n); s.pos%stageBytes == 0 {
				err = s.flush()
			}
		}
		p = p[n:]
	}
	return err
}

func (s *openShard) put(p []byte, at int64) error {
	if err := shardfile.WriteAt(s.file, s.temp, p, at); err != nil {
		return err
	}
	s.pos = at + int64(len(p))
	if n := s.pos - s.started; n >= writebackBytes {
		s.startWriteback(s.started, n)
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

// writeBatch appends a record batch, with scratch for its metadata. crowded says that no core is left on which to hash
// beside writing.
func (s *openShard) writeBatch(l *shardfile.Layout, b *batch, scratch *batchScratch, crowded bool) error {
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
	if crowded || runtime.GOMAXPROCS(0) == 1 {
		s.hashParts(scratch.parts, scratch.crc)
	} else { // while the system copies the bytes
		go func() {
			hasher.Set()
			s.hashParts(scratch.parts, scratch.crc)
		}()
	}
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
	if err := s.close(); err != nil {
		return err
	}
	return s.fs.Rename(s.temp, s.path)
}

// close closes the file, unless it is closed.
func (s *openShard) close() error {
	if s.file == nil {
		return nil
	}
	s.writebacks.Wait()
	err := s.file.Close()
	if s.file = nil; err != nil {
		return fmt.Errorf("close %s: %w", s.temp, shardfile.WithoutPath(err))
	}
	return nil
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
