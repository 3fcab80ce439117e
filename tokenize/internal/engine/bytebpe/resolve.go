package bytebpe

import "encoding/binary"

// resolve finds or computes the values of missed words, and caches them. Short words to be merged
// go in groups of mergeWidth, by length: a group takes as long as its longest. Longer words go in a
// batch.
func (e *Encoder) resolve(missed []uint16) {
	e.mapLines(len(missed))
	hashes := e.hashLong(missed)
	short := missed[:0] // the words to be merged take the place of those that were looked at
	var lengths [kernelBytes + 2]int
	unknown := 0
	for _, m := range missed {
		w := int(m)
		word, hash := e.buf[e.pos[w]:e.pos[w+1]], uint64(0)
		if len(word) > maxLong {
			e.values[w] = longMark
			continue
		}
		if len(word) > kernelBytes {
			hash, hashes = hashes[0], hashes[1:]
			if v := e.findWord(word, hash); v != 0 {
				e.values[w] = v
				continue
			}
		}
		unknown++
		if e.looked&lengthBit(len(word)) != 0 {
			if id := e.whole(word); id != noSymbol {
				e.keep(w, hash, e.value([]uint32{id}))
				continue
			}
		}
		if e.m.missing || len(word) > kernelBytes && !hasMergeWide() {
			e.keep(w, hash, e.value(e.appendPresent(e.ids[:0], word)))
			continue
		}
		e.work += len(word)
		if len(word) > kernelBytes {
			e.batch(w, hash)
			continue
		}
		short = append(short, m)
		lengths[len(word)+1]++
	}
	e.resolveShort(short, &lengths)
	e.resolveBatch()
	if e.coldMisses > unknown {
		e.coldMisses -= unknown
	} else {
		e.Warm()
	}
}

// resolveShort merges words of at most kernelBytes bytes; lengths[n+1] is how many have n bytes.
func (e *Encoder) resolveShort(words []uint16, lengths *[kernelBytes + 2]int) {
	for n := range lengths[1:] {
		lengths[n+1] += lengths[n]
	}
	sorted := e.sorted[:len(words)]
	for _, w := range words {
		n := e.pos[w+1] - e.pos[w]
		sorted[lengths[n]] = w
		lengths[n]++
	}
	var jobs mergeJobs
	for i := 0; i < len(sorted); i += mergeWidth {
		group := sorted[i:min(i+mergeWidth, len(sorted))]
		for j, w := range group {
			begin := e.pos[w]
			jobs[j].begin, jobs[j].length = uint32(begin), uint32(e.pos[w+1]-begin)
		}
		e.mergeSome(e.buf[:], &jobs, len(group), &e.results)
		for j, w := range group {
			e.keep(int(w), 0, e.value(e.results.ids[j][:e.results.count[j]]))
		}
	}
}

// hashLong returns the hashes of the missed words of more than 16 bytes that may be cached, in
// order. It touches their entries of the table first, so that the cache misses overlap.
func (e *Encoder) hashLong(missed []uint16) []uint64 {
	n, touched := 0, uint64(0)
	for _, w := range missed {
		if word := e.buf[e.pos[w]:e.pos[w+1]]; len(word) > kernelBytes && len(word) <= maxLong {
			hash := hashBytes(word)
			touched |= *e.longEntry(hash)
			e.hashes[n] = hash
			n++
		}
	}
	e.touched = touched
	return e.hashes[:n]
}

// keep sets the value of a word of at most maxLong bytes and caches it, unless it is short and has
// a zero byte. hash is that of a word of more than 16 bytes.
func (e *Encoder) keep(w int, hash, v uint64) {
	zero := e.values[w] == zeroMark
	e.values[w] = v
	begin, end := int(e.pos[w]), int(e.pos[w+1])
	if end-begin > 16 {
		e.insertWord(e.buf[begin:end], hash, v)
		return
	}
	if zero {
		return
	}
	k := &e.kinds[end-begin]
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
	if len(w) <= 16 || len(w) > maxLong {
		return e.appendUncached(dst, w)
	}
	hash := hashBytes(w)
	if v := e.findWord(w, hash); v != 0 {
		return e.appendValue(dst, v)
	}
	base := len(dst)
	dst = e.appendUncached(dst, w)
	e.insertWord(w, hash, e.value(dst[base:]))
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
