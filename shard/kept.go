package shard

import (
	"hash/crc32"
	"math"
	"sync/atomic"

	"github.com/dsload/dsload/internal/shardfile"
)

// Spare is memory that nobody else needs at the moment. It is safe for concurrent use.
type Spare interface {
	// Take reports whether this many more bytes may be used.
	Take(bytes int64) bool
	// Return gives bytes back.
	Return(bytes int64)
}

// KeepBatches lets the dataset keep record batches in spare memory, so that their rows cost no reads, and
// shards open beyond MaxOpenShards. Call it before the first read.
func (d *Dataset) KeepBatches(m Spare) {
	d.spare = m
	d.pool.spare, d.pool.mostLent = m, min(mostLentShards, openFiles()/openFilesPart)
}

const (
	// mostLentShards is the maximum number of shards that are open in spare memory; it is less where the
	// process may not have openFilesPart times as many open files.
	mostLentShards = 4096
	openFilesPart  = 8
)

// GiveBack drops record batches until it has returned so many bytes of spare memory, or there are no more. It
// returns how many it has, and waits for reads in progress.
func (d *Dataset) GiveBack(bytes int64) (given int64) {
	for _, r := range d.splits {
		r.states.each(func(s *readShard) {
			if given < bytes {
				s.mu.Lock()
				defer s.mu.Unlock()
				given += s.kept.giveBack(bytes - given)
			}
		})
	}
	return given
}

// DropBatches returns all spare memory, which the dataset uses no more. It waits for reads in
// progress.
func (d *Dataset) DropBatches() {
	d.dropped.Store(true)
	d.pool.endLending()
	for _, r := range d.splits {
		r.states.each(func(s *readShard) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kept.drop()
			_ = d.pool.shutLent(s) // it was only read
		})
	}
}

// keptBatches are the record batches of an open shard that are in memory: head, offsets and values as
// in the file. The shard's mutex guards spare and batches.
type keptBatches struct {
	spare   Spare
	batches []atomic.Pointer[[]byte] // nil if none can be kept
	misses  atomic.Uint32            // reads of others
}

const (
	keptBatchBytes = 8 + 24 // a pointer and a slice
	// One read in keepAdmission of a batch that is not kept admits it. The first rows come soon, and a
	// batch that takes a hundred reads' time is read again before it pays.
	keepAdmission = 128
)

// reset makes room for n batches, if there is memory.
func (k *keptBatches) reset(d *Dataset, n int) {
	k.drop()
	if d.spare == nil || d.dropped.Load() || !d.spare.Take(int64(n)*keptBatchBytes) {
		return
	}
	k.spare, k.batches = d.spare, make([]atomic.Pointer[[]byte], n)
}

func (k *keptBatches) get(batch int) []byte {
	if p := k.batches[batch].Load(); p != nil {
		return *p
	}
	return nil
}

// giveBack drops batches until it has returned so many bytes, or there are no more.
func (k *keptBatches) giveBack(bytes int64) (given int64) {
	for i := 0; i < len(k.batches) && given < bytes; i++ {
		if p := k.batches[i].Swap(nil); p != nil {
			given += int64(len(*p))
		}
	}
	if given > 0 {
		k.spare.Return(given)
	}
	return given
}

// drop returns all memory.
func (k *keptBatches) drop() {
	if k.batches == nil {
		return
	}
	k.giveBack(math.MaxInt64)
	k.spare.Return(int64(len(k.batches)) * keptBatchBytes)
	k.spare, k.batches = nil, nil
}

// read fills dst from offset off of the shard, whose mutex the caller holds.
func (s *readShard) read(dst []byte, off int64) error {
	if s.kept.batches != nil {
		i, data := s.keptAt(off, int64(len(dst)))
		if data != nil {
			copy(dst, data)
			return nil
		}
		if s.kept.misses.Add(1)%keepAdmission == 0 {
			s.keep(i)
		}
	}
	return shardfile.ReadFull(s.file, s.path, dst, off)
}

// keptAt returns the record batch of n bytes from offset off, and these if they are in memory, else nil.
func (s *readShard) keptAt(off, n int64) (batch int, data []byte) {
	batch = batchAt(s.index, off)
	at := off - int64(s.index[batch].pos)*shardfile.BufferAlign
	if data = s.kept.get(batch); at < 0 || n < 0 || at > int64(len(data))-n {
		return batch, nil
	}
	return batch, data[at : at+n]
}

// keep reads a record batch whose checksum was compared before, and keeps it if it is as it was then.
func (s *readShard) keep(batch int) {
	at, end := int64(s.index[batch].pos)*shardfile.BufferAlign, int64(s.index[batch+1].pos)*shardfile.BufferAlign
	if !s.checked.has(batch) || s.kept.get(batch) != nil || !s.kept.spare.Take(end-at) {
		return
	}
	data := make([]byte, end-at)
	if shardfile.ReadFull(s.file, s.path, data, at) != nil || crc32.ChecksumIEEE(data) != s.index[batch].crc ||
		!s.kept.batches[batch].CompareAndSwap(nil, &data) {
		s.kept.spare.Return(end - at)
	}
}
