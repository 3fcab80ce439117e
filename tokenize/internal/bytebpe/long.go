package bytebpe

// Long words are merged in overlapping chunks, exactly, in memory that does not depend on the word's length.
//
// Lemma. Let t1..tn be tokens such that for each i the merging of ti and ti+1's bytes alone gives exactly (ti, ti+1). Then
// merging all their bytes gives t1..tn. Proof: take the first merge in the whole run that crosses one of the boundaries, say ti|ti+1.
// Before it all merges stayed inside tokens, so inside ti and ti+1 the run on their bytes alone did the same merges in the same
// order (order is by rank, then position), and it would do the crossing merge next: a contradiction. So no merge crosses,
// and each ti comes about as it does alone. The converse holds too: neighbours in a result satisfy the premise.
//
// So two overlapping chunks may be joined at any token they share. A chunk begins at a token boundary of the chunk before; if its first
// token is the one the chunk before had there, every neighbouring pair of the joined sequence is a pair of one of the chunks.
// Where the tokens differ, or a chunk is too small to hold a few tokens, larger chunks are tried, at last the whole word.

const (
	overlap   = 20      // bytes of a chunk that are merged again with the next one
	bigChunk  = 1 << 10 // the first size beyond maxShort
	chunkStep = 8
)

// appendMerged appends the ids of a word of any length, all of whose bytes have tokens.
func (g *merger) appendMerged(dst []uint32, w []byte) []uint32 {
	if len(w) <= maxShort {
		n := g.short(w)
		return append(dst, g.ids[:n]...)
	}
	base := len(dst)
	for size := maxShort; size < len(w); size = g.grow(size) {
		if out, ok := g.appendChunks(dst[:base], w, size); ok {
			return out
		}
		dst = dst[:base]
	}
	ids, _ := g.heap.merge(g.m, w)
	dst = append(dst, ids...)
	g.heap.shrink()
	return dst
}

func (g *merger) grow(size int) int {
	if size < bigChunk {
		return bigChunk
	}
	return size * chunkStep
}

// appendChunks merges in chunks of the given size; ok is false where two chunks do not meet.
func (g *merger) appendChunks(dst []uint32, w []byte, size int) (_ []uint32, ok bool) {
	expected := uint32(noSymbol)
	for pos := 0; ; {
		chunk := w[pos:min(pos+size, len(w))]
		ids, at := g.chunk(chunk)
		if pos > 0 && ids[0] != expected {
			return dst, false
		}
		if pos+len(chunk) == len(w) {
			dst = append(dst, ids...)
			g.heap.shrink()
			return dst, true
		}
		// The next chunk begins at the last boundary that leaves the overlap.
		keep := len(ids) - 1
		for keep > 0 && len(chunk)-int(at[keep]) < min(overlap, len(chunk)/2) {
			keep--
		}
		if keep == 0 {
			return dst, false
		}
		dst = append(dst, ids[:keep]...)
		expected = ids[keep]
		pos += int(at[keep])
	}
}

// chunk returns the ids of a chunk and where they begin, remembering those of moderate size.
func (g *merger) chunk(w []byte) (ids, at []uint32) {
	h := &g.heap
	h.reserve(len(w))
	var hash uint64
	if len(w) <= bigChunk {
		hash = hashBytes(w)
		if ids, at = g.memo.findChunk(w, hash, h.ids, h.at); len(ids) > 0 {
			return ids, at
		}
	}
	if len(w) <= maxShort {
		n := g.short(w)
		ids, at = append(h.ids[:0], g.ids[:n]...), h.at[:n]
		for i := range at {
			at[i] = uint32(g.at[i])
		}
	} else {
		ids, at = h.merge(g.m, w)
	}
	if len(w) <= bigChunk {
		g.memo.insertLong(w, hash, ids, at)
	}
	return ids, at
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

// keptSymbols is how much scratch stays allocated between words.
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
			rank[i] = m.pairs.find(c, sym[k])
			h.push(rank[i], i)
		}
		if p := prev[i]; int32(p) >= 0 {
			rank[p] = m.pairs.find(sym[p], c)
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

func (h *heapMerger) push(rank, pos uint32) {
	if rank == noRank {
		return
	}
	v := uint64(rank)<<32 | uint64(pos)
	q := append(h.heap, v)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up] <= v {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = v
	h.heap = q
}

func (h *heapMerger) pop() (rank, pos uint32) {
	q := h.heap
	top := q[0]
	v := q[len(q)-1]
	q = q[:len(q)-1]
	h.heap = q
	for i := 0; len(q) > 0; {
		c := 2*i + 1
		if c+1 < len(q) && q[c+1] < q[c] {
			c++
		}
		if c >= len(q) || v <= q[c] {
			q[i] = v
			break
		}
		q[i] = q[c]
		i = c
	}
	return uint32(top >> 32), uint32(top)
}
