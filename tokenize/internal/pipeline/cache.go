package pipeline

import (
	"hash/maphash"
	"math/bits"
)

// cache keeps the ids of pieces in a fixed number of bytes. When an arena is full, the cache starts
// over. Pieces come from any normalizer and split, at the speed of a regular expression, so the
// kernels of package chunkcache would gain nothing.
type cache struct {
	slots []slot
	keys  []byte
	ids   []uint32
	used  int
	epoch uint32
	seed  maphash.Seed
}

type slot struct {
	epoch  uint32
	hash   uint32
	key    uint32
	ids    uint32
	keyLen uint16
	numIDs uint16
}

const (
	slotBytes    = 20
	maxCachedKey = 256
)

// newCache returns a cache of about size bytes: a quarter for slots, half for keys, a quarter for
// ids.
func newCache(size int) *cache {
	size = int(cacheBytes(size))
	n := 1 << (bits.Len(uint(size/4/slotBytes)) - 1)
	return &cache{slots: make([]slot, n), keys: make([]byte, 0, size/2), ids: make([]uint32, 0, size/4/4), epoch: 1,
		seed: maphash.MakeSeed()}
}

func cacheBytes(size int) int64 { return int64(min(max(size, 16<<10), 1<<30)) }

// get returns the ids of a piece. If it has none, h and at are the hash and the slot for put.
func (c *cache) get(piece []byte) (ids []uint32, h, at uint32, ok bool) {
	h = uint32(maphash.Bytes(c.seed, piece))
	mask := uint32(len(c.slots) - 1)
	for at = h & mask; c.slots[at].epoch == c.epoch; at = (at + 1) & mask {
		s := &c.slots[at]
		if s.hash == h && string(c.keys[s.key:s.key+uint32(s.keyLen)]) == string(piece) {
			return c.ids[s.ids : s.ids+uint32(s.numIDs)], h, at, true
		}
	}
	return nil, h, at, false
}

func (c *cache) put(piece []byte, h, at uint32, ids []uint32) {
	if len(ids) > maxCachedKey*4 {
		return
	}
	if len(c.keys)+len(piece) > cap(c.keys) || len(c.ids)+len(ids) > cap(c.ids) || c.used >= len(c.slots)*3/4 {
		c.keys, c.ids, c.used = c.keys[:0], c.ids[:0], 0
		if c.epoch++; c.epoch == 0 {
			clear(c.slots)
			c.epoch = 1
		}
		at = h & uint32(len(c.slots)-1)
		if len(ids) > cap(c.ids) {
			return
		}
	}
	c.slots[at] = slot{c.epoch, h, uint32(len(c.keys)), uint32(len(c.ids)), uint16(len(piece)), uint16(len(ids))}
	c.keys = append(c.keys, piece...)
	c.ids = append(c.ids, ids...)
	c.used++
}
