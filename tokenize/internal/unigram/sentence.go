package unigram

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// appendSentence is SentencePiece's encoder for a whole text: normalize, then search in float32.
func (e *Encoder) appendSentence(dst []uint32, text []byte) []uint32 {
	e.word = e.m.appendNormalized(e.word[:0], text)
	if len(e.word) > 0 {
		dst = e.appendSearch32(dst, e.word)
	}
	e.shrink()
	if cap(e.nodes) > 2*keepScratch {
		e.nodes = nil
	}
	return dst
}

// step returns what the beginning of text is normalized to, and its length in text.
func (m *Model) step(text []byte) ([]byte, int) {
	for _, p := range m.user[text[0]] {
		if bytes.HasPrefix(text, p) {
			return p, len(p)
		}
	}
	if m.cfg.Charsmap != nil {
		if to, n := m.cfg.Charsmap.longest(text); n > 0 {
			return to, n
		}
	}
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError && n == 1 {
		return []byte("\uFFFD"), 1
	}
	return text[:n], n
}

// appendNormalized is SentencePiece's Normalizer.
func (m *Model) appendNormalized(dst, text []byte) []byte {
	extra := m.cfg.CollapseSpaces
	if extra {
		for len(text) > 0 {
			to, n := m.step(text)
			if string(to) != " " {
				break
			}
			text = text[n:]
		}
	}
	if len(text) == 0 {
		return dst
	}
	begin := len(dst)
	if m.cfg.Prefix {
		dst = append(dst, metaspace...)
	}
	wasSpace := extra
	for len(text) > 0 {
		to, n := m.step(text)
		for wasSpace && len(to) > 0 && to[0] == ' ' {
			to = to[1:]
		}
		if len(to) > 0 {
			for _, b := range to {
				if b == ' ' {
					dst = append(dst, metaspace...)
				} else {
					dst = append(dst, b)
				}
			}
			wasSpace = extra && to[len(to)-1] == ' '
		}
		text = text[n:]
	}
	if extra {
		for bytes.HasSuffix(dst[begin:], []byte(metaspace)) {
			dst = dst[:len(dst)-len(metaspace)]
		}
	}
	return dst
}

// resetAt is the size of a sum from which on SentencePiece takes the sums that are still open relative to the one at hand.
const resetAt = 100000

// userScore is the score of a user-defined symbol of that many bytes. The normalizer leaves such symbols as they are, and this
// keeps them whole in the search too.
func userScore(bytes int) float32 { return float32(0.1 * float64(bytes-1)) }

// appendSearch32 is SentencePiece's EncodeOptimized: every sum is rounded to float32 before it is compared or kept, and sums of long
// texts begin anew at resetAt.
func (e *Encoder) appendSearch32(dst []uint32, word []byte) []uint32 {
	m := e.m
	nodes := slices.Grow(e.nodes[:0], len(word)+1)[:len(word)+1]
	e.nodes = nodes
	for i := range nodes {
		nodes[i] = node{start: noStart}
	}
	unk := m.unkID()
	unkScore := float32(m.unkScore)
	update := func(end, start int, score float32, id uint32) {
		if t := &nodes[end]; t.start == noStart || score > float32(t.score) {
			*t = node{float64(score), uint32(start), id}
		}
	}
	frontier := 0 // the last offset at which a path ends
	for start := 0; start < len(word); {
		_, size := utf8.DecodeRune(word[start:])
		base := float32(nodes[start].score)
		if base < -resetAt || base > resetAt {
			for i := start; i <= frontier; i++ {
				if t := &nodes[i]; i == start || t.start != noStart {
					t.score = float64(float32(t.score) - base)
				}
			}
			base = 0
		}
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
			frontier = max(frontier, end)
			update(end, start, score+base, id)
			if end-start == size {
				single = true
			}
		}
		if !single {
			frontier = max(frontier, start+size)
			update(start+size, start, unkScore+base, unk)
		}
		start += size
	}
	begin := len(dst)
	fused := false
	for end := uint32(len(word)); end > 0; {
		nd := nodes[end]
		switch {
		case nd.id != unk:
			dst = append(dst, nd.id)
			fused = false
		case m.cfg.ByteFallback:
			dst = m.appendUnknown(dst, word[nd.start:end])
		case !fused && m.cfg.UnkID >= 0:
			dst = append(dst, unk)
			fused = true
		}
		end = nd.start
	}
	slices.Reverse(dst[begin:])
	return dst
}
