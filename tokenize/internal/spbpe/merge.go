package spbpe

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

const (
	maxSmall  = 64   // symbols of the longest chunk merged by scanning for the best pair
	maxHeap   = 2048 // symbols of the longest chunk merged with a heap; above, pairs go to buckets by rank
	keepItems = 4096 // symbols of scratch kept between chunks
)

// small is the scratch of a short chunk: a list of symbols, threaded through positions.
type small struct {
	id         [maxSmall + 1]uint32
	merged     [maxSmall + 1]uint32 // what position i and its successor merge to
	key        [maxSmall + 8]uint64 // rank<<8 | position of that pair, ^0 if there is none
	next, prev [maxSmall + 1]uint8
}

// appendChunk appends the ids of a chunk, whose spaces stand for U+2581.
func (e *Encoder) appendChunk(dst []uint32, chunk []byte) []uint32 {
	m := e.m
	s := &e.small
	n := 0
	rest := chunk
	for len(rest) > 0 {
		if n == maxSmall {
			return e.appendLong(dst, chunk)
		}
		var size int
		s.id[n], size = m.symbol(rest)
		rest = rest[size:]
		n++
	}
	for i := 0; i+1 < n; i++ {
		rank, id := m.merges.find(s.id[i], s.id[i+1])
		s.merged[i] = id
		s.key[i] = packKey(rank, i)
		s.next[i] = uint8(i + 1)
		s.prev[i+1] = uint8(i)
	}
	s.next[n-1] = uint8(n)
	s.key[n-1] = ^uint64(0)
	last := n - 1 // keys behind it are all ^0
	for {
		best := s.key[0]
		for _, k := range s.key[1 : last+1] {
			best = min(best, k)
		}
		if best == ^uint64(0) {
			break
		}
		i := int(best & 0xFF)
		r := int(s.next[i])
		s.id[i] = s.merged[i]
		s.key[r] = ^uint64(0)
		after := int(s.next[r])
		s.next[i] = uint8(after)
		if after < n {
			s.prev[after] = uint8(i)
			rank, id := m.merges.find(s.id[i], s.id[after])
			s.merged[i] = id
			s.key[i] = packKey(rank, i)
		} else {
			s.key[i] = ^uint64(0)
			last = i
		}
		if i > 0 {
			p := int(s.prev[i])
			rank, id := m.merges.find(s.id[p], s.id[i])
			s.merged[p] = id
			s.key[p] = packKey(rank, p)
		}
	}
	var o output
	for i := 0; i < n; i = int(s.next[i]) {
		dst = o.add(dst, m, s.id[i])
	}
	return o.end(dst, m)
}

func packKey(rank uint32, pos int) uint64 {
	if rank == noRank {
		return ^uint64(0)
	}
	return uint64(rank)<<8 | uint64(pos)
}

// symbol decodes the first character of text and returns its symbol and length.
func (m *Model) symbol(text []byte) (uint32, int) {
	r, size := rune(text[0]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRune(text)
	}
	if id := m.runes.get(r) & runeIDMask; id != noRuneID {
		return id, size
	}
	if r == ' ' {
		r = metaspace
	}
	return missing | uint32(r), size
}

// output writes symbols as ids; an unknown token is held back so that its neighbours may fuse with it.
type output struct{ pending bool }

func (o *output) add(dst []uint32, m *Model, sym uint32) []uint32 {
	if sym&missing == 0 {
		if o.pending {
			o.pending = false
			dst = append(dst, uint32(m.cfg.UnkID))
		}
		return append(dst, sym)
	}
	var buf [utf8.UTFMax]byte
	char := buf[:utf8.EncodeRune(buf[:], rune(sym&^missing))]
	whole := true
	for _, b := range char {
		whole = whole && m.cfg.ByteIDs[b] >= 0
	}
	if whole { // Hugging Face does not flush an unknown token here: it comes out behind the bytes
		if o.pending && m.cfg.Scores != nil {
			o.pending = false
			dst = append(dst, uint32(m.cfg.UnkID))
		}
		for _, b := range char {
			dst = append(dst, uint32(m.cfg.ByteIDs[b]))
		}
		return dst
	}
	if o.pending && !m.cfg.FuseUnk {
		dst = append(dst, uint32(m.cfg.UnkID))
	}
	o.pending = true
	return dst
}

func (o *output) end(dst []uint32, m *Model) []uint32 {
	if o.pending {
		o.pending = false
		dst = append(dst, uint32(m.cfg.UnkID))
	}
	return dst
}

// large is the scratch of long chunks.
type large struct {
	id, next, prev []uint32
	heap           []uint64 // rank<<32 | position

	// Pairs by rank: head[rank] is the first item of a list, 0 if empty.
	head    []uint32
	occ     []uint64 // a bit for each rank with a list
	items   []bucketItem
	current []uint64
}

type bucketItem struct{ pos, next uint32 }

// appendLong merges chunks of any length. Symbols whose pair is stale are recognised by looking the pair up again.
func (e *Encoder) appendLong(dst []uint32, chunk []byte) []uint32 {
	m := e.m
	g := &e.large
	g.id = g.id[:0]
	for len(chunk) > 0 {
		sym, size := m.symbol(chunk)
		g.id = append(g.id, sym)
		chunk = chunk[size:]
	}
	n := len(g.id)
	g.next, g.prev = slices.Grow(g.next[:0], n)[:n], slices.Grow(g.prev[:0], n)[:n]
	for i := range n {
		g.next[i], g.prev[i] = uint32(i+1), uint32(i-1)
	}
	if n <= maxHeap {
		e.mergeHeap()
	} else {
		e.mergeBuckets()
	}
	var o output
	for i := 0; i < n; i = int(g.next[i]) {
		dst = o.add(dst, m, g.id[i])
	}
	dst = o.end(dst, m)
	if cap(g.id) > keepItems {
		e.large = large{}
	}
	return dst
}

// gone marks a position that was merged into the one before it.
const gone = ^uint32(0) - 1

// mergeAt merges position i with its successor if that pair still has the rank, and reports the new pairs to push.
func (e *Encoder) mergeAt(rank, i uint32, push func(rank, pos uint32)) {
	g, m := &e.large, e.m
	n := uint32(len(g.id))
	r := g.next[i]
	if g.prev[i] == gone || r >= n {
		return
	}
	now, id := m.merges.find(g.id[i], g.id[r])
	if now != rank {
		return
	}
	after := g.next[r]
	g.id[i], g.next[i], g.prev[r] = id, after, gone
	if after < n {
		g.prev[after] = i
		if rank, _ := m.merges.find(id, g.id[after]); rank != noRank {
			push(rank, i)
		}
	}
	if i > 0 {
		p := g.prev[i]
		if rank, _ := m.merges.find(g.id[p], id); rank != noRank {
			push(rank, p)
		}
	}
}

func (e *Encoder) mergeHeap() {
	g, m := &e.large, e.m
	g.heap = g.heap[:0]
	push := func(rank, pos uint32) { g.heap = heapPush(g.heap, uint64(rank)<<32|uint64(pos)) }
	for i := 0; i+1 < len(g.id); i++ {
		if rank, _ := m.merges.find(g.id[i], g.id[i+1]); rank != noRank {
			push(rank, uint32(i))
		}
	}
	for len(g.heap) > 0 {
		var top uint64
		top, g.heap = heapPop(g.heap)
		e.mergeAt(uint32(top>>32), uint32(top), push)
	}
}

// mergeBuckets does the same for very long chunks, in nearly linear time: pairs lie in one bucket for each rank, buckets are emptied
// from the best rank on, each in order of position. Pairs that turn up for a rank already passed (or being emptied) go to a
// heap, which comes first; in models as they are trained that is rare.
func (e *Encoder) mergeBuckets() {
	g, m := &e.large, e.m
	ranks := m.merges.ranks
	g.head = make([]uint32, ranks)
	g.occ = make([]uint64, ranks/64+1)
	g.items = append(g.items[:0], bucketItem{})
	g.heap = g.heap[:0]
	passed := -1
	free := uint32(0)
	push := func(rank, pos uint32) {
		if int(rank) <= passed {
			g.heap = heapPush(g.heap, uint64(rank)<<32|uint64(pos))
			return
		}
		it := bucketItem{pos, g.head[rank]}
		g.occ[rank/64] |= 1 << (rank % 64)
		if free != 0 {
			g.head[rank] = free
			free, g.items[free] = g.items[free].next, it
			return
		}
		g.head[rank] = uint32(len(g.items))
		g.items = append(g.items, it)
	}
	for i := len(g.id) - 2; i >= 0; i-- {
		if rank, _ := m.merges.find(g.id[i], g.id[i+1]); rank != noRank {
			push(rank, uint32(i))
		}
	}
	for word := 0; word < len(g.occ); {
		if g.occ[word] == 0 {
			word++
			continue
		}
		rank := uint32(word*64 + bits.TrailingZeros64(g.occ[word]))
		g.occ[word] &= g.occ[word] - 1
		passed = int(rank)
		g.current = g.current[:0]
		for it := g.head[rank]; it != 0; {
			g.current = append(g.current, uint64(rank)<<32|uint64(g.items[it].pos))
			next := g.items[it].next
			g.items[it].next, free = free, it
			it = next
		}
		g.head[rank] = 0
		if !slices.IsSorted(g.current) {
			slices.Sort(g.current)
		}
		for k := 0; k < len(g.current) || len(g.heap) > 0; {
			var top uint64
			if len(g.heap) > 0 && (k == len(g.current) || g.heap[0] < g.current[k]) {
				top, g.heap = heapPop(g.heap)
			} else {
				top = g.current[k]
				k++
			}
			e.mergeAt(uint32(top>>32), uint32(top), push)
		}
	}
}

func heapPush(h []uint64, x uint64) []uint64 {
	h = append(h, x)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 2
		if h[p] <= x {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = x
	return h
}

func heapPop(h []uint64) (uint64, []uint64) {
	top := h[0]
	n := len(h) - 1
	x := h[n]
	h = h[:n]
	if n == 0 {
		return top, h
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h[c+1] < h[c] {
			c++
		}
		if h[c] >= x {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = x
	return top, h
}
