package spbpe

import (
	"bytes"
	"math/bits"
	"unicode/utf8"
	"unsafe"

	"github.com/dsload/dsload/tokenize/internal/chunkcache"
)

// Encoder is one goroutine's handle on a Model: a cache of fixed size and scratch.
type Encoder struct {
	m     *Model
	cache *chunkcache.Cache
	win   *chunkcache.Window
	ids   []uint32
	small small
	large large
}

const scratchBytes = int(unsafe.Sizeof(Encoder{})) + keepItems*(6*4+8)

// NewEncoder returns an Encoder of at most cacheBytes (0: 8 MiB; at least 256 KiB), its cache
// empty until Warm.
func (m *Model) NewEncoder(cacheBytes int) *Encoder {
	e := m.newEncoder(chunkcache.Budget(cacheBytes, scratchBytes))
	e.cache.SeedLater(m.seeds, m.text)
	return e
}

// Warm puts the vocabulary into the cache.
func (e *Encoder) Warm() { e.cache.Warm() }

func (m *Model) newEncoder(cacheBytes int) *Encoder {
	return &Encoder{m: m, cache: chunkcache.New(cacheBytes, m.maxID), win: chunkcache.NewWindow()}
}

// Append appends the ids of a segment of raw text in UTF-8. Ill-formed text gives U+FFFD or
// unspecified ids, never a panic. A segment may come in pieces, cut where SafeCut says; first and
// last report whether this piece begins and ends it.
func (e *Encoder) Append(dst []uint32, segment []byte, first, last bool) []uint32 {
	if e.m.user.any {
		return e.appendUser(dst, segment, first)
	}
	return e.appendText(dst, segment, first)
}

func (e *Encoder) appendText(dst []uint32, text []byte, first bool) []uint32 {
	w := e.win
	w.Reset('\n')
	if len(text) == 0 {
		return dst
	}
	if first && e.prefixed(text) {
		w.Free()[0] = ' '
		w.Commit(1)
	}
	for {
		before := w.Len()
		n := copy(w.Free(), text)
		w.Commit(n)
		text = text[n:]
		e.replaceMetaspace(max(0, before-2))
		w.Classify(&e.m.tables)
		e.patch()
		if len(text) == 0 {
			return e.cache.Emit(dst, w, w.Len(), e)
		}
		dst = e.cache.Emit(dst, w, w.LastCut(w.Len()-utf8.UTFMax), e)
	}
}

// prefixed reports whether a segment gets a space in front.
func (e *Encoder) prefixed(text []byte) bool {
	switch e.m.cfg.Prefix {
	case PrefixAlways:
		return true
	case PrefixUnlessSpace:
		return text[0] != ' ' && !bytes.HasPrefix(text, metaspaceBytes)
	}
	return false
}

var metaspaceBytes = []byte(string(metaspace))

// replaceMetaspace turns every U+2581 at or after from into a space.
func (e *Encoder) replaceMetaspace(from int) {
	text := e.win.Text()
	i := from
	for {
		k := bytes.IndexByte(text[i:], metaspaceBytes[0])
		if k < 0 {
			return
		}
		i += k
		if bytes.HasPrefix(text[i:], metaspaceBytes) {
			break
		}
		i++
	}
	out := i
	for i < len(text) {
		if text[i] == metaspaceBytes[0] && bytes.HasPrefix(text[i:], metaspaceBytes) {
			text[out] = ' '
			i += 3
		} else {
			text[out] = text[i]
			i++
		}
		out++
	}
	e.win.Truncate(out)
}

// patch sets the cuts next to characters beyond ASCII.
func (e *Encoder) patch() {
	w, m := e.win, e.m
	text := w.Text()
	done := 0 // characters before this offset are done
	for i, non := range w.NonASCII[:w.Words()] {
		base := i * 64
		if skip := done - base; skip > 0 {
			if skip >= 64 {
				continue
			}
			non &= ^uint64(0) << skip
		}
		for non != 0 {
			p := base + bits.TrailingZeros64(non)
			p = m.patchRun(w, text, p)
			done = p
			if p-base >= 64 {
				break
			}
			non &= ^uint64(0) << (p - base)
		}
	}
}

// patchRun handles a run of characters beyond ASCII that begins at p and returns its end.
func (m *Model) patchRun(w *chunkcache.Window, text []byte, p int) int {
	var prev uint32 // flags of the previous character; "ends" only if it may join characters beyond ASCII
	if p > 0 {
		x := text[p-1]
		prev = m.runes.get(rune(x))
		if !m.asciiEnds[x&127] {
			prev &^= flagEnds
		}
	}
	for {
		r, size := utf8.DecodeRune(text[p:])
		cur := m.runes.get(r)
		if !(prev&flagEnds != 0 && cur&flagStarts != 0) && prev&cur&flagFuses == 0 {
			w.Cut[p>>6] |= 1 << (p & 63)
		}
		p += size
		prev = cur
		if p >= len(text) {
			return p
		}
		y := text[p]
		if y < utf8.RuneSelf {
			next := m.runes.get(rune(y))
			joined := prev&flagEnds != 0 && m.asciiStarts[y] || prev&next&flagFuses != 0
			if !joined || y == ' ' && m.cfg.SplitSpaces {
				w.Cut[p>>6] |= 1 << (p & 63)
			}
			return p
		}
	}
}

// Miss computes the ids of a chunk that the cache does not have.
func (e *Encoder) Miss(dst []uint32, w *chunkcache.Window, s chunkcache.Span) ([]uint32, bool) {
	return e.appendChunk(dst, w.Text()[s.Start:s.End]), true
}

// maxLookBack bounds how far back SafeCut looks.
const maxLookBack = 64 << 10

// SafeCut returns the largest n at which text can be cut: whatever follows, the ids of the whole
// are those of text[:n] and those of the rest. It returns 0 if there is none in the last 64 KiB.
func (m *Model) SafeCut(text []byte) int {
	end := len(text)
	low := max(0, end-maxLookBack)
	y, ySize := decodeLast(text)
	if ySize == 0 {
		return 0
	}
	if y != utf8.RuneError && m.runes.get(y)&(flagEnds|flagFuses) == 0 && m.user.cutAllowed(text, end) {
		return end
	}
	for p := end - ySize; p > low; {
		x, size := decodeLast(text[:p])
		if x != utf8.RuneError && y != utf8.RuneError && !m.joins(x, y) && m.user.cutAllowed(text, p) {
			return p
		}
		y = x
		p -= size
	}
	return 0
}

// decodeLast is utf8.DecodeLastRune with U+2581 as a space. It also returns utf8.RuneError for a
// real U+FFFD, next to which SafeCut does not cut.
func decodeLast(text []byte) (rune, int) {
	r, size := utf8.DecodeLastRune(text)
	return toSpace(r), size
}
