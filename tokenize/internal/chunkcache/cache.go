// Package chunkcache caches the ids of chunks of raw text in a fixed number of bytes.
//
// It serves the engines that cut text into chunks (words, punctuation, runs of letters) whose ids
// depend on their own bytes alone. An engine copies text into a Window and marks where chunks begin
// and end. Emit looks up each chunk and asks the engine (Misser) for those that are not cached.
//
// Data flow: text -> Window -> Classify (masks of cuts and gaps) -> spans -> keys (key, line,
// prefetch) -> probe (ids).
//
//	I1  The key of a chunk of at most 16 bytes is the chunk, zero-padded. It is injective because
//	    text with NUL bytes never gets such a key: it goes through the long table, which compares
//	    length and bytes.
//	I2  New allocates all memory; nothing grows. New entries overwrite old ones.
//	I3  A value in a ring is valid until the ring's head has passed it again; probes check that,
//	    so there is no sweep.
//	I4  Every function with an assembly twin gives the same result in plain Go (build tag purego),
//	    bit for bit.
//
// A Cache belongs to one goroutine. Engine bytebpe has its own cache; its cache.go says why.
package chunkcache

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

const (
	maxInline   = 16  // bytes of the longest chunk that fits a key
	maxLong     = 512 // bytes of the longest cached chunk
	maxCopy     = 16  // ids that a probe always copies
	lineBytes   = 64
	spillFlag   = 0x8000
	maxSpillIDs = 0x7FFF
	wideIDBits  = 20
	wideIDMask  = 1<<wideIDBits - 1

	// MaxID is the largest id a Cache can hold.
	MaxID = wideIDMask
)

// line is one cache line. Chunks of up to 8 bytes live in lines of four (k = keys, v = values);
// chunks of 9 to 16 bytes in lines of two (k = lo0 lo1 hi0 hi1; v[0], v[1] = values, v[2], v[3] =
// ids 3 to 6 of each).
//
// A value is three 16-bit ids and a count n: n <= 3 all inline; 4..7 the rest in v[i+2]; with
// spillFlag the low 32 bits are a position in the ring of ids. Where ids need more than 16 bits
// ("wide") a value is three 20-bit ids and a 4-bit count, 15 meaning the ring, whose count then
// lies in bits 32..59.
type line struct {
	k [4]uint64
	v [4]uint64
}

// record is what the key stage passes to the probe stage about one chunk.
type record struct {
	lo, hi uint64
	off    uint64 // the line's, in bytes
	f      uint64 // 0xF for lines of four, else 0
}

// keyRule says how chunks of one length become keys. There are 18 rules, for 0 to 16 bytes and for
// longer chunks.
type keyRule struct {
	maskLo, maskHi uint64
	and, add       uint32
	f              uint32
	or             uint32 // all ones for chunks that can never match, else 0
}

const (
	hashLo = 0x9E3779B97F4A7C15
	hashHi = 0xC2B2AE3D27D4EB4F
)

// Cache is one goroutine's cache.
type Cache struct {
	lines []line // nA lines of four, then nB lines of two
	rules [2][maxInline + 2]keyRule
	wide  bool

	spill16 ring[uint16]
	spill32 ring[uint32]

	long      []longEntry
	longMask  uint32
	longBytes ring[byte]

	seeds  func() []uint32 // see SeedLater; nil after Warm
	seed   func(id uint32) []byte
	stored uint64 // chunks of texts and seeds, of at most maxInline bytes

	skip  uint32 // chunks that begin before this offset of the window are done
	spans [batch + 64]Span
	recs  [batch + 64]record
}

type longEntry struct {
	tag uint32
	pos uint32 // where the chunk's bytes begin in longBytes, followed by its ids
	len uint16
	n   uint16
}

// sizes says how New divides cacheBytes. The numbers of lines and entries and the sizes of rings
// are powers of two.
type sizes struct{ nA, nB, nLong, longBytes, spillBytes int }

func divide(cacheBytes int) sizes {
	fits := func(s sizes) bool { return s.bytes() <= cacheBytes }
	var s sizes
	for u := 1 << 16; ; u *= 2 {
		t := sizes{nA: u / 4 / lineBytes, nB: u / 4 / lineBytes, nLong: u / 256, longBytes: u / 4, spillBytes: u / 8}
		if u > 1<<16 && !fits(t) {
			break
		}
		s = t
	}
	// The remainder may suffice to double some of the parts.
	for _, part := range []*int{&s.nA, &s.longBytes, &s.spillBytes, &s.nB} {
		if *part *= 2; !fits(s) {
			*part /= 2
		}
	}
	return s
}

func (s sizes) bytes() int {
	return int(unsafe.Sizeof(Cache{})) + (s.nA+s.nB)*lineBytes + s.nLong*longEntrySize + s.longBytes + s.spillBytes +
		4*maxCopy
}

const longEntrySize = int(unsafe.Sizeof(longEntry{}))

// MinBytes is the smallest size in bytes; New raises smaller ones to it.
const MinBytes = 64 << 10

// DefaultBytes is the size in bytes that 0 stands for.
const DefaultBytes = 8 << 20

// Bytes returns how much memory a Cache of that size holds: at most cacheBytes, if that is at least
// MinBytes.
func Bytes(cacheBytes int) int { return divide(orDefault(cacheBytes)).bytes() }

func orDefault(bytes int) int {
	if bytes <= 0 {
		return DefaultBytes
	}
	return bytes
}

// Budget returns what of an encoder's bytes (0: DefaultBytes) is left for its cache after its window and its own
// scratch.
func Budget(encoderBytes, scratchBytes int) int {
	return max(orDefault(encoderBytes)-WindowBytes-scratchBytes, MinBytes)
}

// EncoderBytes is the memory of an encoder with that budget.
func EncoderBytes(encoderBytes, scratchBytes int) int64 {
	return int64(Bytes(Budget(encoderBytes, scratchBytes)) + WindowBytes + scratchBytes)
}

// New returns a cache of at most cacheBytes (0: DefaultBytes) for ids up to maxID, which must not
// exceed MaxID.
func New(cacheBytes int, maxID uint32) *Cache {
	s := divide(orDefault(cacheBytes))
	c := &Cache{
		lines:    make([]line, s.nA+s.nB),
		long:     make([]longEntry, s.nLong),
		longMask: uint32(s.nLong - 1),
		wide:     maxID > 0xFFFF,
	}
	c.longBytes.init(s.longBytes)
	if c.wide {
		c.spill32.init(s.spillBytes / 4)
	} else {
		c.spill16.init(s.spillBytes / 2)
	}
	for l := range c.rules[0] {
		r := &c.rules[0][l]
		switch {
		case l <= 8:
			r.maskLo = lowBytes(l)
			r.and, r.add, r.f = uint32(s.nA-1)*lineBytes, 0, 0xF
		case l <= maxInline:
			r.maskLo, r.maskHi = ^uint64(0), lowBytes(l-8)
			r.and, r.add = uint32(s.nB-1)*lineBytes, uint32(s.nA)*lineBytes
		default: // never matches: no chunk of 9 to 16 bytes has hi == 0
			r.and, r.add, r.or = uint32(s.nB-1)*lineBytes, uint32(s.nA)*lineBytes, ^uint32(0)
		}
	}
	for l := range c.rules[1] {
		c.rules[1][l] = c.rules[0][maxInline+1]
	}
	c.Reset()
	return c
}

func lowBytes(n int) uint64 {
	if n >= 8 {
		return ^uint64(0)
	}
	return 1<<(8*uint(n)) - 1
}

// Reset empties the cache.
func (c *Cache) Reset() {
	clear(c.lines)
	clear(c.long)
	c.spill16.reset()
	c.spill32.reset()
	c.longBytes.reset()
}

// makeKey is the plain twin of one step of the key stage. p must have 16 readable bytes.
func makeKey(p *[16]byte, r *keyRule) record {
	lo := binary.LittleEndian.Uint64(p[:8])&r.maskLo | uint64(r.or) | uint64(r.or)<<32
	hi := binary.LittleEndian.Uint64(p[8:]) & r.maskHi
	h, l := bits.Mul64(lo^hashLo, hi^hashHi)
	return record{lo: lo, hi: hi, off: uint64(uint32(h^l)&r.and + r.add), f: uint64(r.f)}
}

// rule returns the rules for text with or without NUL bytes.
func (c *Cache) rule(hasNUL bool) *[maxInline + 2]keyRule {
	if hasNUL {
		return &c.rules[1]
	}
	return &c.rules[0]
}

// find returns which of the line's entries is r's, -1 if none is.
func (ln *line) find(r *record) int {
	if r.f == 0 { // two keys of two words
		switch {
		case ln.k[0] == r.lo && ln.k[2] == r.hi:
			return 0
		case ln.k[1] == r.lo && ln.k[3] == r.hi:
			return 1
		}
		return -1
	}
	switch r.lo {
	case ln.k[0]:
		return 0
	case ln.k[1]:
		return 1
	case ln.k[2]:
		return 2
	case ln.k[3]:
		return 3
	}
	return -1
}

// lookup does one whole probe: it returns dst with the ids appended, or false.
func (c *Cache) lookup(dst []uint32, r *record) ([]uint32, bool) {
	ln := &c.lines[r.off/lineBytes]
	way := ln.find(r)
	if way < 0 {
		return dst, false
	}
	v := ln.v[way]
	if c.wide {
		switch n := v >> 60; {
		case n <= 3:
			ids := [3]uint32{uint32(v) & wideIDMask, uint32(v>>wideIDBits) & wideIDMask,
				uint32(v>>(2*wideIDBits)) & wideIDMask}
			return append(dst, ids[:n]...), true
		default:
			ids, ok := c.spill32.get(uint32(v), int(v>>32&0xFFFFFFF))
			return append(dst, ids...), ok
		}
	}
	switch n := v >> 48; {
	case n <= 3:
		ids := [3]uint32{uint32(v) & 0xFFFF, uint32(v>>16) & 0xFFFF, uint32(v>>32) & 0xFFFF}
		return append(dst, ids[:n]...), true
	case n <= 7:
		w := ln.v[way+2]
		ids := [7]uint32{uint32(v) & 0xFFFF, uint32(v>>16) & 0xFFFF, uint32(v>>32) & 0xFFFF,
			uint32(w) & 0xFFFF, uint32(w>>16) & 0xFFFF, uint32(w>>32) & 0xFFFF, uint32(w>>48) & 0xFFFF}
		return append(dst, ids[:n]...), true
	default:
		ids, ok := c.spill16.get(uint32(v), int(n&maxSpillIDs))
		for _, id := range ids {
			dst = append(dst, uint32(id))
		}
		return dst, ok
	}
}

// insert puts ids at the front of r's line; the last entry is dropped.
func (c *Cache) insert(r *record, ids []uint32) {
	c.stored++
	v, w, ok := c.value(ids, r.f == 0)
	if !ok {
		return
	}
	ln := &c.lines[r.off/lineBytes]
	if r.f != 0 {
		ln.k = [4]uint64{r.lo, ln.k[0], ln.k[1], ln.k[2]}
		ln.v = [4]uint64{v, ln.v[0], ln.v[1], ln.v[2]}
		return
	}
	ln.k = [4]uint64{r.lo, ln.k[0], r.hi, ln.k[2]}
	ln.v = [4]uint64{v, ln.v[0], w, ln.v[2]}
}

// value packs ids; two means that the line holds two entries, of up to seven ids.
func (c *Cache) value(ids []uint32, two bool) (v, w uint64, ok bool) {
	n := len(ids)
	if c.wide {
		if n <= 3 {
			for i, id := range ids {
				v |= uint64(id) << (wideIDBits * i)
			}
			return v | uint64(n)<<60, 0, true
		}
		pos, dst, ok := c.spill32.put(n)
		if !ok {
			return 0, 0, false
		}
		copy(dst, ids)
		return uint64(pos) | uint64(n)<<32 | 15<<60, 0, true
	}
	if n <= 3 || two && n <= 7 {
		for i, id := range ids {
			if i < 3 {
				v |= uint64(id) << (16 * i)
			} else {
				w |= uint64(id) << (16 * (i - 3))
			}
		}
		return v | uint64(n)<<48, w, true
	}
	if n > maxSpillIDs {
		return 0, 0, false
	}
	pos, dst, ok := c.spill16.put(n)
	if !ok {
		return 0, 0, false
	}
	for i, id := range ids {
		dst[i] = uint16(id)
	}
	return uint64(pos) | uint64(n|spillFlag)<<48, 0, true
}
