package bytebpe

import (
	"encoding/binary"
	"unsafe"
)

// prepareGo computes keys and lines of n words.
func (e *Encoder) prepareGo(first, n int) {
	pos := e.pos[first : first+n+1]
	out := e.batchFrom(first)
	p := int(pos[0])
	for i, end := range pos[1:] {
		k := &e.kinds[min(int(end)-p, 17)]
		text := (*[16]byte)(e.buf[p:])
		lo, hi := binary.LittleEndian.Uint64(text[:])&k.maskLo, binary.LittleEndian.Uint64(text[8:])&k.maskHi
		r := k.probe(lo, hi)
		out.pairs[i] = [2]uint64{r.lo, r.second}
		out.lines[i], out.any[i] = r.line, r.any
		p = int(end)
	}
}

// matchGo looks up the n prepared words, writes their values and lists those that are not cached.
// The matching way of a line cannot be predicted, so all are compared and the value is selected
// without a branch. A short loop touches all lines first, so that their cache misses overlap.
func (e *Encoder) matchGo(first, n, misses int) int {
	p := e.batchFrom(first)
	pairs, lines, anys := p.pairs[:n], p.lines[:n], p.any[:n]
	values := e.values[first : first+n]
	base := unsafe.Pointer(unsafe.SliceData(e.lines))
	touched := uint64(0)
	for _, at := range lines {
		touched |= *(*uint64)(unsafe.Add(base, at))
	}
	e.touched = touched
	missed := unsafe.Pointer(unsafe.SliceData(e.missed[misses : misses+n]))
	more := 0
	for i := range pairs {
		lo, second := pairs[i][0], pairs[i][1]
		both := uint64(anys[i]>>3) - 1                           // all ones where both halves must match
		line := (*[lineWords]uint64)(unsafe.Add(base, lines[i])) // a probe's line is always in the cache
		v0, v1, v2, v3 := line[4], line[5], line[6], line[7]
		x2, x3 := line[2]^second, line[3]^second
		v := uint64(0)
		if line[0]^lo|x2&both == 0 {
			v = v0
		}
		if line[1]^lo|x3&both == 0 {
			v = v1
		}
		if x2|both == 0 {
			v = v2
		}
		if x3|both == 0 {
			v = v3
		}
		values[i] = v
		*(*uint16)(unsafe.Add(missed, 2*more)) = uint16(first + i)
		if v == 0 {
			more++
		}
	}
	return misses + more
}

// emitGo appends the ids of the words from first on and returns the index of the word at which it
// stopped: words, a long word, or one whose spilled ids are gone.
func (e *Encoder) emitGo(dst []uint32, first, words int) (_ []uint32, done int) {
	n := len(dst)
	out := dst[:cap(dst)]
	for i, v := range e.values[first:words] {
		o := out[n : n+3]
		o[0], o[1], o[2] = uint32(v&idMask), uint32(v>>20&idMask), uint32(v>>40&idMask)
		if count := int(v >> 60); count <= 3 {
			n += count
			continue
		}
		if v>>60 != spilled || !e.spillLive(v&(1<<40-1)) {
			return dst[:n], first + i
		}
		at := e.spillAt(v & (1<<40 - 1))
		n += copy(out[n:], e.spill[at:at+int(v>>40&idMask)])
	}
	return dst[:n], words
}
