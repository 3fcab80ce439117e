package store

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
)

const (
	// maxFetches is how many blocks are fetched at once.
	maxFetches = 16
	// fetchBytes is the memory of a fetch: the store's buffer and those of its connection.
	fetchBytes = 192 << 10
	// slotBytes is the memory of a block in the cache: its entry in the map and in the list.
	slotBytes = 256
)

// cache keeps blocks in a file, at most limit of them.
type cache struct {
	file   *os.File
	remove string // the file's name, if it could not be removed at once
	block  int64
	fetch  func(v *version, from, end int64, write func([]byte) error) error
	turns  chan struct{} // holds one element for each running fetch

	running sync.WaitGroup // fetchers
	onwards *Ahead         // for files that are read in order

	mu     sync.Mutex
	closed bool
	room   *sync.Cond // signals that a block may have become evictable
	blocks map[blockKey]*block
	recent list.List // elements are *block, ready ones, the latest first
	slots  int64     // size of the file in use
	lost   int64     // slots for which the disk had no room
	limit  int64
	most   int64 // the initial limit
	free   []int64

	queue    []*block // asked for ahead, each with one reader: the queue
	fetchers int      // goroutines that fetch them
	begun    int64    // blocks that were read first, as a clock for onwards
	aheads   int      // number of streams
}

type blockKey struct{ version, index uint64 }

// block is a block that is in the cache or on its way there.
type block struct {
	key     blockKey
	v       *version
	slot    int64
	readers int           // they read it or wait for it
	queued  bool          // nobody fetches it yet
	ahead   *Ahead        // the one that asked for it, until it is read
	ready   chan struct{} // closed once err is known
	err     error
	place   *list.Element // in recent
}

func newCache(o ReaderOptions, fetch func(*version, int64, int64, func([]byte) error) error) (*cache, error) {
	dir := cmp.Or(o.Dir, filepath.Join(cacheBase(), "dsload", "serve"))
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("make a folder for the cache: %w", err)
	}
	f, err := os.CreateTemp(dir, "blocks-*")
	if err != nil {
		return nil, fmt.Errorf("make the cache: %w; %s", err, setCacheHome)
	}
	size := cmp.Or(o.CacheBytes, defaultCacheBytes)
	if left := diskLeft(f); o.CacheBytes == 0 && left >= 0 {
		size = min(size, left/2)
	}
	if o.BlockBytes == 0 {
		o.BlockBytes = max(minBlockBytes, min(blockBytes, size/usualBlocks))
	}
	c := &cache{file: f, block: o.BlockBytes, fetch: fetch, turns: make(chan struct{}, maxFetches),
		onwards: newAhead(), blocks: map[blockKey]*block{}, limit: max(minBlocks, size/o.BlockBytes)}
	c.most = c.limit
	c.room = sync.NewCond(&c.mu)
	if os.Remove(f.Name()) != nil {
		c.remove = f.Name() // some systems keep the name of an open file
	}
	return c, nil
}

func (c *cache) memoryBytes() int64 { return maxFetches*fetchBytes + c.most*slotBytes }

func (c *cache) close() error {
	c.mu.Lock()
	c.closed = true
	c.room.Broadcast()
	c.mu.Unlock()
	c.running.Wait()
	err := c.file.Close()
	if c.remove != "" {
		err = errors.Join(err, os.Remove(c.remove))
	}
	return err
}

// readAt reads some bytes of an object, at least one.
func (c *cache) readAt(v *version, p []byte, off int64) (int, error) {
	index := off / c.block
	b, mine, fetched, err := c.take(v, uint64(index))
	if err != nil {
		return 0, err
	}
	if mine || fetched {
		c.readOn(v, index, fetched)
	}
	if mine {
		c.fill(b)
	}
	defer c.release(b)
	<-b.ready
	if b.err != nil {
		return 0, b.err
	}
	from := off - index*c.block
	n := min(int64(len(p)), c.block-from, v.Size-off)
	if _, err := c.file.ReadAt(p[:n], b.slot*c.block+from); err != nil {
		return 0, fmt.Errorf("read the cache: %w", err)
	}
	return int(n), nil
}

var errClosed = fmt.Errorf("the cache is %w", fs.ErrClosed)

// take returns a block; the caller must release it. mine reports that the caller must fill it,
// fetched that it was asked for ahead and is read for the first time. take waits for room.
func (c *cache) take(v *version, index uint64) (b *block, mine, fetched bool, err error) {
	key := blockKey{v.number, index}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.closed {
			return nil, false, false, errClosed
		}
		if b := c.blocks[key]; b != nil {
			b.readers++
			if b.place != nil {
				c.recent.MoveToFront(b.place)
			}
			fetched, mine = b.ahead != nil, b.queued
			b.queued = false
			c.forget(b)
			return b, mine, fetched, nil
		}
		if slot, ok := c.slot(); ok {
			b := &block{key: key, v: v, slot: slot, readers: 1, ready: make(chan struct{})}
			c.blocks[key] = b
			return b, true, false, nil
		}
		c.room.Wait()
	}
}

// slot returns a place in the file for a block: an unused one, or that of the least recently used
// block that nobody reads.
func (c *cache) slot() (slot int64, ok bool) {
	if n := len(c.free); n > 0 {
		slot, c.free = c.free[n-1], c.free[:n-1]
		return slot, true
	}
	if c.slots < c.limit {
		c.slots++
		return c.slots - 1, true
	}
	for e := c.recent.Back(); e != nil; e = e.Prev() {
		if b := e.Value.(*block); b.readers == 0 {
			c.recent.Remove(e)
			delete(c.blocks, b.key)
			c.forget(b)
			return b.slot, true
		}
	}
	return 0, false
}

func (c *cache) release(b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.readers--; b.readers == 0 {
		c.room.Broadcast()
	}
}

// fill fetches a block, and wakes those that wait for it.
func (c *cache) fill(b *block) {
	c.turns <- struct{}{}
	err := c.fetchInto(b)
	<-c.turns
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.err = err; err == nil {
		b.place = c.recent.PushFront(b)
	} else {
		delete(c.blocks, b.key)
		c.forget(b)
		c.drop(b.slot, err)
	}
	close(b.ready)
}

// drop gives back the slot of a block that could not be filled. If the disk is full, the cache
// keeps its size.
func (c *cache) drop(slot int64, err error) {
	switch {
	case !errors.Is(err, syscall.ENOSPC) || c.slots-c.lost <= minBlocks:
		c.free = append(c.free, slot)
	case slot == c.slots-1:
		c.slots--
		c.limit = c.slots
	default: // a later one was faster
		c.lost++
		c.limit = c.slots
	}
	c.room.Broadcast()
}

func (c *cache) fetchInto(b *block) error {
	from := int64(b.key.index) * c.block
	end, at := min(b.v.Size, from+c.block), b.slot*c.block
	return c.fetch(b.v, from, end, func(p []byte) error {
		if _, err := c.file.WriteAt(p, at); err != nil {
			return fault.Errorf("write the cache: %w; make room there, or a smaller {cache}", err)
		}
		at += int64(len(p))
		return nil
	})
}
