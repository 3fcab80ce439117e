package plain

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/minheap"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// SentencePiece is SentencePiece's BPE: any two neighbours whose concatenation is a piece may
// merge, highest score first, leftmost among equals. User-defined symbols are cut out first and
// never merge.
type SentencePiece struct {
	cfg    spec.SentencePiece
	ranks  []uint32          // indexed by id: how many higher scores there are; never if no merge makes it
	unused []bool            // indexed by id: split again at the end; nil for none
	user   map[byte][][]byte // user-defined symbols by their first byte
}

const never = ^uint32(0)

// NewSentencePiece returns the model.
func NewSentencePiece(c *spec.SentencePiece) *SentencePiece {
	m := &SentencePiece{cfg: *c, ranks: make([]uint32, len(c.Kinds)), user: map[byte][][]byte{}}
	order := make([]int, len(c.Kinds))
	for id, kind := range c.Kinds {
		order[id] = id
		switch kind {
		case spec.Unused:
			if m.unused == nil {
				m.unused = make([]bool, len(c.Kinds))
			}
			m.unused[id] = true
		case spec.UserDefined:
			u, _ := c.Vocab.Token(uint32(id))
			m.user[u[0]] = append(m.user[u[0]], u)
		case spec.Normal:
		default:
			m.ranks[id] = never
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(c.Scores[b], c.Scores[a]) })
	rank := uint32(0)
	for i, id := range order {
		if i > 0 && c.Scores[id] < c.Scores[order[i-1]] {
			rank++
		}
		m.ranks[id] = max(m.ranks[id], rank)
	}
	return m
}

// ResidentBytes implements Model.
func (m *SentencePiece) ResidentBytes() int64 { return int64(len(m.ranks)) * 9 }

// span is a symbol: a part of the piece. It is empty after it has been merged into its left
// neighbour.
type span struct {
	start, end int32
	prev, next int32
	rank       uint32 // of the merge with the next one
	frozen     bool
}

// Append implements Model.
func (m *SentencePiece) Append(dst []uint32, piece []byte, s *Scratch) []uint32 {
	spans := s.spans[:0]
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRune(piece[i:])
		frozen := false
		for _, u := range m.user[piece[i]] {
			if (!frozen || len(u) > n) && bytes.HasPrefix(piece[i:], u) {
				n, frozen = len(u), true
			}
		}
		k := int32(len(spans))
		spans = append(spans, span{int32(i), int32(i + n), k - 1, k + 1, never, frozen})
		i += n
	}
	spans[len(spans)-1].next = -1
	s.spans, s.heap = spans, s.heap[:0]
	parts := map[string]int{} // unused pieces that merges made: the length of their left part
	for i := range spans {
		m.offer(s, piece, int32(i), parts)
	}
	for len(s.heap) > 0 {
		var top uint64
		top, s.heap = minheap.Pop(s.heap)
		at := int32(uint32(top))
		left := &spans[at]
		if left.rank != uint32(top>>32) {
			continue // its next one has changed since
		}
		right := &spans[left.next]
		left.end = right.end
		right.start, right.rank = right.end, never
		left.next = right.next
		if right.next >= 0 {
			spans[right.next].prev = at
		}
		m.offer(s, piece, left.prev, parts)
		m.offer(s, piece, at, parts)
	}
	unknown := false
	for _, x := range spans {
		if x.start < x.end {
			dst, unknown = m.output(dst, piece[x.start:x.end], unknown, parts)
		}
	}
	if cap(s.spans) > maxSymbolsKept {
		s.spans, s.heap = nil, nil
	}
	return dst
}

// offer adds the merge of a span with the next one to the heap if it makes a piece.
func (m *SentencePiece) offer(s *Scratch, piece []byte, left int32, parts map[string]int) {
	if left < 0 {
		return
	}
	a := &s.spans[left]
	a.rank = never
	if a.next < 0 || a.frozen || s.spans[a.next].frozen {
		return
	}
	text := piece[a.start:s.spans[a.next].end]
	id, ok := m.cfg.Vocab.ID(text)
	if !ok || m.ranks[id] == never {
		return
	}
	if m.unused != nil && m.unused[id] {
		parts[string(text)] = int(a.end - a.start)
	}
	a.rank = m.ranks[id]
	s.heap = minheap.Push(s.heap, uint64(a.rank)<<32|uint64(left))
}

func (m *SentencePiece) output(dst []uint32, text []byte, unknown bool, parts map[string]int) ([]uint32, bool) {
	id, ok := m.cfg.Vocab.ID(text)
	if ok && m.unused != nil && m.unused[id] {
		if n, made := parts[string(text)]; made {
			dst, unknown = m.output(dst, text[:n], unknown, parts)
			return m.output(dst, text[n:], unknown, parts)
		}
	}
	switch {
	case ok && int(id) != m.cfg.Unk:
		return append(dst, id), false
	case m.cfg.ByteFallback:
		for _, b := range text {
			dst = append(dst, uint32(m.cfg.ByteIDs[b]))
		}
		return dst, false
	case !unknown:
		dst = append(dst, uint32(m.cfg.Unk))
	}
	return dst, true
}
