package spbpe

import (
	"bytes"
	"slices"

	"github.com/dsload/dsload/tokenize/internal/minheap"
)

// Engine bytebpe joins overlapping windows by the same argument (its long.go has the proof). The
// code is not shared: its windows are bytes whose chunks go through its cache, these are symbols,
// some of them characters outside the vocabulary.

// windowSizes lists, for each level, how many symbols of a long chunk a window merges, and how many
// of them the next window merges again.
var windowSizes = [...]struct{ symbols, overlap int }{{40, 8}, {40, 20}, {256, 64}, {2048, 256}}

const keepItems = 2048 // symbols of scratch kept between chunks

// large is the scratch of long chunks.
type large struct {
	id, next, prev []uint32
	end            []uint32 // byte offset of the end of each symbol's first character
	heap           []uint64 // rank<<32 | position

	tokens  []token // the last window's
	text    []byte  // the last window's
	symbols int     // its limit on symbols
}

// token is a symbol that remains after merging, and where its text ends.
type token struct{ sym, end uint32 }

// windowStart is where a window begins and what is known about it.
type windowStart struct {
	pos, out int    // in the chunk and in the output
	held     output // what the output holds back
	first    token  // the previous window's token here, if it has one
	level    int
}

// appendLong merges chunks of any length by overlapping windows. Their results may be joined at any
// token that both have, since merging a text gives exactly those sequences of tokens of which each
// two neighbours are what merging their own text gives.
func (e *Encoder) appendLong(dst []uint32, chunk []byte) []uint32 {
	g := &e.large
	g.text = g.text[:0]
	begin := len(dst)
	for level := range windowSizes {
		if out, ok := e.appendWindows(dst[:begin], chunk, level); ok {
			e.shrink()
			return out
		}
		dst = dst[:begin]
	}
	return e.appendWhole(dst, chunk)
}

// appendWindows merges by windows of the given level. If the first token of a window is not the
// previous window's token there, the previous window is merged again at a higher level; ok is false
// if that does not help.
func (e *Encoder) appendWindows(dst []uint32, chunk []byte, level int) (_ []uint32, ok bool) {
	g := &e.large
	cur := windowStart{out: len(dst), level: level}
	before, again := cur, false
	for {
		if max(cur.level, before.level) == len(windowSizes) {
			return dst, false
		}
		w := windowSizes[cur.level]
		size := e.mergeWindow(chunk[cur.pos:], w.symbols)
		if cur.first.end > 0 && g.tokens[0] != cur.first {
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
		rest := size - size*w.overlap/w.symbols // where the overlap begins
		keep := len(g.tokens)
		if cur.pos+size < len(chunk) {
			for keep--; keep > 0 && int(g.tokens[keep-1].end) > rest; keep-- {
			}
			if keep == 0 {
				cur.level++ // one token fills most of the window
				continue
			}
		}
		o := cur.held
		for _, t := range g.tokens[:keep] {
			dst = o.add(dst, e.m, t.sym)
		}
		if keep == len(g.tokens) {
			return o.end(dst, e.m), true
		}
		from := g.tokens[keep-1].end
		before, again = cur, false
		cur = windowStart{cur.pos + int(from), len(dst), o, token{g.tokens[keep].sym, g.tokens[keep].end - from},
			max(level, cur.level-1)}
	}
}

// mergeWindow merges the first symbols of a text into g.tokens and returns how many bytes they
// cover.
func (e *Encoder) mergeWindow(text []byte, symbols int) (size int) {
	g := &e.large
	if symbols == g.symbols && len(g.text) > 0 && bytes.HasPrefix(text, g.text) {
		return len(g.text) // the same text as last time, as in runs and repetitions
	}
	g.tokens = g.tokens[:0]
	if symbols <= maxSmall {
		s := &e.small
		n, size := s.load(e.m, text, symbols)
		s.merge(e.m, n)
		for i := 0; i < n; {
			next := int(s.next[i])
			g.tokens = append(g.tokens, token{s.id[i], uint32(s.end[next-1])})
			i = next
		}
		g.text, g.symbols = append(g.text[:0], text[:size]...), symbols
		return size
	}
	g.id, g.end = g.id[:0], g.end[:0]
	for size < len(text) && len(g.id) < symbols {
		sym, n := e.m.symbol(text[size:])
		size += n
		g.id = append(g.id, sym)
		g.end = append(g.end, uint32(size))
	}
	n := len(g.id)
	e.thread(n)
	e.mergeHeap()
	for i := 0; i < n; {
		next := int(g.next[i])
		g.tokens = append(g.tokens, token{g.id[i], g.end[next-1]})
		i = next
	}
	g.text, g.symbols = append(g.text[:0], text[:size]...), symbols
	return size
}

// thread links n symbols into a list.
func (e *Encoder) thread(n int) {
	g := &e.large
	g.next, g.prev = slices.Grow(g.next[:0], n)[:n], slices.Grow(g.prev[:0], n)[:n]
	for i := range n {
		g.next[i], g.prev[i] = uint32(i+1), uint32(i-1)
	}
}

// appendWhole merges a long chunk at once, for when windows share no token.
func (e *Encoder) appendWhole(dst []uint32, chunk []byte) []uint32 {
	g := &e.large
	g.id = g.id[:0]
	for len(chunk) > 0 {
		sym, size := e.m.symbol(chunk)
		g.id = append(g.id, sym)
		chunk = chunk[size:]
	}
	n := len(g.id)
	e.thread(n)
	e.mergeHeap()
	var o output
	for i := 0; i < n; i = int(g.next[i]) {
		dst = o.add(dst, e.m, g.id[i])
	}
	dst = o.end(dst, e.m)
	e.shrink()
	return dst
}

// shrink drops scratch that grew for an enormous chunk.
func (e *Encoder) shrink() {
	if cap(e.large.id) > 2*keepItems || cap(e.large.heap) > 2*keepItems {
		e.large = large{}
	}
}

// gone marks a position that was merged into the previous one.
const gone = ^uint32(0) - 1

// mergeHeap merges the threaded symbols.
func (e *Encoder) mergeHeap() {
	g := &e.large
	g.heap = g.heap[:0]
	for i := 0; i+1 < len(g.id); i++ {
		e.push(uint32(i))
	}
	for len(g.heap) > 0 {
		var top uint64
		top, g.heap = minheap.Pop(g.heap)
		e.mergeAt(uint32(top>>32), uint32(top))
	}
}

// push adds the pair of a position and its successor, if they merge.
func (e *Encoder) push(i uint32) {
	g := &e.large
	if rank := e.m.merges.Find(g.id[i], g.id[g.next[i]]); rank != noRank {
		g.heap = minheap.Push(g.heap, uint64(rank)<<32|uint64(i))
	}
}

// mergeAt merges position i with its successor if that pair still has the rank, and adds the new pairs.
func (e *Encoder) mergeAt(rank, i uint32) {
	g, m := &e.large, e.m
	n := uint32(len(g.id))
	r := g.next[i]
	if g.prev[i] == gone || r >= n || m.merges.Find(g.id[i], g.id[r]) != rank {
		return
	}
	after := g.next[r]
	g.id[i], g.next[i], g.prev[r] = m.merges.result(g.id[i], g.id[r], rank), after, gone
	if after < n {
		g.prev[after] = i
		e.push(i)
	}
	if i > 0 {
		e.push(g.prev[i])
	}
}
