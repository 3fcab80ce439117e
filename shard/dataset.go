package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"sync"
	"sync/atomic"
)

// ReaderOptions limit what an open Dataset holds. They affect no result.
type ReaderOptions struct {
	// MaxOpenShards is the maximum number of open shard files. 0 means 512. Each goroutine that
	// reads may keep one more open.
	MaxOpenShards int
	// MaxIndexBytes limits the indexes of shards whose files are closed again. 0 means 8 MiB. The
	// index of an open shard is always kept, and takes 12 bytes for each record batch. Another
	// eighth of the limit records which batches of closed shards were checked, one bit each.
	MaxIndexBytes int64
	// MaxOffsetBytes limits the memory for cached offsets of rows, each a little more than the bits
	// of a length. 0 means none. A row whose offsets are cached takes one read for each column
	// instead of two.
	MaxOffsetBytes int64
}

func (o ReaderOptions) withDefaults() ReaderOptions {
	if o.MaxOpenShards <= 0 {
		o.MaxOpenShards = 512
	}
	if o.MaxIndexBytes <= 0 {
		o.MaxIndexBytes = 8 << 20
	}
	return o
}

// Dataset is a finished dataset folder, open for reading. It is safe for concurrent use.
type Dataset struct {
	fs       FS
	dir      string
	manifest *Manifest
	layout   *layout
	splits   []*SplitReader
	pool     shardPool
	cache    offsetCache
	checks   chan []byte // buffers for maxChecks checks, nil until first used
	closed   atomic.Bool
	building bool // opened by OpenUnfinished
}

// Open reads and checks the manifest of a folder, and checks that every shard is present with its
// size. The content of a shard is checked when a row of it is first read. The error is ErrNotFound
// if there is no manifest.
//
// Every row that is read belongs to the dataset that was opened. Once the folder holds another,
// reading fails with ErrReplaced.
func Open(dir string) (*Dataset, error) { return OpenFS(OS(), dir) }

// OpenFS is like Open for a folder of another file system.
func OpenFS(fsys FS, dir string) (*Dataset, error) { return ReaderOptions{}.Open(fsys, dir) }

// Open is like OpenFS with these options.
func (o ReaderOptions) Open(fsys FS, dir string) (*Dataset, error) {
	m, err := ReadManifest(fsys, dir)
	if err != nil {
		return nil, err
	}
	return o.openManifest(fsys, dir, m)
}

// openManifest opens the shards that a manifest lists.
func (o ReaderOptions) openManifest(fsys FS, dir string, m *Manifest) (*Dataset, error) {
	d, err := o.newDataset(fsys, dir, m)
	if err != nil {
		return nil, err
	}
	for _, r := range d.splits {
		if err := r.checkAllPresent(); err != nil {
			return nil, errors.Join(d.explain(err), d.Close())
		}
	}
	return d, nil
}

// newDataset returns the dataset of a manifest, whose shards it does not look at.
func (o ReaderOptions) newDataset(fsys FS, dir string, m *Manifest) (_ *Dataset, err error) {
	o = o.withDefaults()
	d := &Dataset{fs: fsys, dir: dir, manifest: m, layout: newLayout(m.Schema),
		checks: make(chan []byte, maxChecks)}
	for range maxChecks {
		d.checks <- nil
	}
	d.pool.maxOpen, d.pool.maxIndex, d.cache.max = o.MaxOpenShards, o.MaxIndexBytes, o.MaxOffsetBytes
	for i := range m.Splits {
		info := &m.Splits[i]
		r := &SplitReader{d: d, number: i, info: info, width: int64(m.Schema.IDWidth()), states: newShardStates(info)}
		if r.table, err = openTable(fsys, dir, m, info); err != nil {
			return nil, errors.Join(d.explain(err), d.Close())
		}
		d.splits = append(d.splits, r)
	}
	return d, nil
}

// checkPresent checks that a shard is a file of the manifest's size.
func checkPresent(fsys FS, path string, info *ShardInfo) error {
	st, err := fsys.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(path)
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return notRegular(path, st.Mode())
	}
	return info.checkSize(path, st.Size())
}

// checkSize compares a shard's size with the manifest's.
func (info *ShardInfo) checkSize(path string, size int64) error {
	if size < info.Bytes {
		return truncated(path, size, info.Bytes)
	}
	if size > info.Bytes {
		return corrupt(path, -1, "size %d bytes, want %d", size, info.Bytes)
	}
	return nil
}

// Manifest returns the dataset's manifest. All callers share it, and must not change it.
func (d *Dataset) Manifest() *Manifest { return d.manifest }

// Dir returns the folder as given to Open.
func (d *Dataset) Dir() string { return d.dir }

// Split returns the reader of a split. The error is ErrNoSplit if the dataset has none of that
// name.
func (d *Dataset) Split(name string) (*SplitReader, error) {
	for _, r := range d.splits {
		if r.info.Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s: split %q: %w", d.dir, name, ErrNoSplit)
}

// Close closes all files. It waits for reads in progress; later ones return ErrClosed.
func (d *Dataset) Close() error {
	d.closed.Store(true)
	var errs []error
	for _, r := range d.splits {
		errs = append(errs, r.states.close(), r.table.Close())
	}
	return errors.Join(errs...)
}

// readShard is a reader's state for a shard. A read holds mu shared while it uses file and index.
type readShard struct {
	mu      sync.RWMutex
	path    string  // set once opened
	blocks  []block // of a shard that is still being written; nil for all others
	file    File
	id      fileID      // of file when it was last opened; zero if unknown
	index   []batchRef  // the last one marks the end; nil until read, and again once dropped
	values  batchValues // kept as long as index
	checked checkedBatches
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
	open := openForReading
	if s.blocks != nil {
		open = openUnfinished
	}
	f, err := open(r.d.fs, path)
	if err != nil {
		return r.d.explain(err)
	}
	index, bits := s.indexBytes(), s.checked.bytes()
	if err := r.adopt(s, f, path, &info); err != nil {
		return errors.Join(r.d.explain(err), f.Close())
	}
	s.path, s.file = path, f
	s.used.Store(true)
	return r.d.pool.add(s, s.indexBytes()-index, s.checked.bytes()-bits)
}

// adopt checks a newly opened file against the shard's entry in the manifest, and reads its index
// into s. A file that was open before and has not changed since is not checked again.
func (r *SplitReader) adopt(s *readShard, f File, path string, info *ShardInfo) error {
	if s.blocks != nil {
		return r.adoptUnfinished(s, f, path, info)
	}
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
