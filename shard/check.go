package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"sort"
	"sync/atomic"

	"github.com/dsload/dsload/internal/shardfile"
)

// How a reader checks a shard. When it opens the file, it compares the footer's BLAKE3 with the
// manifest. When it first touches a record batch, it compares the batch's CRC-32 with the footer.
// So the manifest vouches for every row that a reader returns, and a shard of another dataset is
// noticed even if it has the same shape.

const (
	// checkBytes is how much of a record batch is read at once for its checksum.
	checkBytes = 32 << 10
	// maxChecks is the number of record batches of a dataset that are checked at once, each with a
	// buffer of checkBytes.
	maxChecks = 8
)

// checkedBatches has one bit for each record batch of a shard: whether its checksum was compared.
// It is safe for concurrent use.
type checkedBatches struct {
	bits []atomic.Uint32
	todo atomic.Int32 // bits that are not set
}

// reset clears the bits and makes room for n batches.
func (c *checkedBatches) reset(n int) {
	c.bits = make([]atomic.Uint32, (n+31)/32)
	c.todo.Store(int32(n))
}

func (c *checkedBatches) bytes() int64 { return 4 * int64(len(c.bits)) }

func (c *checkedBatches) has(batch int) bool {
	return c.todo.Load() == 0 || c.bits[batch/32].Load()>>(batch%32)&1 == 1
}

func (c *checkedBatches) set(batch int) {
	bit := uint32(1) << (batch % 32)
	if c.bits[batch/32].Or(bit)&bit == 0 {
		c.todo.Add(-1)
	}
}

// checkBatch compares a record batch of s with its checksum, unless that was done before. The
// caller holds s.mu.
func (d *Dataset) checkBatch(s *readShard, batch int) error {
	if s.checked.has(batch) {
		return nil
	}
	return d.readBatch(s, batch, nil, 0)
}

// readBatch compares a record batch of s with its checksum, and fills dst with what it has from offset off of the
// shard. The caller holds s.mu.
func (d *Dataset) readBatch(s *readShard, batch int, dst []byte, off int64) error {
	k, next := s.index[batch], s.index[batch+1]
	at, end := int64(k.pos)*shardfile.BufferAlign, int64(next.pos)*shardfile.BufferAlign
	crc, err := d.crcOf(s.file, s.path, at, end, dst, off)
	if err != nil {
		return d.explain(err)
	}
	if crc != k.crc {
		return d.explain(batchDamage(s.path, batch, at, int64(k.row), int64(next.row), crc, k.crc))
	}
	s.checked.set(batch)
	return nil
}

// batchDamage returns the error for a record batch with the wrong checksum, which holds the rows
// from row up to end.
func batchDamage(path string, batch int, at, row, end int64, have, want uint32) error {
	return shardfile.Corrupt(path, at, "record batch %d (rows %d to %d) has the CRC-32 %08x, the footer says %08x", batch, row,
		end-1, have, want)
}

// readSpan fills dst from offset off of s, and checks the record batches that hold it. One that was not checked yet and
// holds it all is read once for both.
func (d *Dataset) readSpan(s *readShard, dst []byte, off int64) error {
	if s.checked.todo.Load() > 0 {
		batch, end := batchAt(s.index, off), off+int64(len(dst))
		position := func(batch int) int64 { return int64(s.index[batch].pos) * shardfile.BufferAlign }
		if !s.checked.has(batch) && off >= position(batch) && end <= position(batch+1) {
			return d.readBatch(s, batch, dst, off)
		}
		for ; batch < len(s.index)-1 && position(batch) < end; batch++ {
			if err := d.checkBatch(s, batch); err != nil {
				return err
			}
		}
	}
	return s.read(dst, off)
}

// batchAt returns the record batch of a shard's byte, the first for bytes before it.
func batchAt(index []batchRef, off int64) int {
	pos, last := uint32(off/shardfile.BufferAlign), len(index)-1
	// Most batches of a shard are of about the same size, so it is probably this one.
	if i := int(uint64(pos) * uint64(last) / uint64(index[last].pos)); i < last && index[i].pos <= pos && pos < index[i+1].pos {
		return i
	}
	return max(0, sort.Search(last, func(i int) bool { return index[i].pos > pos })-1)
}

// crcOf returns the CRC-32 of a file's bytes from at up to end, and fills dst with those from off on. It waits while
// maxChecks others are running.
func (d *Dataset) crcOf(f shardfile.File, path string, at, end int64, dst []byte, off int64) (crc uint32, err error) {
	buf := <-d.checks
	defer func() { d.checks <- buf }()
	if buf == nil {
		buf = make([]byte, checkBytes)
	}
	for at < end {
		p := buf[:min(end-at, checkBytes)]
		if err := shardfile.ReadFull(f, path, p, at); err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, crc32.IEEETable, p)
		if from, to := max(at, off), min(at+int64(len(p)), off+int64(len(dst))); from < to {
			copy(dst[from-off:], p[from-at:to-at])
		}
		at += int64(len(p))
	}
	return crc, nil
}

// Unchanged returns nil while the folder's manifest is the one that was opened. Once it is another
// or gone, as during a build with Overwrite, the error is ErrReplaced. Unchanged reads a few bytes.
func (d *Dataset) Unchanged() error {
	path := shardfile.Join(d.dir, shardfile.ManifestName)
	seal, err := shardfile.ReadSeal(d.fs, path)
	if err == nil && seal == d.manifest.seal {
		return nil
	}
	what := "another dataset was built in its folder"
	if errors.Is(err, fs.ErrNotExist) {
		what = "its manifest is gone"
	} else if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) {
		return err
	}
	return shardfile.Wrong(path, fmt.Errorf("%w since it was opened: %s; open it again", ErrReplaced, what))
}

// explain returns ErrReplaced, with err as its detail, if err about a file of the dataset came from
// its replacement, else err.
func (d *Dataset) explain(err error) error {
	if errors.Is(err, ErrReplaced) {
		return err
	}
	if changed := d.Unchanged(); errors.Is(changed, ErrReplaced) {
		return fmt.Errorf("%w (%v)", changed, err)
	}
	return err
}

// firstBeyond returns the index of the first of the little-endian ids in raw that is not below the
// vocabulary's size, or -1.
func firstBeyond(raw []byte, width, vocabulary int) int {
	if width == 2 && vocabulary > math.MaxUint16 {
		return -1
	}
	top, size := largest(raw, width)
	if int64(top) >= int64(vocabulary) {
		size = 0
	}
	if width == 2 && !anyBeyond(raw[size:], vocabulary) {
		return -1
	}
	for i := size / width; i < len(raw)/width; i++ {
		if idAt(raw, i, width) >= int64(vocabulary) {
			return i
		}
	}
	return -1
}

// idAt returns the i-th of the little-endian ids in raw.
func idAt(raw []byte, i, width int) int64 {
	if width == 2 {
		return int64(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return int64(binary.LittleEndian.Uint32(raw[4*i:]))
}

// anyBeyond reports whether one of the two-byte ids in raw is not below the vocabulary's size. Each half of a
// word takes one id. Adding most carries into a half's highest bit if the id reaches the size, so a word
// costs a handful of operations and no branch.
func anyBeyond(raw []byte, vocabulary int) bool {
	const lanes = 0x0000ffff_0000ffff
	most := uint64(1<<31-vocabulary) * 0x00000001_00000001
	over := uint64(0)
	for ; len(raw) >= 8; raw = raw[8:] {
		v := binary.LittleEndian.Uint64(raw)
		over |= (v&lanes + most) | (v>>16&lanes + most)
	}
	for ; len(raw) >= 2; raw = raw[2:] {
		over |= uint64(binary.LittleEndian.Uint16(raw)) + most&math.MaxUint32
	}
	return over&0x80000000_80000000 != 0
}

// checkIDs returns an error if an id in raw, which is all or the first part of what spans hold, is not
// below the vocabulary's size.
func (r *Split) checkIDs(raw []byte, spans ...Span) error {
	i := firstBeyond(raw, int(r.width), r.d.manifest.Schema.VocabSize)
	if i < 0 {
		return nil
	}
	at := int64(i) * r.width
	for at >= int64(spans[0].Len)*r.width {
		at -= int64(spans[0].Len) * r.width
		spans = spans[1:]
	}
	info, err := r.table.at(int(spans[0].Shard))
	if err != nil {
		return err
	}
	return shardfile.Corrupt(shardfile.Join(r.d.dir, info.Name), spans[0].Off+at, "id %d with a vocabulary of %d",
		idAt(raw, i, int(r.width)), r.d.manifest.Schema.VocabSize)
}
