package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/dsload/dsload/internal/shardfile"
)

// ReaderOptions limit what an open Dataset holds. They affect no result.
type ReaderOptions struct {
	// MaxOpenShards is the maximum number of open shard files, but for those that KeepBatches adds. 0
	// means 512. Each goroutine that reads may keep one more open.
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

// Dataset is a finished dataset folder, open for reading. It is safe for concurrent use.
type Dataset struct {
	fs       shardfile.ReadFS
	dir      string
	manifest *Manifest
	layout   *shardfile.Layout
	splits   []*Split
	pool     shardPool
	cache    offsetCache
	checks   chan []byte // buffers for maxChecks checks, nil until first used
	closed   atomic.Bool
	spare    Spare       // see KeepBatches
	dropped  atomic.Bool // DropBatches was called
}

// Open reads and checks the manifest of a folder, and checks that every shard is present with its
// size. The content of a shard is checked when a row of it is first read. The error is ErrNotFound
// if there is no manifest.
//
// Every row that is read belongs to the dataset that was opened. Once the folder holds another,
// reading fails with ErrReplaced.
func Open(dir string) (*Dataset, error) { return OpenFS(shardfile.OS(), dir) }

// OpenFS is like Open for a folder of another file system, whose files must be io.ReaderAt.
func OpenFS(fsys fs.FS, dir string) (*Dataset, error) { return ReaderOptions{}.Open(fsys, dir) }

// Open is like OpenFS with these options.
func (o ReaderOptions) Open(fsys fs.FS, dir string) (*Dataset, error) {
	m, err := ReadManifest(fsys, dir)
	if err != nil {
		return nil, err
	}
	d, err := o.OpenManifest(fsys, dir, m)
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

// OpenManifest returns the dataset of a manifest that was read before. It does not look at the shards: one that
// is missing is an error of the first read.
func (o ReaderOptions) OpenManifest(fsys fs.FS, dir string, m *Manifest) (_ *Dataset, err error) {
	if o.MaxOpenShards <= 0 {
		o.MaxOpenShards = 512
	}
	if o.MaxIndexBytes <= 0 {
		o.MaxIndexBytes = 8 << 20
	}
	files := shardfile.ReadingOf(fsys)
	d := &Dataset{fs: files, dir: dir, manifest: m, layout: shardfile.NewLayout(shardfile.Shape(m.Schema)),
		checks: make(chan []byte, maxChecks)}
	for range maxChecks {
		d.checks <- nil
	}
	d.pool.maxOpen, d.pool.maxIndex, d.cache.max = o.MaxOpenShards, o.MaxIndexBytes, o.MaxOffsetBytes
	for i := range m.Splits {
		info := &m.Splits[i]
		states := &shardStates{n: info.NumShards(), open: map[int]*readShard{}}
		if info.List == nil {
			states.all = make([]readShard, states.n)
		}
		r := &Split{d: d, number: i, info: info, width: int64(m.Schema.IDWidth()), states: states}
		if r.table, err = openTable(files, dir, m, info); err != nil {
			return nil, errors.Join(d.explain(err), d.Close())
		}
		d.splits = append(d.splits, r)
	}
	return d, nil
}

func (info *ShardInfo) entry() shardfile.Entry {
	return shardfile.Entry{Bytes: info.Bytes, Rows: info.Rows, Footer: info.Footer}
}

// Manifest returns the dataset's manifest. All callers share it, and must not change it.
func (d *Dataset) Manifest() *Manifest { return d.manifest }

// Dir returns the folder as given to Open.
func (d *Dataset) Dir() string { return d.dir }

// Split returns the reader of a split. The error is ErrNoSplit if the dataset has none of that
// name.
func (d *Dataset) Split(name string) (*Split, error) {
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
		errs = append(errs, r.states.close(&d.pool), r.table.Close())
	}
	return errors.Join(errs...)
}
