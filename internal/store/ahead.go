package store

const (
	// maxAheadFetches is how many of the concurrent fetches may be of blocks that nobody waits for
	// yet.
	maxAheadFetches = 12
	// maxAhead is how many blocks one Ahead may fetch before they are read. All together may take
	// 1/aheadShare of the cache.
	maxAhead   = 64
	aheadShare = 4
	// sequentialAhead is how many blocks are fetched ahead of a sequential read if no stream has an
	// Ahead.
	sequentialAhead = 4
)

// An Ahead fetches blocks before they are read, for a reader that knows what it will read. The
// number of blocks fetched but not yet read is limited.
//
// Its methods may be called from several goroutines.
type Ahead struct {
	fs   *Reader       // nil for the Ahead of files that are read in order
	room chan struct{} // holds an element after something was read or passed

	// Guarded by the cache's mutex.
	blocks map[*block]int64 // asked for and not read yet, with their positions
	closed bool
}

// ReadAhead returns an Ahead for a stream, or nil if there is no cache to read into.
func (f *Reader) ReadAhead() *Ahead {
	if f.cache == nil {
		return nil
	}
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	f.cache.aheads++
	a := newAhead()
	a.fs = f
	return a
}

func newAhead() *Ahead { return &Ahead{room: make(chan struct{}, 1), blocks: map[*block]int64{}} }

// Want asks for n bytes at an offset of a file, which the reader will read at a position, a number
// of its own that grows as it reads. Want makes no request itself. It reports whether there was
// room; Room signals when to try again.
func (a *Ahead) Want(name string, off, n, position int64) bool {
	a.fs.mu.Lock()
	v := a.fs.objects[name]
	a.fs.mu.Unlock()
	if v == nil || off < 0 {
		return true // it is another file system's
	}
	c := a.fs.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.want(a, v, off, min(off+n, v.Size), position)
}

// Passed reports that nothing before a position will be read any more.
func (a *Ahead) Passed(position int64) {
	c := a.fs.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed(a, position)
}

// Room returns a channel that gets an element when Want may find room again.
func (a *Ahead) Room() <-chan struct{} { return a.room }

// Go runs a function in a goroutine that the Reader waits for in Close. Once the Reader is closed, Go does
// not run it and returns false.
func (a *Ahead) Go(f func()) bool {
	a.fs.mu.Lock()
	defer a.fs.mu.Unlock()
	if a.fs.closed {
		return false
	}
	a.fs.checks.Go(f)
	return true
}

// Close drops the requests that have not begun. It may be called twice.
func (a *Ahead) Close() {
	c := a.fs.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	c.aheads--
	for b := range a.blocks {
		c.forget(b)
	}
}

func (c *cache) passed(a *Ahead, position int64) {
	for b, at := range a.blocks {
		if at < position {
			c.forget(b)
		}
	}
}

// want reserves and queues the missing blocks of the bytes from off to end.
func (c *cache) want(a *Ahead, v *version, off, end, position int64) bool {
	for index := off / c.block; index*c.block < end; index++ {
		if c.closed || a.closed {
			return true
		}
		key := blockKey{v.number, uint64(index)}
		if b := c.blocks[key]; b != nil {
			if b.place != nil {
				c.recent.MoveToFront(b.place)
			}
			if b.ahead == a {
				a.blocks[b] = max(a.blocks[b], position)
			}
			continue
		}
		if len(a.blocks) >= c.allowance() {
			return false
		}
		slot, ok := c.slot()
		if !ok {
			return false
		}
		b := &block{key: key, v: v, slot: slot, readers: 1, ready: make(chan struct{}), ahead: a, queued: true}
		c.blocks[key], a.blocks[b] = b, position
		c.queue = append(c.queue, b)
		if c.fetchers < maxAheadFetches {
			c.fetchers++
			c.running.Go(c.fetchAhead)
		}
	}
	return true
}

// allowance returns how many blocks an Ahead may have fetched that are not read yet.
func (c *cache) allowance() int {
	return int(max(1, min(maxAhead, c.limit/aheadShare/int64(max(1, c.aheads)))))
}

// forget stops counting a block as fetched ahead.
func (c *cache) forget(b *block) {
	if b.ahead == nil {
		return
	}
	delete(b.ahead.blocks, b)
	select {
	case b.ahead.room <- struct{}{}:
	default:
	}
	b.ahead = nil
}

// fetchAhead fetches blocks of the queue until it is empty.
func (c *cache) fetchAhead() {
	for {
		b := c.nextQueued()
		if b == nil {
			return
		}
		c.fill(b)
		c.release(b)
	}
}

// nextQueued takes the first block of the queue that somebody still wants and nobody fetches, or
// returns nil.
func (c *cache) nextQueued() *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 && !c.closed {
		b := c.queue[0]
		c.queue = c.queue[1:]
		switch {
		case !b.queued: // a reader has begun to fetch it
			b.readers--
			c.room.Broadcast()
		case b.ahead == nil: // its Ahead was closed
			delete(c.blocks, b.key)
			c.free = append(c.free, b.slot)
			c.room.Broadcast()
		default:
			b.queued = false
			return b
		}
	}
	c.queue = nil
	c.fetchers--
	return nil
}

// readOn asks for the blocks after one of a file that seems to be read in order: the block before
// it is in the cache.
func (c *cache) readOn(v *version, index int64, fetched bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
	if c.aheads == 0 && index > 0 && (fetched || c.blocks[blockKey{v.number, uint64(index - 1)}] != nil) {
		c.passed(c.onwards, c.begun-maxAhead) // files that are no longer read
		c.want(c.onwards, v, (index+1)*c.block, min(v.Size, (index+1+sequentialAhead)*c.block), c.begun)
	}
}
