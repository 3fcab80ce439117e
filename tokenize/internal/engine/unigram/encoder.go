package unigram

import (
	"bytes"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/chunkcache"
)

// Encoder is one goroutine's handle on a Model: a cache of fixed size and scratch.
type Encoder struct {
	m       *Model
	cache   *chunkcache.Cache
	win     *chunkcache.Window
	ids     []uint32
	nmt     []byte // a word after Nmt
	norm    []byte // a word after normalization
	word    []byte // U+2581 and a word
	sums    []float64
	paths   []path
	nodes   []node // for short words and SplitNone
	nearTie bool   // a search since the last reset decided between paths of nearly equal score
}

const (
	keepScratch  = 4096 // bytes of a word for which scratch is kept
	scratchBytes = int(unsafe.Sizeof(Encoder{})) + keepScratch*(3+16)
)

// NewEncoder returns an Encoder of at most cacheBytes (0: 8 MiB; at least 256 KiB), its cache
// empty until Warm.
func (m *Model) NewEncoder(cacheBytes int) *Encoder {
	e := m.newEncoder(chunkcache.Budget(cacheBytes, scratchBytes))
	e.cache.SeedLater(m.seeds, m.seedChunk)
	return e
}

// Warm puts the vocabulary into the cache.
func (e *Encoder) Warm() { e.cache.Warm() }

// spaceBegins reports whether each space begins a chunk.
func (m *Model) spaceBegins() bool { return m.cfg.Split == SplitMetaspace && !m.cfg.CollapseSpaces }

func (m *Model) newEncoder(cacheBytes int) *Encoder {
	return &Encoder{m: m, cache: chunkcache.New(cacheBytes, uint32(len(m.cfg.Pieces)-1)), win: chunkcache.NewWindow()}
}

// Append appends the ids of a segment of raw text in UTF-8. A segment may come in pieces, cut where
// SafeCut says; first and last report whether this piece begins and ends it. With SplitNone a segment
// comes whole, and both must be true.
func (e *Encoder) Append(dst []uint32, segment []byte, first, last bool) []uint32 {
	m := e.m
	if m.cfg.Split == SplitNone {
		return e.appendSentence(dst, segment)
	}
	if m.cfg.Split == SplitWords {
		if m.inside {
			return e.appendInside(dst, segment)
		}
		return e.appendWords(dst, segment)
	}
	var tail []byte
	if last && m.cfg.StripRight {
		segment, tail = e.cutTail(segment)
	}
	text := segment
	if len(text) > 0 && first && (!m.cfg.Prefix || m.cfg.PrefixFirst || !m.cfg.CollapseSpaces ||
		m.mayBeginMarked(text)) {
		n := m.firstGap(text)
		e.setNorm(text[:n], false)
		dst = e.appendFirst(dst, text[:n], e.norm)
		text = text[n:]
	}
	dst = e.appendWords(dst, text)
	switch {
	case tail != nil:
		e.setNorm(tail, len(segment) > 0 && m.joins[segment[len(segment)-1]&127])
		norm := bytes.TrimRightFunc(e.norm, unicode.IsSpace)
		if len(segment) == 0 && first {
			dst = e.appendFirst(dst, tail, norm)
		} else {
			dst = e.appendCollapsed(dst, norm)
		}
	case last && m.cfg.CollapseSpaces && !m.cfg.StripRight:
		dst = e.appendTail(dst, segment)
	}
	return dst
}

// mayBeginMarked reports whether normalized text may begin with U+2581, so that it gets no other:
// normalization may turn the first characters into one, or remove those before it.
func (m *Model) mayBeginMarked(text []byte) bool {
	return !m.plain[text[0]] || len(text) > 1 && text[1] >= utf8.RuneSelf
}

func (m *Model) firstGap(text []byte) int {
	for i, b := range text {
		if m.isGap(b) {
			return i
		}
	}
	return len(text)
}

// appendWords encodes raw words through the cache.
func (e *Encoder) appendWords(dst []uint32, text []byte) []uint32 {
	w := e.win
	w.Reset(0) // no separator: nothing joins the beginning of a segment
	for len(text) > 0 {
		n := copy(w.Free(), text)
		w.Commit(n)
		text = text[n:]
		w.Classify(&e.m.tables)
		if len(text) == 0 {
			break
		}
		dst = e.cache.Emit(dst, w, w.LastCut(w.Len()-utf8.UTFMax), e)
	}
	return e.cache.Emit(dst, w, w.Len(), e)
}

// Miss computes the ids of a raw word that the cache does not have.
func (e *Encoder) Miss(dst []uint32, w *chunkcache.Window, s chunkcache.Span) ([]uint32, bool) {
	m := e.m
	if m.inside {
		return e.missInside(dst, w, s)
	}
	raw := w.Text()[s.Start:s.End]
	if m.spaceBegins() {
		return e.appendSpaced(dst, raw), true
	}
	if m.isPlain(raw) {
		return e.appendPlain(dst, raw), true
	}
	before := w.Before(int(s.Start))
	extends := m.beginsExtending(raw) // then what precedes it matters
	e.setNorm(raw, extends && before < utf8.RuneSelf && m.joins[before])
	if m.cfg.Split == SplitWords {
		dst = e.appendSplit(dst, e.norm)
	} else {
		dst = e.appendCollapsed(dst, e.norm)
	}
	e.shrink()
	return dst, !extends
}

func (m *Model) isPlain(raw []byte) bool {
	for _, b := range raw {
		if !m.plain[b] {
			return false
		}
	}
	return true
}

// beginsExtending reports whether the first character that Nmt keeps joins the one before it.
func (m *Model) beginsExtending(raw []byte) bool {
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		if m.cfg.Nmt {
			r = charclass.Nmt(r)
		}
		if r >= 0 {
			return charclass.GraphemeOf(r) == charclass.GraphemeExtend
		}
		raw = raw[n:]
	}
	return false
}

// setNorm normalizes raw text into e.norm.
func (e *Encoder) setNorm(raw []byte, joined bool) {
	m := e.m
	if m.cfg.Nmt {
		e.nmt = charclass.AppendNmtText(e.nmt[:0], raw)
		raw = e.nmt
	}
	if m.cfg.Charsmap != nil {
		e.norm = m.cfg.Charsmap.AppendClusters(e.norm[:0], raw, joined)
	} else {
		e.norm = append(e.norm[:0], raw...)
	}
}

// appendPlain encodes a raw word that normalization does not change.
func (e *Encoder) appendPlain(dst []uint32, raw []byte) []uint32 {
	e.word = append(append(e.word[:0], metaspace...), raw...)
	dst = e.AppendWord(dst, e.word)
	e.shrink()
	return dst
}

// appendSplit encodes normalized text by WhitespaceSplit and Metaspace.
func (e *Encoder) appendSplit(dst []uint32, norm []byte) []uint32 {
	for len(norm) > 0 {
		i := bytes.IndexFunc(norm, notSpace)
		if i < 0 {
			return dst
		}
		norm = norm[i:]
		n := wordLength(norm)
		e.word = e.word[:0]
		if !bytes.HasPrefix(norm, []byte(metaspace)) {
			e.word = append(e.word, metaspace...)
		}
		e.word = append(e.word, norm[:n]...)
		dst = e.appendPieces(dst, e.word)
		norm = norm[n:]
	}
	return dst
}

// wordLength returns the length of text before its first white space, in bytes. White space beyond
// ASCII begins with one of four bytes.
func wordLength(text []byte) int {
	for i, b := range text {
		switch {
		case b <= ' ':
			if b == ' ' || b >= '\t' && b <= '\r' {
				return i
			}
		case b == 0xC2 || b >= 0xE1 && b <= 0xE3:
			if r, _ := utf8.DecodeRune(text[i:]); unicode.IsSpace(r) {
				return i
			}
		}
	}
	return len(text)
}

func notSpace(r rune) bool { return r > ' ' && r < utf8.RuneSelf || !unicode.IsSpace(r) }

// appendPieces cuts text before each U+2581 and encodes the parts.
func (e *Encoder) appendPieces(dst []uint32, text []byte) []uint32 {
	for len(text) > 0 {
		n := len(text)
		if i := bytes.Index(text[1:], []byte(metaspace)); i >= 0 {
			n = i + 1
		}
		dst = e.AppendWord(dst, text[:n])
		text = text[n:]
	}
	return dst
}

// appendSpaced encodes a chunk of SplitMetaspace without CollapseSpaces: a space and a word, in
// which each space becomes U+2581.
func (e *Encoder) appendSpaced(dst []uint32, raw []byte) []uint32 {
	e.setNorm(raw, false)
	e.word = append(e.word[:0], bytes.ReplaceAll(e.norm, []byte(" "), []byte(metaspace))...)
	dst = e.appendPieces(dst, e.word)
	e.shrink()
	return dst
}

// appendCollapsed encodes the normalized word after a separator, with CollapseSpaces: runs of
// spaces count as one, and those at the ends belong to the separators.
func (e *Encoder) appendCollapsed(dst []uint32, norm []byte) []uint32 {
	norm = bytes.Trim(norm, " ")
	if len(norm) == 0 {
		return dst
	}
	e.word = appendOneSpaced(append(e.word[:0], metaspace...), norm)
	return e.appendPieces(dst, e.word)
}

// appendOneSpaced appends text with U+2581 for each run of spaces.
func appendOneSpaced(dst, text []byte) []byte {
	for i, b := range text {
		switch {
		case b != ' ':
			dst = append(dst, b)
		case i == 0 || text[i-1] != ' ':
			dst = append(dst, metaspace...)
		}
	}
	return dst
}

// shrink drops scratch that grew for an enormous word.
func (e *Encoder) shrink() {
	if cap(e.word) > 2*keepScratch {
		e.nmt, e.norm, e.word = nil, nil, nil
	}
}
