package bytebpe

import "encoding/binary"

// resolve computes and caches the values of missed words. Words to be merged go in groups of
// mergeWidth.
func (e *Encoder) resolve(missed []uint16) {
	if e.coldMisses > len(missed) {
		e.coldMisses -= len(missed)
	} else {
		e.Warm()
	}
	var jobs mergeJobs
	var words [mergeWidth]int
	n := 0
	for _, m := range missed {
		w := int(m)
		begin, end := int(e.pos[w]), int(e.pos[w+1])
		if end-begin > 16 {
			e.values[w] = longMark
			continue
		}
		if id := e.whole(e.buf[begin:end]); id != noSymbol {
			e.keep(w, e.value([]uint32{id}))
			continue
		}
		if e.m.missing {
			e.keep(w, e.value(e.appendPresent(e.ids[:0], e.buf[begin:end])))
			continue
		}
		jobs[n].begin, jobs[n].length = uint32(begin), uint32(end-begin)
		words[n] = w
		if n++; n == len(jobs) {
			e.resolveSome(&jobs, words[:n])
			n = 0
		}
	}
	if n > 0 {
		for i := n; i < len(jobs); i++ {
			jobs[i].length = 1
		}
		e.resolveSome(&jobs, words[:n])
	}
}

func (e *Encoder) resolveSome(jobs *mergeJobs, words []int) {
	e.mergeSome(e.buf[:], jobs)
	for i, w := range words {
		e.keep(w, e.value(e.results.ids[i][:e.results.count[i]]))
	}
}

// keep sets the value of a word of at most 16 bytes and caches it, unless it has a zero byte.
func (e *Encoder) keep(w int, v uint64) {
	zero := e.values[w] == zeroMark
	e.values[w] = v
	if zero {
		return
	}
	begin := int(e.pos[w])
	k := &e.kinds[int(e.pos[w+1])-begin]
	p := k.probe(binary.LittleEndian.Uint64(e.buf[begin:])&k.maskLo,
		binary.LittleEndian.Uint64(e.buf[begin+8:])&k.maskHi)
	if old := e.find(&p); old != nil {
		*old = v
	} else {
		e.insert(&p, v)
	}
}

// appendWord appends the ids of any word, wherever it lies.
func (e *Encoder) appendWord(dst []uint32, w []byte) []uint32 {
	if len(w) <= 16 {
		return e.appendUncached(dst, w)
	}
	return e.appendLongWord(dst, w)
}

// appendLongWord appends the ids of a word of more than 16 bytes.
func (e *Encoder) appendLongWord(dst []uint32, w []byte) []uint32 {
	if len(w) > maxLong {
		return e.appendUncached(dst, w)
	}
	base := len(dst)
	hash := hashBytes(w)
	dst, ok := e.appendLong(dst, w, hash)
	if !ok {
		dst = e.appendUncached(dst, w)
		e.insertLong(w, hash, dst[base:], nil)
	}
	return dst
}

func (e *Encoder) appendUncached(dst []uint32, w []byte) []uint32 {
	if id := e.whole(w); id != noSymbol {
		return append(dst, id)
	}
	if e.m.missing {
		return e.appendPresent(dst, w)
	}
	return e.appendMerged(dst, w)
}

// whole returns the token of the whole word if the model takes it without merging, else noSymbol.
func (e *Encoder) whole(w []byte) uint32 {
	if !e.m.ignoreMerges {
		return noSymbol
	}
	if id, ok := e.m.vocab.ID(w); ok {
		return id
	}
	return noSymbol
}

// appendPresent drops the bytes of a word that have no token and merges the rest.
func (e *Encoder) appendPresent(dst []uint32, w []byte) []uint32 {
	if !e.m.hasMissing(w) {
		return e.appendMerged(dst, w)
	}
	e.kept = e.kept[:0]
	for _, c := range w {
		if e.m.byteID[c] != noSymbol {
			e.kept = append(e.kept, c)
		}
	}
	if len(e.kept) > 0 {
		dst = e.appendMerged(dst, e.kept)
	}
	if cap(e.kept) > 1<<16 {
		e.kept = nil
	}
	return dst
}
