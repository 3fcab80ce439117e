package unigram

import (
	"bytes"
	"unicode/utf8"
)

// appendSentence is SentencePiece's encoder for a whole text: normalize, then search in float32.
func (e *Encoder) appendSentence(dst []uint32, text []byte) []uint32 {
	e.word = e.m.appendNormalized(e.word[:0], text)
	if len(e.word) > 0 {
		dst = e.appendSearch32(dst, e.word, keepScratch)
	}
	e.shrink()
	if cap(e.nodes) > 2*keepScratch {
		e.nodes = nil
	}
	return dst
}

// step normalizes the first characters of text; it returns the result and their length in text.
func (m *Model) step(text []byte) ([]byte, int) {
	for _, p := range m.user[text[0]] {
		if bytes.HasPrefix(text, p) {
			return p, len(p)
		}
	}
	if m.cfg.Charsmap != nil {
		if to, n := m.cfg.Charsmap.Longest(text); n > 0 {
			return to, n
		}
	}
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError && n == 1 {
		return []byte("\uFFFD"), 1
	}
	return text[:n], n
}

// appendNormalized appends text as SentencePiece's Normalizer returns it.
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
