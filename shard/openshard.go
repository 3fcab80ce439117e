package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"sync"
	"sync/atomic"
)

// readShard is a reader's state for a shard. A read holds mu shared while it uses file and index.
type readShard struct {
	mu      sync.RWMutex
	path    string // set once opened
	file    File
	id      fileID      // of file when it was last opened; zero if unknown
	index   []batchRef  // the last one marks the end; nil until read, and again once dropped
	values  batchValues // kept as long as index
	checked checkedBatches
	kept    keptBatches // while file is open
	used    atomic.Bool
	states  *shardStates // and number: of a shard whose state is dropped when its file is closed
	number  int
}

// indexBytes returns the size of index and values.
func (s *readShard) indexBytes() int64 {
	return batchRefBytes*int64(len(s.index)) + 4*int64(len(s.values))
}

// batchRef locates a record batch: its position in the file, in units of bufferAlign bytes, its
// first row in the shard, and its checksum.
type batchRef struct{ pos, row, crc uint32 }

const batchRefBytes = 12

// find returns the batch that holds a row of the shard.
func find(index []batchRef, row uint32) int {
	return sort.Search(len(index), func(i int) bool { return index[i].row > row }) - 1
}

// shardPool limits the number of open shards. It is a clock: it closes the first shard not used
// since its hand last passed.
type shardPool struct {
	mu         sync.Mutex
	open       []*readShard
	hand       int
	maxOpen    int
	indexBytes int64 // of all indexes, including those of closed shards
	maxIndex   int64
	bitBytes   int64 // of all checkedBatches
}

// The bits of checked batches may take 1/checkedShare of maxIndex.
const checkedShare = 8

// add adds a shard that its caller holds locked and has just opened, and makes room for it.
func (p *shardPool) add(s *readShard, newIndex, newBits int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexBytes += newIndex
	p.bitBytes += newBits
	var err error
	for tries := 2 * len(p.open); len(p.open) >= p.maxOpen && tries > 0; tries-- {
		if p.hand >= len(p.open) {
			p.hand = 0
		}
		v := p.open[p.hand]
		// Skip a shard that is being read or opened: waiting for it could deadlock.
		if v.used.Swap(false) || !v.mu.TryLock() {
			p.hand++
			continue
		}
		if v.file != nil {
			err = errors.Join(err, v.file.Close())
			v.file = nil
			v.kept.drop()
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
			v.checked.bits, v.id = nil, fileID{} // without an id the next open checks everything
		}
		v.mu.Unlock()
		last := len(p.open) - 1
		p.open[p.hand] = p.open[last]
		p.open = p.open[:last]
	}
	p.open = append(p.open, s)
	return err
}

// acquire returns the i-th shard, opened, checked and locked for reading. The caller unlocks it.
func (r *SplitReader) acquire(i int) (*readShard, error) {
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
func (r *SplitReader) open(i int, s *readShard) (err error) {
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
	path := Join(r.d.dir, info.Name)
	f, err := openForReading(r.d.fs, path)
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
func (r *SplitReader) adopt(s *readShard, f File, path string, info *ShardInfo) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := info.checkSize(path, st.Size()); err != nil {
		return err
	}
	id := identityOf(st)
	same := id != fileID{} && id == s.id
	if same && s.index != nil {
		return nil
	}
	blocks, err := r.d.layout.readBlocks(f, path, info)
	if err != nil {
		return err
	}
	s.index, s.values = r.d.layout.indexOf(blocks), newBatchValues(r.d.layout, len(blocks))
	if !same {
		s.checked.reset(len(blocks))
	}
	s.id = id
	return nil
}

// fileID identifies a file and its state, to recognize it when it is opened again.
type fileID struct {
	device, inode uint64
	modified      int64
}

// identityOf is idOf, also for files of other file systems that number their versions.
func identityOf(info fs.FileInfo) fileID {
	if v, ok := info.(Versioned); ok {
		return fileID{inode: v.Version()}
	}
	return idOf(info)
}

// indexOf returns the index of a shard.
func (l *layout) indexOf(blocks []block) []batchRef {
	index := make([]batchRef, 0, len(blocks)+1)
	pos, row := int64(len(l.head)), int64(0)
	for _, k := range blocks {
		index = append(index, batchRef{uint32(pos / bufferAlign), uint32(row), k.crc})
		pos += l.metaLen + k.body
		row += int64(k.rows)
	}
	return append(index, batchRef{pos: uint32(pos / bufferAlign), row: uint32(row)})
}

// readBlocks compares size, head, footer and rows of a shard with its entry in the manifest, and
// returns its record batches.
func (l *layout) readBlocks(f File, path string, info *ShardInfo) ([]block, error) {
	size, err := fileSize(f)
	if err != nil {
		return nil, err
	}
	if err := info.checkSize(path, size); err != nil {
		return nil, err
	}
	head := make([]byte, len(l.head))
	if err := readFull(f, path, head, 0); err != nil {
		return nil, err
	}
	if string(head) != string(l.head) {
		return nil, corrupt(path, 0, "not the head of a shard with the manifest's schema")
	}
	var last [footerTailBytes]byte
	if err := readFull(f, path, last[:], size-footerTailBytes); err != nil {
		return nil, err
	}
	footer := int64(uint32(last[0]) | uint32(last[1])<<8 | uint32(last[2])<<16 | uint32(last[3])<<24)
	dataEnd := size - footerTailBytes - footer - int64(len(endOfStream))
	// A batch has at least one row, and takes more of the file than of the footer. That limits what
	// a forged length can claim.
	most := min(info.Rows, size/l.metaLen)*footerBytes + int64(l.noBlocks)
	if string(last[4:]) != arrowMagic || footer > most || dataEnd < int64(len(l.head)) {
		return nil, corrupt(path, size-footerTailBytes, "not the end of a shard")
	}
	tail := make([]byte, size-dataEnd)
	if err := readFull(f, path, tail, dataEnd); err != nil {
		return nil, err
	}
	if err := l.checkFooter(path, tail, dataEnd, info); err != nil {
		return nil, err
	}
	blocks, _, ok := l.readFooter(tail, dataEnd)
	if !ok {
		return nil, corrupt(path, dataEnd, "footer differs from what the manifest's schema makes")
	}
	rows := int64(0)
	for _, k := range blocks {
		rows += int64(k.rows)
	}
	if rows != info.Rows {
		return nil, corrupt(path, -1, "%d rows, want %d", rows, info.Rows)
	}
	return blocks, nil
}
