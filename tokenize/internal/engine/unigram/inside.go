package unigram

import (
	"bytes"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/chunkcache"
)

// Cuts inside words, for SplitWords. If no piece contains the characters x and y next to each
// other, and both are pieces themselves, every path passes between x and y, and the best path is
// the best one up to there followed by the best one from there. That holds for real numbers; sums
// are rounded, and how depends on what comes before. Rounding matters only if two paths are nearly
// equal. So the search for a chunk inside a word notes whether that happened (Encoder.nearTie); if
// it did, the word is encoded as a whole and nothing is cached. A chunk is cached under its bytes.
// The chunk at a word's beginning includes the white space before it, which becomes U+2581 and
// distinguishes the two kinds.
//
//	I6  Words of more than maxCutWord bytes are not cut inside, and scores are at most maxScore,
//	    so the error of a path's sum is less than nearScores.
const (
	longBlock  = 2 << 10
	maxCutWord = 2 * longBlock
	maxScore   = 1000
	nearScores = 1e-5
)

// buildInside computes where words may be cut, if at all.
func (m *Model) buildInside() {
	if m.cfg.Split != SplitWords || m.unkScore < -maxScore || m.maxScore > maxScore {
		return
	}
	var soft [utf8.RuneSelf]bool // characters that are never cut from anything
	for c := range soft {
		_, ok := m.trie.Find([]byte{byte(c)})
		soft[c] = !m.plain[c] || !ok
	}
	if m.cfg.UnkID >= 0 && len(m.cfg.Pieces[m.cfg.UnkID]) > 0 { // a literal "<unk>" may fuse with its neighbours
		p := m.cfg.Pieces[m.cfg.UnkID]
		for _, b := range []byte{p[0], p[len(p)-1]} {
			if b < utf8.RuneSelf {
				soft[b] = true
			}
		}
	}
	var follow [utf8.RuneSelf]chunkcache.Row
	for _, p := range m.cfg.Pieces {
		for i := 1; i < len(p); i++ {
			if x, y := p[i-1], p[i]; x < utf8.RuneSelf && y < utf8.RuneSelf && !soft[x] && !soft[y] && !m.gap[x] &&
				!m.gap[y] {
				follow[x].Set(int(y))
			}
		}
	}
	const hard, toAny = 1 << 5, 1 << 6
	m.tables = chunkcache.Tables{}
	m.tables.Group(&follow, 5)
	for c := range soft {
		from, to := &m.tables.From[c], &m.tables.To[c]
		switch {
		case c == ' ':
			*from, *to = 0x7F, 0
		case m.gap[c]:
			*from, *to = 0x7F, 0x80
		case soft[c]:
			*from, *to = 0x7F, 0x7F
		default:
			*from |= hard // joins soft ones
			*to |= toAny  // joins soft ones and white space
		}
	}
	m.inside = true
}

func (m *Model) isGap(b byte) bool { return b < utf8.RuneSelf && m.gap[b] }

// appendInside encodes a segment through the cache, with words cut inside.
func (e *Encoder) appendInside(dst []uint32, text []byte) []uint32 {
	w, m := e.win, e.m
	w.Reset(0)
	if len(text) == 0 {
		return dst
	}
	switch {
	case m.isGap(text[0]):
	case m.plain[text[0]]:
		w.Free()[0] = ' '
		w.Commit(1)
	default: // the first word of a segment follows no white space that it could join
		n := m.firstGap(text)
		e.setNorm(text[:n], false)
		dst = e.appendSplit(dst, e.norm)
		e.shrink()
		text = text[n:]
	}
	for {
		n := copy(w.Free(), text)
		w.Commit(n)
		text = text[n:]
		w.Classify(&m.tables)
		e.cutAtOtherSpaces()
		e.joinLongWords()
		if len(text) == 0 {
			return e.cache.Emit(dst, w, w.Len(), e)
		}
		t := w.Text()
		cut := len(t) - 2
		for cut > 0 && !m.isGap(t[cut]) {
			cut--
		}
		dst = e.cache.Emit(dst, w, max(cut, 0), e)
	}
}

// cutAtOtherSpaces turns other white space into a space, so that a word's chunk is always the same,
// but not before characters beyond ASCII: they may combine with a space but not with a line end.
func (e *Encoder) cutAtOtherSpaces() {
	w := e.win
	text := w.Text()
	for i, g := range w.Gap[:w.Words()] {
		for ; g != 0; g &= g - 1 {
			if p := i*64 + bits.TrailingZeros64(g); p+1 < len(text) && text[p+1] < utf8.RuneSelf {
				text[p] = ' '
			}
		}
	}
}

// joinLongWords removes the cuts from very long words, except at white space that cutAtOtherSpaces
// left. A word is very long if it covers an aligned block.
func (e *Encoder) joinLongWords() {
	w := e.win
	text := w.Text()
	for at := 0; at+longBlock <= len(text); at += longBlock {
		if bytes.IndexByte(text[at:at+longBlock], ' ') >= 0 {
			continue
		}
		begin := bytes.LastIndexByte(text[:at], ' ') + 1
		end := len(text)
		if n := bytes.IndexByte(text[at+longBlock:], ' '); n >= 0 {
			end = at + longBlock + n
		}
		for i := begin >> 6; i <= (end-1)>>6; i++ {
			word := ^uint64(0)
			if i == begin>>6 {
				word <<= begin & 63
			}
			if i == (end-1)>>6 {
				word &= ^uint64(0) >> (63 - (end-1)&63)
			}
			w.Cut[i] &= w.Gap[i] | ^word
		}
		at = end &^ (longBlock - 1)
	}
	clear(w.Gap[:w.Words()]) // white space is part of chunks here
}

// missInside computes the ids of a chunk.
func (e *Encoder) missInside(dst []uint32, w *chunkcache.Window, s chunkcache.Span) ([]uint32, bool) {
	m := e.m
	raw := w.Text()[s.Start:s.End]
	if m.isGap(raw[0]) {
		return e.appendBeginning(dst, raw), true
	}
	before := len(dst)
	e.nearTie = false
	if m.isPlain(raw) {
		dst = e.AppendWord(dst, raw)
	} else {
		e.setNorm(raw, false)
		norm := e.norm
		n := wordLength(norm)
		dst = e.appendPieces(dst, norm[:n])
		dst = e.appendSplit(dst, norm[n:])
	}
	if e.nearTie {
		dst = e.appendRest(dst[:before], w, s)
		e.shrink()
		return dst, false
	}
	e.shrink()
	return dst, true
}

// appendBeginning encodes white space and the beginning of a word, or the whole word.
func (e *Encoder) appendBeginning(dst []uint32, raw []byte) []uint32 {
	if e.m.isPlain(raw[1:]) {
		if len(raw) == 1 {
			return dst
		}
		return e.appendPlain(dst, raw[1:])
	}
	e.setNorm(raw, false)
	dst = e.appendSplit(dst, e.norm)
	e.shrink()
	return dst
}

// appendRest encodes the rest of the word from s on, as part of the whole word, and skips its other
// chunks.
func (e *Encoder) appendRest(dst []uint32, w *chunkcache.Window, s chunkcache.Span) []uint32 {
	text := w.Text()
	begin, end := int(s.Start), int(s.End)
	for begin > 0 && !e.m.isGap(text[begin]) {
		begin--
	}
	for end < len(text) && !e.m.isGap(text[end]) {
		end++
	}
	before := len(dst)
	dst = e.appendBeginning(dst, text[begin:s.Start])
	done := len(dst) - before
	dst = e.appendBeginning(dst[:before], text[begin:end])
	dst = append(dst[:before], dst[before+done:]...)
	e.cache.Skip(end)
	return dst
}

// near reports whether two sums are so close that rounding may decide between them.
func near(a, b float64) bool { return math.Abs(a-b) < nearScores }
