package chunkcache

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// batch is how many chunks go through the key stage before they are probed: enough for a prefetch
// to arrive.
const batch = 96

// Span is a chunk: offsets into a window's text.
type Span struct{ Start, End uint32 }

// Misser computes the ids of chunks that are not cached.
type Misser interface {
	// Miss appends the ids of w.Text()[s.Start:s.End]. It returns false if they depend on more than
	// the chunk's bytes, so that they must not be cached.
	Miss(dst []uint32, w *Window, s Span) ([]uint32, bool)
}

// Emit appends the ids of the text before offset limit, which must be the end of a chunk or lie in a
// gap, and removes that text from the window.
func (c *Cache) Emit(dst []uint32, w *Window, limit int, m Misser) []uint32 {
	if limit > 0 {
		w.finish()
		dst = c.emit(dst, w, limit, m)
		w.advance(limit)
	}
	return dst
}

// emit appends the ids of every chunk that begins before limit, which is above 0.
func (c *Cache) emit(dst []uint32, w *Window, limit int, m Misser) []uint32 {
	if c.spill16.size != 0 && c.spill16.full() || c.spill32.size != 0 && c.spill32.full() || c.longBytes.full() {
		c.Reset()
	}
	if c.stored > coldMisses {
		c.Warm()
	}
	rules := c.rule(w.hasNUL)
	words := (limit + 63) / 64
	starts, ends := w.starts[:words], w.ends[:words+1]
	// An end at limit itself may lie in the next word; starts at or beyond limit are not ours.
	lastStarts := starts[words-1]
	if r := limit & 63; r != 0 {
		lastStarts &= 1<<r - 1
	}
	c.skip = 0
	var n int // spans pending
	var sw, ew int
	var eb = ends[0]
	for sw < words {
		sb := starts[sw]
		if sw == words-1 {
			sb = lastStarts
		}
		base := uint32(sw) * 64
		for sb != 0 {
			c.spans[n].Start = base + uint32(bits.TrailingZeros64(sb))
			sb &= sb - 1
			for eb == 0 {
				ew++
				eb = ends[ew]
			}
			c.spans[n].End = uint32(ew)*64 + uint32(bits.TrailingZeros64(eb))
			eb &= eb - 1
			n++
		}
		sw++
		if n >= batch || sw == words && n > 0 {
			dst = c.emitSpans(dst, w, n, rules, m)
			n = 0
		}
	}
	return dst
}

// emitSpans runs the first n spans through the key and probe stages.
func (c *Cache) emitSpans(dst []uint32, w *Window, n int, rules *[maxInline + 2]keyRule, m Misser) []uint32 {
	text := w.text()
	c.keys(unsafe.SliceData(text), n, rules)
	i := 0
	for i < n && c.spans[i].Start < c.skip {
		i++
	}
	for i < n {
		dst = slices.Grow(dst, (n-i)*maxCopy+maxCopy)
		i, dst = c.probe(dst, i, n)
		if i == n {
			break
		}
		s := c.spans[i]
		r := &c.recs[i]
		i++
		if r.lo == ^uint64(0) && r.hi == 0 {
			dst = c.emitLong(dst, w, s, m)
			for i < n && c.spans[i].Start < c.skip {
				i++
			}
			continue
		}
		var ok bool
		if dst, ok = c.lookup(dst, r); ok {
			continue
		}
		before := len(dst)
		if dst, ok = m.Miss(dst, w, s); ok {
			c.insert(r, dst[before:])
		}
		for i < n && c.spans[i].Start < c.skip {
			i++
		}
	}
	return dst
}

// Skip is called by Miss when it has encoded all text of the window before offset to.
func (c *Cache) Skip(to int) { c.skip = uint32(to) }

// keysGo is the plain twin of the key stage.
func (c *Cache) keysGo(text *byte, n int, rules *[maxInline + 2]keyRule) {
	for i := range c.spans[:n] {
		s := c.spans[i]
		l := min(s.End-s.Start, maxInline+1)
		p := (*[16]byte)(unsafe.Add(unsafe.Pointer(text), s.Start)) // windows are padded
		c.recs[i] = makeKey(p, &rules[l])
	}
}

// probeGo is the plain twin of the probe stage: it appends the ids of spans from i on, up to the
// first that is not found or that the caller must handle, and returns its index.
func (c *Cache) probeGo(dst []uint32, i, n int) (int, []uint32) {
	if c.wide {
		return c.probeWide(dst, i, n)
	}
	out := dst[len(dst):cap(dst)]
	k := 0
	for ; i < n; i++ {
		r := &c.recs[i]
		ln := &c.lines[r.off/lineBytes]
		way := ln.find(r)
		if way < 0 {
			return i, dst[:len(dst)+k]
		}
		v := ln.v[way]
		cnt := int(v >> 48)
		o := (*[8]uint32)(out[k:])
		o[0], o[1], o[2] = uint32(v)&0xFFFF, uint32(v>>16)&0xFFFF, uint32(v>>32)&0xFFFF
		if cnt > 3 {
			if cnt > 7 {
				return i, dst[:len(dst)+k]
			}
			x := ln.v[way+2]
			o[3], o[4], o[5], o[6] = uint32(x)&0xFFFF, uint32(x>>16)&0xFFFF, uint32(x>>32)&0xFFFF, uint32(x>>48)
		}
		k += cnt
	}
	return i, dst[:len(dst)+k]
}

func (c *Cache) probeWide(dst []uint32, i, n int) (int, []uint32) {
	for ; i < n; i++ {
		var ok bool
		if dst, ok = c.lookup(dst, &c.recs[i]); !ok {
			break
		}
	}
	return i, dst
}

// emitLong looks up a chunk of more than maxInline bytes, or any chunk of text with NUL bytes.
func (c *Cache) emitLong(dst []uint32, w *Window, s Span, m Misser) []uint32 {
	chunk := w.text()[s.Start:s.End]
	if len(chunk) > maxLong {
		dst, _ = m.Miss(dst, w, s)
		return dst
	}
	if len(chunk) <= maxInline && bytes.IndexByte(chunk, 0) < 0 { // a chunk without NUL, in text with some
		r := makeKey((*[16]byte)(w.text()[s.Start:]), &c.rules[0][len(chunk)])
		dst, ok := c.lookup(dst, &r)
		if ok {
			return dst
		}
		before := len(dst)
		if dst, ok = m.Miss(dst, w, s); ok {
			c.insert(&r, dst[before:])
		}
		return dst
	}
	h := hashLong(chunk)
	tag := uint32(h>>32) | 1 // 0 marks an empty entry
	set := uint32(h) & c.longMask &^ 1
	for k := range uint32(2) {
		e := &c.long[set+k]
		if e.tag != tag || int(e.len) != len(chunk) {
			continue
		}
		size := entryBytes(len(chunk), int(e.n), c.wide)
		b, ok := c.longBytes.get(e.pos, size)
		if !ok || string(b[:len(chunk)]) != string(chunk) {
			continue
		}
		return c.longIDs(dst, b[len(chunk):], int(e.n))
	}
	before := len(dst)
	dst, ok := m.Miss(dst, w, s)
	if !ok {
		return dst
	}
	ids := dst[before:]
	if len(ids) > 0xFFFF {
		return dst
	}
	pos, b, ok := c.longBytes.put(entryBytes(len(chunk), len(ids), c.wide))
	if !ok {
		return dst
	}
	b = b[copy(b, chunk):]
	for i, id := range ids {
		if c.wide {
			binary.LittleEndian.PutUint32(b[4*i:], id)
		} else {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(id))
		}
	}
	c.long[set+1] = c.long[set]
	c.long[set] = longEntry{tag: tag, pos: pos, len: uint16(len(chunk)), n: uint16(len(ids))}
	return dst
}

func entryBytes(chunk, ids int, wide bool) int {
	if wide {
		return chunk + 4*ids
	}
	return chunk + 2*ids
}

func (c *Cache) longIDs(dst []uint32, b []byte, n int) []uint32 {
	dst = slices.Grow(dst, n)
	out := dst[len(dst) : len(dst)+n]
	if c.wide {
		for i := range out {
			out[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
	} else {
		for i := range out {
			out[i] = uint32(binary.LittleEndian.Uint16(b[2*i:]))
		}
	}
	return dst[:len(dst)+n]
}

// hashLong hashes b, 16 bytes at a time.
func hashLong(b []byte) uint64 {
	h := uint64(len(b)) * hashHi
	for len(b) >= 16 {
		x, y := bits.Mul64(binary.LittleEndian.Uint64(b)^h, binary.LittleEndian.Uint64(b[8:])^hashLo)
		h = x ^ y
		b = b[16:]
	}
	var t [16]byte
	copy(t[:], b)
	x, y := bits.Mul64(binary.LittleEndian.Uint64(t[:8])^h^hashLo, binary.LittleEndian.Uint64(t[8:])^hashHi)
	return x ^ y
}

// coldMisses is how many chunks a cache stores before it calls Warm, which takes as long as some 10,000 misses: little
// text never pays for the vocabulary.
const coldMisses = 1 << 10

// SeedLater has Warm store chunks of one id each, the first in the best place: vocabularies begin with what is
// frequent. The cache calls Warm by itself once it has met some text.
func (c *Cache) SeedLater(ids func() []uint32, chunk func(id uint32) []byte) {
	c.seeds, c.seed = ids, chunk
}

// Warm stores the chunks of SeedLater, once.
func (c *Cache) Warm() {
	if c.seeds == nil {
		return
	}
	ids := c.seeds()
	c.seeds = nil
	for _, id := range slices.Backward(ids) {
		c.Seed(c.seed(id), id)
	}
}

// Seed stores the ids of a chunk before any text is seen. It ignores chunks that do not fit a key.
func (c *Cache) Seed(chunk []byte, ids ...uint32) {
	if len(chunk) == 0 || len(chunk) > maxInline || bytes.IndexByte(chunk, 0) >= 0 {
		return
	}
	var p [16]byte
	copy(p[:], chunk)
	r := makeKey(&p, &c.rules[0][len(chunk)])
	c.insert(&r, ids)
}
