package plain

import (
	"bytes"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/spec"
)

// SentencePiece is SentencePiece's BPE: any two neighbours whose concatenation is a piece may
// merge, highest score first, leftmost among equals. User-defined symbols are cut out first and
// never merge.
type SentencePiece struct {
	cfg    spec.SentencePiece
	merges []bool            // indexed by id: a merge may make it
	unused []bool            // indexed by id: split again at the end; nil for none
	user   map[byte][][]byte // user-defined symbols by their first byte
}

// NewSentencePiece returns the model.
func NewSentencePiece(c *spec.SentencePiece) *SentencePiece {
	m := &SentencePiece{cfg: *c, merges: make([]bool, len(c.Kinds)), user: map[byte][][]byte{}}
	for id, kind := range c.Kinds {
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
			continue
		}
		m.merges[id] = true
	}
	return m
}

// ResidentBytes implements Model.
func (m *SentencePiece) ResidentBytes() int64 { return int64(len(m.cfg.Scores)) * 6 }

// span is a symbol: a part of the piece. It is empty after it has been merged into its left
// neighbour.
type span struct {
	start, end int32
	prev, next int32
	frozen     bool
}

type spanMerge struct {
	score float32
	left  int32
	size  int32 // the result's
}

func (a spanMerge) before(b spanMerge) bool {
	return a.score > b.score || a.score == b.score && a.left < b.left
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
		spans = append(spans, span{int32(i), int32(i + n), k - 1, k + 1, frozen})
		i += n
	}
	spans[len(spans)-1].next = -1
	s.spans, s.merges = spans, s.merges[:0]
	parts := map[string]int{} // unused pieces that merges made: the length of their left part
	for i := range spans {
		m.offer(s, piece, int32(i), spans[i].next, parts)
	}
	for len(s.merges) > 0 {
		top := s.popMerge()
		left := &spans[top.left]
		if left.start == left.end || left.next < 0 {
			continue
		}
		right := &spans[left.next]
		if right.end-left.start != top.size {
			continue
		}
		left.end = right.end
		right.start = right.end
		left.next = right.next
		if right.next >= 0 {
			spans[right.next].prev = top.left
		}
		m.offer(s, piece, left.prev, top.left, parts)
		m.offer(s, piece, top.left, left.next, parts)
	}
	unknown := false
	for _, x := range spans {
		if x.start < x.end {
			dst, unknown = m.output(dst, piece[x.start:x.end], unknown, parts)
		}
	}
	if cap(s.spans) > maxSymbolsKept {
		s.spans, s.merges = nil, nil
	}
	return dst
}

// offer adds the merge of two neighbours to the heap if it makes a piece.
func (m *SentencePiece) offer(s *Scratch, piece []byte, left, right int32, parts map[string]int) {
	if left < 0 || right < 0 || s.spans[left].frozen || s.spans[right].frozen {
		return
	}
	a, b := &s.spans[left], &s.spans[right]
	text := piece[a.start:b.end]
	id, ok := m.cfg.Vocab.ID(text)
	if !ok || !m.merges[id] {
		return
	}
	if m.unused != nil && m.unused[id] {
		parts[string(text)] = int(a.end - a.start)
	}
	s.pushMerge(spanMerge{m.cfg.Scores[id], left, b.end - a.start})
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

func (s *Scratch) pushMerge(x spanMerge) {
	h := append(s.merges, x)
	i := len(h) - 1
	for i > 0 && x.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
	s.merges = h
}

func (s *Scratch) popMerge() spanMerge {
	h := s.merges
	top, n := h[0], len(h)-1
	x := h[n]
	h = h[:n]
	i := 0
	for n > 0 {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(x) {
			break
		}
		h[i] = h[c]
		i = c
	}
	if n > 0 {
		h[i] = x
	}
	s.merges = h
	return top
}
