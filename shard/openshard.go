package shard

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/dsload/dsload/internal/shardfile"
)

// readShard is a reader's state for a shard. A read holds mu shared while it uses file and index.
type readShard struct {
	mu      sync.RWMutex
	path    string // set once opened
	file    shardfile.File
	id      shardfile.FileID // the file's when it was last opened; zero if unknown
	index   []batchRef       // the last one marks the end; nil until read, and again once dropped
	values  batchValues      // kept as long as index
	checked checkedBatches
	kept    keptBatches // while file is open
	used    atomic.Bool
	lent    int64        // spare memory that keeps the file open; 0 if it is one of MaxOpenShards
	states  *shardStates // with number, a shard whose state is dropped when its file is closed
	number  int
}

// indexBytes returns the size of index and values.
func (s *readShard) indexBytes() int64 {
	return batchRefBytes*int64(len(s.index)) + 4*int64(len(s.values))
}

// batchRef locates a record batch: its position in the file, in units of BufferAlign bytes, its
// first row in the shard, and its checksum.
type batchRef struct{ pos, row, crc uint32 }

const batchRefBytes = 12

// find returns the batch that holds a row of the shard.
func find(index []batchRef, row uint32) int {
	last := len(index) - 1
	// Most batches of a shard have about as many rows, so it is probably this one.
	if i := int(uint64(row) * uint64(last) / uint64(index[last].row)); i < last && index[i].row <= row && row < index[i+1].row {
		return i
	}
	return sort.Search(last, func(i int) bool { return index[i+1].row > row })
}

// shardPool limits the number of open shards. It is a clock: it closes the first shard not used
// since its hand last passed. Spare memory keeps more of them open: to open one for each row of a
// random order takes several times as long as to read the row.
type shardPool struct {
	mu         sync.Mutex
	open       []*readShard
	hand       int
	maxOpen    int
	spare      Spare // nil if there is none
	mostLent   int   // shards that it may keep open
	numLent    int   // shards that it does
	indexBytes int64 // size of all indexes, including those of closed shards, but for those in spare memory
	maxIndex   int64
	bitBytes   int64 // size of all checkedBatches
}

// The bits of checked batches may take 1/checkedShare of maxIndex.
const checkedShare = 8

// lentShardBytes bounds the memory of an open shard besides its index and bits.
const lentShardBytes = 2 << 10

// add adds a shard that its caller holds locked and has just opened, and makes room for it, in spare
// memory if there is any.
func (p *shardPool) add(s *readShard, newIndex, newBits int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexBytes += newIndex
	p.bitBytes += newBits
	var err error
	for tries := 2 * len(p.open); len(p.open)-p.numLent >= p.maxOpen && !p.lend(s) && tries > 0; tries-- {
		if p.hand >= len(p.open) {
			p.hand = 0
		}
		v := p.open[p.hand]
		// Skip a shard that is being read or opened: waiting for it could deadlock.
		if v.used.Swap(false) || !v.mu.TryLock() {
			p.hand++
			continue
		}
		err = errors.Join(err, p.shut(v))
		v.mu.Unlock()
		last := len(p.open) - 1
		p.open[p.hand] = p.open[last]
		p.open = p.open[:last]
	}
	p.open = append(p.open, s)
	return err
}

// lend takes spare memory in which a shard may be open.
func (p *shardPool) lend(s *readShard) bool {
	n := lentShardBytes + s.indexBytes()
	if p.numLent >= p.mostLent || !p.spare.Take(n) {
		return false
	}
	s.lent = n
	p.numLent++
	p.indexBytes -= s.indexBytes()
	return true
}

// shut closes the file of a shard, and drops what there is no room for. The caller holds p.mu, and
// the shard locked.
func (p *shardPool) shut(v *readShard) (err error) {
	if v.file != nil {
		err = v.file.Close()
		v.file = nil
		v.kept.drop()
	}
	if v.lent > 0 {
		p.spare.Return(v.lent)
		v.lent = 0
		p.numLent--
		p.indexBytes += v.indexBytes()
	}
	if v.states != nil {
		v.forget()
	}
	if p.indexBytes > p.maxIndex || v.states != nil {
		p.indexBytes -= v.indexBytes()
		v.index, v.values = nil, nil
	}
	if p.bitBytes > p.maxIndex/checkedShare || v.states != nil {
		p.bitBytes -= v.checked.bytes()
		v.checked.bits, v.id = nil, shardfile.FileID{} // without an id the next open checks everything
	}
	return err
}

// endLending lets no more shards be open in spare memory.
func (p *shardPool) endLending() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mostLent = 0
}

// shutLent closes a shard that is open in spare memory. The caller holds it locked.
func (p *shardPool) shutLent(s *readShard) error {
	if s.lent == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(v *readShard) bool { return v == s })
	return p.shut(s)
}

// acquire returns the i-th shard, opened, checked and locked for reading. The caller unlocks it.
func (r *Split) acquire(i int) (*readShard, error) {
	for {
		s := r.states.get(i)
		s.mu.RLock()
		if s.file != nil {
			if !s.used.Load() { // store only changes: readers share the cache line
				s.used.Store(true)
			}
			return s, nil
		}
		s.mu.RUnlock()
		if err := r.open(i, s); err != nil {
			return nil, err
		}
	}
}

// open opens the i-th shard, whose state is s. It does nothing if the state was dropped meanwhile.
func (r *Split) open(i int, s *readShard) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.d.closed.Load() {
		return fmt.Errorf("dataset %s: %w", r.d.dir, ErrClosed)
	}
	if s.file != nil || !s.isCurrent() {
		return nil
	}
	defer func() {
		if err != nil && s.states != nil && s.file == nil {
			s.forget()
		}
	}()
	info, err := r.table.at(i)
	if err != nil {
		return err
	}
	path := shardfile.Join(r.d.dir, info.Name)
	f, err := shardfile.OpenForReading(r.d.fs, path)
	if err != nil {
		return r.d.explain(err)
	}
	index, bits := s.indexBytes(), s.checked.bytes()
	if err := r.adopt(s, f, path, &info); err != nil {
		return errors.Join(r.d.explain(err), f.Close())
	}
	s.path, s.file = path, f
	s.kept.reset(r.d, len(s.index)-1)
	s.used.Store(true)
	return r.d.pool.add(s, s.indexBytes()-index, s.checked.bytes()-bits)
}

// adopt checks a newly opened file against the shard's entry in the manifest, and reads its index
// into s. A file that was open before and has not changed since is not checked again.
func (r *Split) adopt(s *readShard, f shardfile.File, path string, info *ShardInfo) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := shardfile.CheckSize(path, st.Size(), info.Bytes); err != nil {
		return err
	}
	id := shardfile.IdentityOf(st)
	same := id != shardfile.FileID{} && id == s.id
	if same && s.index != nil {
		return nil
	}
	blocks, err := r.d.layout.ReadBlocks(f, path, info.entry())
	if err != nil {
		return err
	}
	s.index, s.values = indexOf(r.d.layout, blocks), newBatchValues(r.d.layout, len(blocks))
	if !same {
		s.checked.reset(len(blocks))
	}
	s.id = id
	return nil
}

func indexOf(l *shardfile.Layout, blocks []shardfile.Block) []batchRef {
	index := make([]batchRef, 0, len(blocks)+1)
	pos, row := int64(len(l.Head)), int64(0)
	for _, k := range blocks {
		index = append(index, batchRef{uint32(pos / shardfile.BufferAlign), uint32(row), k.Crc})
		pos += l.MetaLen + k.Body
		row += int64(k.Rows)
	}
	return append(index, batchRef{pos: uint32(pos / shardfile.BufferAlign), row: uint32(row)})
}
