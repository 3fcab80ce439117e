package bytebpe

import (
	"math/bits"

	"github.com/dsload/dsload/tokenize/internal/minheap"
)

// Long words are merged in overlapping chunks, exactly, in memory that does not depend on the
// word's length.
//
// Lemma. Let t1..tn be tokens such that for each i, merging the bytes of ti and ti+1 alone gives
// exactly (ti, ti+1). Then merging all their bytes gives t1..tn. Proof: consider the first merge of
// the whole run that crosses a boundary, say ti|ti+1. Before it all merges stayed inside tokens, so
// inside ti and ti+1 the run on their bytes alone did the same merges in the same order (order is
// by rank, then position), and it would do the crossing merge next: a contradiction. So no merge
// crosses a boundary, and each ti forms as it does alone. The converse holds too: neighbours in a
// result satisfy the premise.
//
// So two overlapping chunks may be joined at any token they share: every neighbouring pair of the
// joined sequence is a pair of one of the chunks. Equal bytes are the same token, so it suffices to
// compare where tokens begin and end.
//
// A word is cut into chunks, each of which begins at a token boundary of the previous one. If the
// first token of a chunk differs from the previous chunk's token there, the previous chunk is
// merged again with more text. So is a chunk without a boundary to continue from. Small chunks,
// called stretches, are themselves joined from windows so short that a kernel merges all of them at
// once.

const (
	kernelBytes  = 16
	windowStep   = 8
	stretchBytes = kernelBytes + (mergeWidth-1)*windowStep
	fewWindows   = 24 // the longest word or stretch, in bytes, for which the array merger is as fast

	bigChunk  = 1 << 10 // the first size beyond stretchBytes
	chunkStep = 8
)

// chunkSize returns how many bytes are merged at once at a level, and how many of them the next
// chunk merges again.
func chunkSize(level int) (size, overlap int) {
	switch level {
	case 0:
		return stretchBytes, 10
	case 1:
		return stretchBytes, stretchBytes / 2
	}
	size = bigChunk
	for ; level > 2 && size < 1<<40; level-- {
		size *= chunkStep
	}
	return size, size / 8
}

// appendMerged appends the ids of a word of any length, all of whose bytes have tokens.
func (g *merger) appendMerged(dst []uint32, w []byte) []uint32 {
	if len(w) <= fewWindows {
		n := g.short(w)
		return append(dst, g.ids[:n]...)
	}
	base := len(dst)
	for level := 0; ; level++ {
		if out, ok := g.appendChunks(dst[:base], w, level); ok {
			g.heap.shrink()
			return out
		}
		dst = dst[:base]
	}
}

// chunkStart is where a chunk begins and what is known about it.
type chunkStart struct {
	pos, out int    // in the word and in the output
	first    uint32 // the previous chunk's token here, or noSymbol
	level    int
}

// appendChunks merges in chunks of the given level, and in larger ones where two share no token; ok
// is false if a larger one does not help.
func (g *merger) appendChunks(dst []uint32, w []byte, level int) (_ []uint32, ok bool) {
	cur := chunkStart{out: len(dst), first: noSymbol, level: level}
	before, again := cur, false
	for {
		size, overlap := chunkSize(cur.level)
		ids, at, n := g.chunk(w[cur.pos:min(cur.pos+size, len(w))])
		if cur.first != noSymbol && ids[0] != cur.first {
			switch {
			case cur.level < before.level:
				cur.level++
			case again:
				return dst, false
			default:
				before.level++
				cur, again = before, true
				dst = dst[:cur.out]
			}
			continue
		}
		if cur.pos+n == len(w) {
			return append(dst, ids...), true
		}
		keep := len(ids) - 1
		for keep > 0 && n-int(at[keep]) < overlap {
			keep--
		}
		if keep == 0 {
			cur.level++
			continue
		}
		dst = append(dst, ids[:keep]...)
		before, again = cur, false
		cur = chunkStart{cur.pos + int(at[keep]), len(dst), ids[keep], max(level, cur.level-1)}
	}
}

// chunk returns the ids of a chunk or its beginning, where they begin, and how many bytes they
// cover. It caches chunks of moderate size that occur again.
func (g *merger) chunk(w []byte) (ids, at []uint32, n int) {
	h := &g.heap
	h.reserve(len(w))
	if len(w) > bigChunk {
		ids, at = h.merge(g.m, w)
		return ids, at, len(w)
	}
	hash := hashBytes(w)
	if ids, at = g.memo.findChunk(w, hash, h.ids, h.at); len(ids) > 0 {
		return ids, at, len(w)
	}
	again := g.memo.seenBefore(hash)
	switch {
	case len(w) <= stretchBytes:
		if ids, at, n = g.stretch(w); n < len(w) && again {
			ids, at = h.merge(g.m, w)
			n = len(w)
		}
	default:
		ids, at = h.merge(g.m, w)
		n = len(w)
	}
	if again {
		g.memo.insertChunk(w, hash, ids, at)
	}
	return ids, at, n
}

// array merges up to maxShort bytes with the array merger.
func (g *merger) array(w []byte) (ids, at []uint32, n int) {
	w = w[:min(len(w), maxShort)]
	h := &g.heap
	k := g.short(w)
	ids, at = append(h.ids[:0], g.ids[:k]...), h.at[:k]
	for i := range at {
		at[i] = uint32(g.at[i])
	}
	return ids, at, len(w)
}

// stretch merges up to stretchBytes bytes, fewer if two windows share no token.
func (g *merger) stretch(w []byte) (ids, at []uint32, n int) {
	if len(w) <= fewWindows {
		return g.array(w)
	}
	var jobs mergeJobs
	windows := (len(w)-kernelBytes+windowStep-1)/windowStep + 1
	for i := range windows {
		begin := i * windowStep
		jobs[i].begin, jobs[i].length = uint32(begin), uint32(min(kernelBytes, len(w)-begin))
	}
	copy(g.text[:], w)
	g.mergeSome(g.text[:], &jobs, windows, &g.results)
	g.work += len(w)
	h, r := &g.heap, &g.results
	ids, at = h.ids[:0], h.at[:0]
	from := 0 // where the used part of window i begins
	for i := 0; i < windows; i++ {
		begin := i * windowStep
		length := int(jobs[i].length)
		starts := r.starts[i]
		to, next := length, 0
		n = begin + length
		if i+1 < windows {
			shared := sharedToken(uint64(starts|1<<length)>>windowStep,
				uint64(r.starts[i+1]|1<<jobs[i+1].length)&(1<<(length-windowStep+1)-1), max(0, from-windowStep))
			if shared < 0 && n < maxShort {
				return g.array(w)
			}
			if to, next = shared+windowStep, shared; shared < 0 {
				to, windows = length, i
			}
		}
		first := bits.OnesCount32(starts & (1<<from - 1))
		for live := starts & (1<<to - 1) >> from << from; live != 0; live &= live - 1 {
			ids = append(ids, r.ids[i][first&15])
			at = append(at, uint32(begin+bits.TrailingZeros32(live)))
			first++
		}
		from = next
	}
	return ids, at, n
}

// sharedToken returns where the first token at or after from begins that both sets of boundaries
// have, or -1.
func sharedToken(a, b uint64, from int) int {
	mask := ^uint64(0) << from
	all, both := (a|b)&mask, a&b&mask
	for starts := both; starts != 0; starts &= starts - 1 {
		later := all & (starts ^ (starts - 1) ^ ^uint64(0)) // boundaries after this one
		if later&-later&both != 0 {
			return bits.TrailingZeros64(starts)
		}
	}
	return -1
}

// heapMerger merges any number of symbols in O(n log n) with a binary heap of rank<<32 | position.
type heapMerger struct {
	heap []uint64
	sym  []uint32
	next []uint32
	prev []uint32
	rank []uint32
	ids  []uint32
	at   []uint32
	work int
}

// keptSymbols is the number of symbols of scratch that stays allocated between words.
const keptSymbols = bigChunk

func (h *heapMerger) shrink() {
	if cap(h.sym) > 2*keptSymbols {
		*h = heapMerger{work: h.work}
		h.reserve(keptSymbols)
	}
}

func (h *heapMerger) reserve(n int) {
	if cap(h.sym) < n {
		n = max(n, keptSymbols)
		h.sym, h.next, h.prev = make([]uint32, n), make([]uint32, n), make([]uint32, n)
		h.rank, h.ids, h.at = make([]uint32, n), make([]uint32, n), make([]uint32, n)
		h.heap = make([]uint64, 0, 3*n)
	}
}

// merge returns ids and where each begins; both are valid until the next call.
func (h *heapMerger) merge(m *Model, w []byte) (ids, at []uint32) {
	n := len(w)
	h.reserve(n)
	h.work += n
	sym, next, prev, rank := h.sym[:n], h.next[:n], h.prev[:n], h.rank[:n]
	h.heap = h.heap[:0]
	for i, c := range w {
		sym[i] = m.byteID[c]
		next[i], prev[i] = uint32(i+1), uint32(i-1)
		rank[i] = noRank
		if i+1 < n {
			rank[i] = m.bytePairs[uint32(c)<<8|uint32(w[i+1])]
			h.push(rank[i], uint32(i))
		}
	}
	for len(h.heap) > 0 {
		r, i := h.pop()
		if rank[i] != r {
			continue // stale: the pair at this position has changed since
		}
		j := next[i]
		k := next[j]
		c := m.result(r)
		sym[i], rank[j] = c, noRank
		next[i] = k
		rank[i] = noRank
		if int(k) < n {
			prev[k] = i
			rank[i] = m.pairs.Find(c, sym[k])
			h.push(rank[i], i)
		}
		if p := prev[i]; int32(p) >= 0 {
			rank[p] = m.pairs.Find(sym[p], c)
			h.push(rank[p], p)
		}
	}
	ids, at = h.ids[:0], h.at[:0]
	for i := uint32(0); int(i) < n; i = next[i] {
		ids = append(ids, sym[i])
		at = append(at, i)
	}
	return ids, at
}

// push adds the pair at pos.
func (h *heapMerger) push(rank, pos uint32) {
	if rank != noRank {
		h.heap = minheap.Push(h.heap, uint64(rank)<<32|uint64(pos))
	}
}

// pop removes and returns the best pair.
func (h *heapMerger) pop() (rank, pos uint32) {
	var top uint64
	top, h.heap = minheap.Pop(h.heap)
	return uint32(top >> 32), uint32(top)
}
