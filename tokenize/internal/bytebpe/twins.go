package bytebpe

import "encoding/binary"

// prepareGo computes keys and lines of n words.
func (e *Encoder) prepareGo(first, n int) {
	pos := e.pos[first : first+n+1]
	for i := range n {
		p := int(pos[i])
		k := &e.kinds[min(int(pos[i+1])-p, 17)]
		text := e.buf[p : p+16]
		r := k.probe(binary.LittleEndian.Uint64(text)&k.maskLo, binary.LittleEndian.Uint64(text[8:])&k.maskHi)
		e.probes.pairs[i] = [2]uint64{r.lo, r.second}
		e.probes.lines[i], e.probes.any[i] = r.line, r.any
	}
}

// matchGo looks up the n prepared words, writes their values and lists those that are not cached. Which way of a line matches cannot be
// predicted, so all are compared and the values masked.
func (e *Encoder) matchGo(first, n, misses int) int {
	pairs, lines, anys := e.probes.pairs[:n], e.probes.lines[:n], e.probes.any[:n]
	values := e.values[first : first+n]
	for i := range pairs {
		lo, second := pairs[i][0], pairs[i][1]
		both := uint64(anys[i]>>3) - 1 // all ones where both halves must match
		line := (*[lineWords]uint64)(e.lines[lines[i]/8:])
		x2, x3 := line[2]^second, line[3]^second
		v := line[4]&isZero(line[0]^lo|x2&both) | line[5]&isZero(line[1]^lo|x3&both)
		v |= line[6]&isZero(x2|both) | line[7]&isZero(x3|both)
		values[i] = v
		e.missed[misses] = uint16(first + i)
		misses += int(isZero(v) & 1)
	}
	return misses
}

// isZero is all ones for 0, else 0.
func isZero(x uint64) uint64 { return (x|-x)>>63 - 1 }

// emitGo appends the ids of the values of words first..words, and returns the number of the word at which it stopped: words, a long one, or
// one whose spilled ids are gone.
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
