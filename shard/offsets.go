package shard

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/dsload/dsload/internal/shardfile"
)

// offsetPage holds the offsets of a record batch's rows in one of its list columns: the lengths,
// each as many bits wide as the difference of the longest and the shortest needs, and the start of
// every pageStride-th row. Rows of equal length take no bits.
type offsetPage struct {
	shortest int64
	width    uint     // bits of a length, counted from shortest
	starts   []uint32 // starts of row 0, pageStride, 2·pageStride …; only the first if all rows have the same length
	lengths  []byte   // followed by 8 bytes, so that a length can be read by loading 8
}

const (
	// pageStride is the distance of the rows whose starts are kept. A row is found by adding lengths
	// from the nearer of two, which costs a small part of the read that it saves.
	pageStride = 8
	// pageOverhead is the size of a page without its slices: the struct and its entries in the map
	// and in the ring.
	pageOverhead = 160
	// Once the cache is full, one miss in pageTurnover admits its page. Making a page costs several
	// times as much as a miss, and with rows in random order no page is better than another; but
	// pages that are no longer used must leave eventually.
	pageTurnover = 256
	// Until then, one in pageAdmission does, or one for as many rows: few rows of each of many batches
	// need no pages, and batches that are read again and again get theirs soon.
	pageAdmission = 16
)

// newOffsetPage packs the offsets of a list column, given as they are on disk. It returns nil if
// they are out of order or a length is below least or above most: such a batch is read offset by
// offset, so that only its damaged rows are errors.
func newOffsetPage(offsets []byte, least, most int64) *offsetPage {
	first, ends := int64(int32(binary.LittleEndian.Uint32(offsets))), offsets[4:]
	shortest, longest := int64(shardfile.MaxRowTokens), int64(0)
	for start, p := first, ends; len(p) >= 4; p = p[4:] {
		end := int64(int32(binary.LittleEndian.Uint32(p)))
		shortest, longest = min(shortest, end-start), max(longest, end-start)
		start = end
	}
	if first < 0 || shortest < least || longest > most {
		return nil
	}
	p := &offsetPage{shortest: shortest, width: uint(bits.Len64(uint64(longest - shortest)))}
	if p.width == 0 {
		p.starts = []uint32{uint32(first)}
		return p
	}
	rows := len(ends) / 4
	p.starts = make([]uint32, 0, (rows+pageStride-1)/pageStride)
	p.lengths = make([]byte, (rows*int(p.width)+7)/8+8)
	word, have, full := uint64(0), uint(0), p.lengths // the bits that are not yet in lengths, and where they go
	for i, start := 0, first; i < rows; i++ {
		if i%pageStride == 0 {
			p.starts = append(p.starts, uint32(start))
		}
		end := int64(int32(binary.LittleEndian.Uint32(ends[4*i:])))
		n := uint64(end - start - shortest)
		start = end
		word |= n << have
		if have += p.width; have >= 64 {
			binary.LittleEndian.PutUint64(full, word)
			full, have = full[8:], have-64
			word = n >> (p.width - have)
		}
	}
	binary.LittleEndian.PutUint64(full, word)
	return p
}

// length returns the number of values of a row.
func (p *offsetPage) length(row int64) int64 {
	if p.width == 0 {
		return p.shortest
	}
	bit := uint(row) * p.width
	return p.shortest + int64(binary.LittleEndian.Uint64(p.lengths[bit/8:])>>(bit%8)&(1<<p.width-1))
}

// start returns the index of a row's first value among those of the batch.
func (p *offsetPage) start(row int64) int64 {
	if p.width == 0 {
		return int64(p.starts[0]) + row*p.shortest
	}
	if next := row/pageStride + 1; row%pageStride > pageStride/2 && next < int64(len(p.starts)) {
		return int64(p.starts[next]) - p.sum(row, next*pageStride)
	}
	return int64(p.starts[row/pageStride]) + p.sum(row&^(pageStride-1), row)
}

// sum returns the number of values of the rows from `from` up to end.
func (p *offsetPage) sum(from, end int64) int64 {
	n, mask := (end-from)*p.shortest, uint64(1)<<p.width-1
	for bit := uint(from) * p.width; from < end; from++ {
		n += int64(binary.LittleEndian.Uint64(p.lengths[bit/8:]) >> (bit % 8) & mask)
		bit += p.width
	}
	return n
}

func (p *offsetPage) bytes() int64 { return pageOverhead + int64(4*cap(p.starts)+cap(p.lengths)) }

// pageKey names a page within a dataset.
type pageKey struct {
	batch  uint32
	shard  uint32
	split  uint8
	column uint8
}

// offsetCache holds pages of batches that were read from, up to max bytes. It is safe for
// concurrent use.
type offsetCache struct {
	max    int64
	misses atomic.Uint32
	held   atomic.Int64

	mu    sync.RWMutex
	pages map[pageKey]*offsetPage
	ring  []pageKey // pages in the order in which the clock's hand passes over them
	hand  int
}

func (c *offsetCache) get(k pageKey) *offsetPage {
	if c.max <= 0 {
		return nil
	}
	c.mu.RLock()
	p := c.pages[k]
	c.mu.RUnlock()
	return p
}

// wants reports whether it pays to make the page that was just missed for so many rows.
func (c *offsetCache) wants(rows int) bool {
	if c.max <= 0 {
		return false
	}
	misses, hasRoom := c.misses.Add(1), c.held.Load() < c.max-maxPageBytes
	return hasRoom && (rows >= pageAdmission || misses%pageAdmission == 0) || misses%pageTurnover == 0
}

// maxPageBytes is the size of the largest page, whose lengths are as wide as MaxRowTokens.
const maxPageBytes = pageOverhead + 4*shardfile.MaxBatchRows/pageStride + 29*shardfile.MaxBatchRows/8 + 8

// put keeps p, and drops other pages to make room for it.
func (c *offsetCache) put(k pageKey, p *offsetPage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := p.bytes()
	if c.pages[k] != nil || size > c.max {
		return
	}
	held := c.held.Load() + size
	for ; held > c.max; c.ring = c.ring[:len(c.ring)-1] {
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		held -= c.pages[c.ring[c.hand]].bytes()
		delete(c.pages, c.ring[c.hand])
		c.ring[c.hand] = c.ring[len(c.ring)-1]
		c.hand++
	}
	c.held.Store(held)
	if c.pages == nil {
		c.pages = map[pageKey]*offsetPage{}
	}
	c.pages[k] = p
	c.ring = append(c.ring, k)
}
