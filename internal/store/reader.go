package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// ReaderOptions configures a Reader. The zero value of a field is its default. None changes what is read.
type ReaderOptions struct {
	// CacheBytes limits the cache. Default 4 GiB, or half of what the disk has left if
	// that is less; at least MinCacheBytes.
	CacheBytes int64
	// Dir is the folder of the cache. Default: dsload/serve in the user's cache folder, or the folder
	// for temporary files.
	Dir string
	// BlockBytes is the size of a block. Default 1 MiB, or less where the cache is small.
	BlockBytes int64
	// Interval is the shortest time between two checks of a manifest. Default 15 seconds.
	Interval time.Duration
	// NoCache reads without a cache, for a reader of each byte once and in order, file by file.
	NoCache bool
	// Notice, if not nil, is called with messages for the user while a request waits.
	Notice func(string)
	// Lost, if not nil, is called with the error of each request that was given up because nobody
	// answered.
	Lost func(error)
}

const (
	// defaultCacheBytes is the default size of the cache.
	defaultCacheBytes = 4 << 30
	// MinCacheBytes is the smallest size of the cache.
	MinCacheBytes = minBlocks * blockBytes

	blockBytes      = 1 << 20
	minBlockBytes   = 256 << 10 // about a record batch
	usualBlocks     = 256       // a cache that is large enough for the usual size has them
	minBlocks       = 16
	defaultInterval = 15 * time.Second
)

// Reader is a shardfile.ReadFS for names in buckets. Other names are the operating system's.
type Reader struct {
	shardfile.ReadFS // the operating system's
	store            *remote.Store
	cache            *cache // nil where files are read uncached
	onLost           func(error)
	interval         time.Duration
	ctx              context.Context // for requests: the methods of a file system have none
	end              context.CancelFunc
	checks           sync.WaitGroup // background checks of manifests

	mu       sync.Mutex
	closed   bool
	versions uint64
	objects  map[string]*version // pinned, by address
	listed   map[string]bool     // folders
	seen     map[string]*manifestCheck
}

// version is one version of an object. It never changes.
type version struct {
	remote.Object
	number uint64 // counts from 1
}

func (v *version) info() fs.FileInfo { return versionInfo{objectInfo{v.Object}, v.number} }

// A manifestCheck is what is known about a manifest.
type manifestCheck struct {
	mu      sync.Mutex // held while asking the bucket
	now     *version   // nil: it is gone
	at      time.Time  // when the bucket last answered; zero for never
	stale   bool       // a read has met another version of a file in the manifest's folder
	running bool       // a background check is running
}

// NewReader returns a Reader with an empty cache.
func NewReader(o ReaderOptions) (*Reader, error) {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	f := &Reader{ReadFS: shardfile.OS(), interval: o.Interval, onLost: o.Lost,
		store:   remote.NewStore(remote.Options{Notice: o.Notice}),
		objects: map[string]*version{}, listed: map[string]bool{}, seen: map[string]*manifestCheck{}}
	f.ctx, f.end = context.WithCancel(context.Background())
	if o.NoCache {
		return f, nil
	}
	var err error
	f.cache, err = newCache(o, f.fetch)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// MemoryBytes returns the maximum memory of the Reader, for the objects that it knows now; 0 for nil.
func (f *Reader) MemoryBytes() int64 {
	const perObject = 320 // its description, and the map's share
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(remote.StoreBytes + remote.FileBytes)
	if f.cache != nil {
		n = remote.StoreBytes + f.cache.memoryBytes()
	}
	for uri := range f.objects {
		n += perObject + 2*int64(len(uri))
	}
	return n
}

// Close ends all requests, waits for those in the background, and removes the cache. It may be called twice, and
// for nil.
func (f *Reader) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.end()
	f.mu.Unlock()
	f.checks.Wait()
	var err error
	if f.cache != nil {
		err = f.cache.close()
	}
	return errors.Join(err, f.store.Close())
}

// OpenFile implements shardfile.ReadFS. Files in a bucket open only for reading.
func (f *Reader) OpenFile(name string, flag int) (shardfile.File, error) {
	if !remote.Writable(name) {
		return f.ReadFS.OpenFile(name, flag)
	}
	if flag != os.O_RDONLY {
		return nil, readOnly("open", name)
	}
	v, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if f.cache == nil {
		return &uncached{unwritable: unwritable{v.URI}, fs: f, v: v}, nil
	}
	return &cachedFile{unwritable{v.URI}, f, v}, nil
}

// Open opens a file for reading.
func (f *Reader) Open(name string) (fs.File, error) {
	return shardfile.Opened(f.OpenFile(name, os.O_RDONLY))
}

// Stat implements shardfile.ReadFS.
func (f *Reader) Stat(name string) (fs.FileInfo, error) {
	if !remote.Writable(name) {
		return f.ReadFS.Stat(name)
	}
	v, err := f.find(name)
	if err != nil {
		return nil, err
	}
	return v.info(), nil
}

// ReadDir implements shardfile.ReadFS.
func (f *Reader) ReadDir(name string) (names []string, err error) {
	if !remote.Writable(name) {
		return f.ReadFS.ReadDir(name)
	}
	err = f.store.List(f.ctx, strings.TrimRight(name, "/"), func(at string, _ remote.Object) error {
		if !strings.Contains(at, "/") {
			names = append(names, at)
		}
		return nil
	})
	slices.Sort(names)
	return names, explain("list", name, err)
}

func readOnly(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w: files in a bucket are only read", fs.ErrPermission)}
}

// find returns the version of an object to read.
func (f *Reader) find(uri string) (*version, error) {
	if path.Base(uri) == shardfile.ManifestName {
		return f.findManifest(uri)
	}
	f.mu.Lock()
	v, list := f.objects[uri], !f.listed[path.Dir(uri)] && shardfile.IsShard(path.Base(uri))
	f.mu.Unlock()
	if v != nil {
		return v, nil
	}
	if list {
		if err := f.list(uri[:strings.LastIndexByte(uri, '/')]); err != nil {
			return nil, err
		}
		f.mu.Lock()
		v = f.objects[uri]
		f.mu.Unlock()
		if v != nil {
			return v, nil
		}
	}
	o, err := f.store.Describe(f.ctx, uri)
	if err != nil {
		return nil, explain("open", uri, err)
	}
	return f.pin(o), nil
}

// list pins the shards of a folder, of which there may be thousands: one request describes many.
func (f *Reader) list(folder string) error {
	err := f.store.List(f.ctx, folder, func(name string, o remote.Object) error {
		if shardfile.IsShard(name) {
			f.pin(o)
		}
		return nil
	})
	if errors.Is(err, remote.ErrDenied) || errors.Is(err, fs.ErrNotExist) {
		err = nil // reading may be allowed where listing is not
	}
	if err != nil {
		return explain("list", folder, err)
	}
	f.mu.Lock()
	f.listed[path.Dir(folder+"/x")] = true
	f.mu.Unlock()
	return nil
}

// pin keeps the first version of an object that was seen and returns that.
func (f *Reader) pin(o remote.Object) *version {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.objects[o.URI] == nil {
		f.objects[o.URI] = f.number(o)
	}
	return f.objects[o.URI]
}

func (f *Reader) number(o remote.Object) *version {
	f.versions++
	return &version{o, f.versions}
}

// findManifest returns the latest known version of a manifest. It checks for a later one in the
// background. It waits for the answer only if no version is known or a read has met another version
// of a file.
func (f *Reader) findManifest(uri string) (*version, error) {
	f.mu.Lock()
	c := f.seen[uri]
	if c == nil {
		c = &manifestCheck{}
		f.seen[uri] = c
	}
	wait := c.at.IsZero() || c.stale
	if now := time.Now(); !wait && now.Sub(c.at) >= f.interval && !c.running && !f.closed {
		c.running = true
		f.checks.Go(func() { _ = f.check(uri, c) }) // a bucket that cannot be reached tells nothing new
	}
	v := c.now
	f.mu.Unlock()
	if wait {
		if err := f.check(uri, c); err != nil {
			return nil, err
		}
		f.mu.Lock()
		v = c.now
		f.mu.Unlock()
	}
	if v == nil {
		return nil, &fs.PathError{Op: "open", Path: uri, Err: fs.ErrNotExist}
	}
	return v, nil
}

// check asks the bucket for the current version of a manifest.
func (f *Reader) check(uri string, c *manifestCheck) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, err := f.store.Describe(f.ctx, uri)
	err = explain("open", uri, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	c.running, c.at = false, time.Now()
	switch {
	case err == nil:
		c.stale = false
		if c.now == nil || c.now.Object != o {
			c.now = f.number(o)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		c.now, c.stale = nil, false
		return nil
	}
	if c.now == nil {
		c.at = time.Time{} // nothing is known yet
	}
	return err
}

// fetch reads part of an object, piece by piece.
func (f *Reader) fetch(v *version, from, end int64, write func([]byte) error) error {
	return f.explainRead(v, f.store.ReadRange(f.ctx, v.Object, from, end, write))
}

// explainRead adds the object's name to an error of reading it, and detects an object that was
// replaced.
func (f *Reader) explainRead(v *version, err error) error {
	if err == nil {
		return nil
	}
	f.lost(err)
	gone := errors.Is(err, fs.ErrNotExist)
	if !gone && !errors.Is(err, remote.ErrNoBucket) && !errors.As(err, new(*remote.ChangedError)) {
		return explain("read", v.URI, err)
	}
	f.mu.Lock()
	if l := f.seen[v.URI[:strings.LastIndexByte(v.URI, '/')+1]+shardfile.ManifestName]; l != nil {
		l.stale = true
	}
	f.mu.Unlock()
	if gone {
		err = errors.New("the object is gone")
	}
	return &shardfile.FileError{File: v.URI, Offset: -1, Row: -1,
		Cause: fmt.Errorf("%w since it was opened (%w)", shard.ErrReplaced, err)}
}

// explain adds the object's name to an error.
func explain(op, uri string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &fs.PathError{Op: op, Path: uri, Err: err}
}
