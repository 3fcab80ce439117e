package bytebpe

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The word cache.
//
// Words of up to 8 bytes (A) and of 9 to 16 bytes (B) live in lines of 64 bytes, eight 64-bit
// words:
//
//	A: key0 key1 key2 key3 value0 value1 value2 value3
//	B: lo0  lo1  hi0  hi1  value0 value1 -      -
//
// A key is the word's bytes, little endian, padded with zeros; since words with a NUL byte are
// never cached, it is injective, a used A key is not zero, and a used B entry has hi != 0. All A
// lines come first, then the B lines, then an always-empty line, so that longer words miss.
// A new entry goes to way 0, the others move down and the last is dropped.
//
// A value holds up to three ids of 20 bits and their number in the top four bits; the number
// spilled says that bits 40..59 count the ids and bits 0..39 are their position in the ring of
// spilled ids. Positions only grow; the ring keeps the newest ids, and an overwritten position is a
// miss.
//
// Words of 17 to maxLong bytes live in a direct-mapped table over a second ring, which holds their
// bytes and their value. So do the chunks of longer words, with their ids and the offsets of those:
// otherwise a megabyte of one letter would merge the same chunk again and again.
//
// Package chunkcache holds a similar cache for the other engines, and package pipeline a simple one
// for models without an engine. They are not merged: this one's probe and emit steps, where an
// encoder spends most of its time, are assembly over this layout.

const (
	mulLo = 0x9e3779b97f4a7c15
	mulHi = 0xc2b2ae3d27d4eb4f

	lineWords = 8
	idBits    = 20
	idMask    = 1<<idBits - 1
	spilled   = 15
	longMark  = 14 << 60 // marks a long word among the values of a window
	zeroMark  = 13 << 60 // marks a word with a zero byte
	ringSlack = 64       // ids that may be read or written past a record or the output
	lineSlack = 8        // lines past the last that a kernel may read
	maxLong   = 256      // longest cached word
)

// keyKind says how words of one length are looked up; the kernels index a table of kinds by
// min(length, 17).
type keyKind struct {
	maskLo, maskHi uint64
	same           uint64 // all ones for A: the compared pair is lo, lo; zero for B: lo, hi
	shift, base    uint32 // byte offset of the line: hash>>shift &^ 63 + base
}

type cache struct {
	lines []uint64
	kinds [18]keyKind

	spill     []uint32
	spillHead uint64 // next position

	longIndex []uint64 // tag<<40 | position, 0 if empty
	long      []byte
	longHead  uint64
}

// cacheLayout holds the sizes of a cache's regions, as powers of two.
type cacheLayout struct{ aBits, bBits, spillBits, indexBits, longBits int }

// minCache is the smallest cache in bytes; smaller sizes are raised to it.
const minCache = 128 << 10

// layoutOf returns the largest layout within cacheBytes.
func layoutOf(cacheBytes int) cacheLayout {
	var best cacheLayout
	for b := 17; b < 48; b++ {
		s := cacheLayout{aBits: b - 2 - 6, bBits: b - 2 - 6, spillBits: b - 2 - 2, indexBits: b - 4 - 3, longBits: b - 3}
		if b > 17 && s.bytes() > int64(cacheBytes) {
			break
		}
		best = s
	}
	return best
}

func (s cacheLayout) bytes() int64 {
	return int64(64<<s.aBits + 64<<s.bBits + 64*(1+lineSlack) + (1<<s.spillBits+ringSlack)*4 + 8<<s.indexBits +
		1<<s.longBits)
}

func (c *cache) init(s cacheLayout) {
	c.lines = make([]uint64, lineWords*(1<<s.aBits+1<<s.bBits+1+lineSlack))
	c.spill = make([]uint32, 1<<s.spillBits+ringSlack)
	c.longIndex = make([]uint64, 1<<s.indexBits)
	c.long = make([]byte, 1<<s.longBits)
	c.longHead = 1
	for l := range c.kinds {
		k := keyKind{maskLo: ^uint64(0), shift: uint32(64 - s.bBits - 6), base: 64 << s.aBits}
		switch {
		case l <= 8:
			k.maskLo = 1<<(8*l) - 1
			k.same, k.shift, k.base = ^uint64(0), uint32(64-s.aBits-6), 0
		case l <= 16:
			k.maskHi = 1<<(8*(l-8)) - 1
		default:
			k.maskHi, k.shift, k.base = ^uint64(0), 63, 64<<s.aBits+64<<s.bBits
		}
		c.kinds[l] = k
	}
}

// touch maps the cache's memory, so that encoding meets no page faults.
func (c *cache) touch() {
	populate(c.lines)
	populate(c.spill)
	populate(c.longIndex)
	populate(c.long)
}

// probe is a word ready for lookup.
type probe struct {
	lo, second uint64 // compared with the lanes of the line
	line       uint32 // byte offset
	any        uint32 // 0xf for A, where each matching lane is a hit; 0 for B, where two must match
}

// probes is a batch of probes in the kernels' layout. Some kernels fill up to seven past the batch.
type probes struct {
	pairs [batchWords + 8][2]uint64
	lines [batchWords + 8]uint32
	any   [batchWords + 8]uint32
}

// probeOf returns the probe of a word of 1..16 bytes without NUL.
func (c *cache) probeOf(w []byte) probe {
	var b [16]byte
	copy(b[:], w)
	k := &c.kinds[len(w)]
	lo, hi := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	return k.probe(lo, hi)
}

func (k *keyKind) probe(lo, hi uint64) probe {
	h := lo*mulLo + hi*mulHi
	return probe{lo: lo, second: hi | lo&k.same, line: uint32(h>>(k.shift&63))&^63 + k.base, any: uint32(k.same) & 15}
}

// insert stores the ids of a word of 1..16 bytes without NUL.
func (c *cache) insert(p *probe, v uint64) {
	line := (*[lineWords]uint64)(c.lines[p.line/8:])
	if p.any != 0 {
		line[3], line[2], line[1], line[0] = line[2], line[1], line[0], p.lo
		line[7], line[6], line[5], line[4] = line[6], line[5], line[4], v
		return
	}
	line[1], line[0] = line[0], p.lo
	line[3], line[2] = line[2], p.second
	line[5], line[4] = line[4], v
}

// find returns a pointer to the value of a word of 1..16 bytes, or nil.
func (c *cache) find(p *probe) *uint64 {
	line := (*[lineWords]uint64)(c.lines[p.line/8:])
	if p.any != 0 {
		switch p.lo {
		case line[0]:
			return &line[4]
		case line[1]:
			return &line[5]
		case line[2]:
			return &line[6]
		case line[3]:
			return &line[7]
		}
		return nil
	}
	if line[0] == p.lo && line[2] == p.second {
		return &line[4]
	}
	if line[1] == p.lo && line[3] == p.second {
		return &line[5]
	}
	return nil
}

// value packs ids; more than three go to the ring.
func (c *cache) value(ids []uint32) uint64 {
	switch len(ids) {
	case 1:
		return uint64(ids[0]) | 1<<60
	case 2:
		return uint64(ids[0]) | uint64(ids[1])<<20 | 2<<60
	case 3:
		return uint64(ids[0]) | uint64(ids[1])<<20 | uint64(ids[2])<<40 | 3<<60
	}
	size := uint64(len(c.spill) - ringSlack)
	pos := c.spillHead
	if at := pos & (size - 1); at+uint64(len(ids)) > size {
		pos += size - at
	}
	copy(c.spill[pos&(size-1):], ids)
	c.spillHead = pos + uint64(len(ids))
	return pos&(1<<40-1) | uint64(len(ids))<<40 | spilled<<60
}

// spillLive reports whether the ids at a position have not been overwritten.
func (c *cache) spillLive(pos uint64) bool {
	return c.spillHead-pos <= uint64(len(c.spill)-ringSlack)
}

func (c *cache) spillAt(pos uint64) int { return int(pos & uint64(len(c.spill)-ringSlack-1)) }

// hasOffsets is the flag in a record's header that says that it is a chunk's. The header also holds
// the length in bytes (16 bits) and a chunk's number of ids (15 bits).
const hasOffsets = 1 << 15

// longEntry returns the entry of the table for bytes with this hash.
func (c *cache) longEntry(hash uint64) *uint64 {
	return &c.longIndex[hash>>40&uint64(len(c.longIndex)-1)]
}

// findLong returns the record of w after the bytes themselves: the value of a word, or ids of 32
// bits and offsets of 16 bits of a chunk.
func (c *cache) findLong(w []byte, hash uint64, flag int) (rec []byte, n int) {
	e := *c.longEntry(hash)
	pos := e & (1<<40 - 1)
	if e>>40 != hash&(1<<24-1) || pos == 0 || c.longHead-pos > uint64(len(c.long)) {
		return nil, 0
	}
	rec = c.long[pos&uint64(len(c.long)-1):]
	size, n := int(binary.LittleEndian.Uint16(rec)), int(binary.LittleEndian.Uint16(rec[2:]))
	if size != len(w) || n&hasOffsets != flag || !bytes.Equal(rec[4:4+size], w) {
		return nil, 0
	}
	return rec[4+size:], n &^ hasOffsets
}

// findWord returns the value of a word of 17..maxLong bytes, 0 if it is not cached.
func (c *cache) findWord(w []byte, hash uint64) uint64 {
	rec, _ := c.findLong(w, hash, 0)
	if rec == nil {
		return 0
	}
	v := binary.LittleEndian.Uint64(rec)
	if v>>60 == spilled && !c.spillLive(v&(1<<40-1)) {
		return 0
	}
	return v
}

// appendValue appends the ids of a value that findWord has just returned.
func (c *cache) appendValue(dst []uint32, v uint64) []uint32 {
	if v>>60 == spilled {
		at := c.spillAt(v & (1<<40 - 1))
		return append(dst, c.spill[at:at+int(v>>40&idMask)]...)
	}
	for n := v >> 60; n > 0; n-- {
		dst = append(dst, uint32(v&idMask))
		v >>= idBits
	}
	return dst
}

// findChunk copies the ids of a cached chunk and where they begin into the given slices.
func (c *cache) findChunk(w []byte, hash uint64, ids, at []uint32) (_, _ []uint32) {
	rec, n := c.findLong(w, hash, hasOffsets)
	ids, at = ids[:0], at[:0]
	for i := range n {
		ids = append(ids, binary.LittleEndian.Uint32(rec[4*i:]))
		at = append(at, uint32(binary.LittleEndian.Uint16(rec[4*n+2*i:])))
	}
	return ids, at
}

// seenBefore reports whether bytes with this hash were seen lately, and records that they were seen
// now: text that occurs once is not worth caching.
func (c *cache) seenBefore(hash uint64) bool {
	e := c.longEntry(hash)
	if *e>>40 == hash&(1<<24-1) {
		return true
	}
	*e = hash & (1<<24 - 1) << 40
	return false
}

// insertWord caches the value of a word of 17..maxLong bytes.
func (c *cache) insertWord(w []byte, hash, v uint64) {
	binary.LittleEndian.PutUint64(c.insertLong(w, hash, 0, 8), v)
}

// insertChunk caches the ids of a chunk and where they begin.
func (c *cache) insertChunk(w []byte, hash uint64, ids, at []uint32) {
	rec := c.insertLong(w, hash, uint16(len(ids))|hasOffsets, 6*len(ids))
	for i, id := range ids {
		binary.LittleEndian.PutUint32(rec[4*i:], id)
		binary.LittleEndian.PutUint16(rec[4*len(ids)+2*i:], uint16(at[i]))
	}
}

// insertLong makes room for a record, of which size bytes after w are the caller's to fill.
func (c *cache) insertLong(w []byte, hash uint64, n uint16, size int) []byte {
	need, ring := uint64(4+len(w)+size), uint64(len(c.long))
	pos := c.longHead
	if off := pos & (ring - 1); off+need > ring {
		pos += ring - off
	}
	rec := c.long[pos&(ring-1):]
	binary.LittleEndian.PutUint16(rec, uint16(len(w)))
	binary.LittleEndian.PutUint16(rec[2:], n)
	copy(rec[4:], w)
	c.longHead = pos + need
	*c.longEntry(hash) = pos&(1<<40-1) | hash&(1<<24-1)<<40
	return rec[4+len(w):]
}

// hashBytes hashes b. It is for tables in memory whose users compare the bytes too.
func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) * mulLo
	for len(b) > 8 {
		h = bits.RotateLeft64((h^binary.LittleEndian.Uint64(b))*mulHi, 29)
		b = b[8:]
	}
	var tail uint64
	switch n := len(b); {
	case n >= 4:
		tail = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		tail = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	h = (h ^ tail) * mulLo
	return h ^ h>>29
}
