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

// appendSearch32 is SentencePiece's EncodeOptimized: sums are rounded to float32 at each step.
func (e *Encoder) appendSearch32(dst []uint32, word []byte) []uint32 {
	m := e.m
	nodes := slices.Grow(e.nodes[:0], len(word)+1)[:len(word)+1]
	e.nodes = nodes
	for i := range nodes {
		nodes[i] = node{start: noStart}
	}
	unk := m.unkID()
	unkScore := float32(m.unkScore)
	update := func(end, start int, score float64, id uint32) {
		score = float64(float32(score)) // rounded before it is compared: ties depend on it
		if t := &nodes[end]; t.start == noStart || score > t.score {
			*t = node{score, uint32(start), id}
		}
	}
	for start := 0; start < len(word); {
		_, size := utf8.DecodeRune(word[start:])
		base := nodes[start].score
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
			score := m.cfg.Scores[id]
			if m.isUser != nil && m.isUser[id] {
				score = float64(float32(end-start)*float32(m.maxScore)) - 0.1
			}
			update(end, start, score+base, id)
			if end-start == size {
				single = true
			}
		}
		if !single {
			update(start+size, start, float64(unkScore+float32(base)), unk)
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
