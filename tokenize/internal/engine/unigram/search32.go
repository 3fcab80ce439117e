package unigram

import (
	"slices"
	"unicode/utf8"
)

// resetAt is the size of a sum from which SentencePiece rebases the open sums to the current one.
const resetAt = 100000

// userScore returns the score of a user-defined symbol n bytes long. The file's score is ignored.
func userScore(n int) float32 { return float32(0.1 * float64(n-1)) }

// appendSentence is SentencePiece's encoder for a whole text: normalize, then search in float32.
func (e *Encoder) appendSentence(dst []uint32, text []byte) []uint32 {
	if e.m.cfg.Normalize != nil {
		e.word = e.m.cfg.Normalize(e.word[:0], text)
		text = e.word
	}
	if len(text) > 0 {
		dst = e.appendSearch32(dst, text, keepScratch)
	}
	e.shrink()
	if cap(e.nodes) > 2*keepScratch {
		e.nodes = nil
	}
	return dst
}

// appendSearch32 is the search of SentencePiece 0.2.3 (EncodeOptimized). Every sum is rounded to
// float32 before it is compared or kept, and sums are rebased at resetAt. All paths meet at a
// position that no piece spans: the ids before it are written and only the sum is kept, so that
// nodes take memory for a stretch of the text and not for all of it. This happens once a stretch
// has settleAfter bytes.
func (e *Encoder) appendSearch32(dst []uint32, word []byte, settleAfter int) []uint32 {
	m := e.m
	unk, unkScore := m.unkID(), float32(m.unkScore)
	origin, afterUnk := 0, false         // nodes[i] is for offset origin+i
	nodes := append(e.nodes[:0], node{}) // up to the last offset at which a path ends
	update := func(end, start int, score float32, id uint32) {
		for len(nodes) <= end {
			nodes = append(nodes, node{start: noStart})
		}
		if t := &nodes[end]; t.start == noStart || score > float32(t.score) {
			*t = node{float64(score), uint32(start), id}
		}
	}
	for start := 0; start < len(word); {
		at := start - origin
		base := float32(nodes[at].score)
		if base < -resetAt || base > resetAt {
			for i := at + 1; i < len(nodes); i++ {
				if t := &nodes[i]; t.start != noStart {
					t.score = float64(float32(t.score) - base)
				}
			}
			base = 0
		}
		if at >= settleAfter && at == len(nodes)-1 {
			dst, afterUnk = m.appendPath(dst, nodes, word[origin:start], afterUnk)
			origin, at, nodes = start, 0, nodes[:1]
		}
		_, size := utf8.DecodeRune(word[start:])
		single := false
		n := m.trie.Root()
		for end := start; end < len(word); {
			var ok bool
			if n, ok = m.trie.Step(n, word[end]); !ok {
				break
			}
			end++
			id, ok := n.Value()
			if !ok {
				continue
			}
			score := float32(m.cfg.Scores[id])
			if m.isUser != nil && m.isUser[id] {
				score = userScore(end - start)
			}
			update(end-origin, at, score+base, id)
			single = single || end-start == size
		}
		if !single {
			update(at+size, at, unkScore+base, unk)
		}
		start += size
	}
	dst, _ = m.appendPath(dst, nodes, word[origin:], afterUnk)
	e.nodes = nodes
	return dst
}

// appendPath appends the ids of the best path through text. A run of unknown characters becomes one
// piece or bytes. afterUnk reports whether text follows an unknown character; the result, whether
// it ends in one.
func (m *Model) appendPath(dst []uint32, nodes []node, text []byte, afterUnk bool) ([]uint32, bool) {
	begin, unk := len(dst), m.unkID()
	fused := false
	for end := uint32(len(text)); end > 0; {
		nd := nodes[end]
		switch {
		case nd.id != unk:
			dst = append(dst, nd.id)
		case m.cfg.ByteFallback:
			dst = m.appendUnknown(dst, text[nd.start:end])
		case !fused && m.cfg.UnkID >= 0:
			dst = append(dst, unk)
		}
		fused = nd.id == unk
		end = nd.start
	}
	if fused && afterUnk && !m.cfg.ByteFallback && m.cfg.UnkID >= 0 {
		dst = dst[:len(dst)-1]
	}
	slices.Reverse(dst[begin:])
	if len(text) > 0 {
		afterUnk = nodes[len(text)].id == unk
	}
	return dst, afterUnk
}
