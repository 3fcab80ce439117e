package wordpiece

import (
	"bytes"
	"encoding/binary"
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
	norm  []byte // a normalized chunk
}

const (
	keepScratch  = 4096 // bytes of a chunk for which scratch is kept
	scratchBytes = int(unsafe.Sizeof(Encoder{})) + 2*keepScratch
)

// NewEncoder returns an Encoder of at most cacheBytes (0: 8 MiB; at least 128 KiB), its cache
// empty until Warm.
func (m *Model) NewEncoder(cacheBytes int) *Encoder {
	e := m.newEncoder(chunkcache.Budget(cacheBytes, scratchBytes))
	e.cache.SeedLater(m.seeds, func(id uint32) []byte { return m.cfg.Pieces[id] })
	return e
}

// Warm puts the vocabulary into the cache.
func (e *Encoder) Warm() { e.cache.Warm() }

func (m *Model) newEncoder(cacheBytes int) *Encoder {
	return &Encoder{m: m, cache: chunkcache.New(cacheBytes, uint32(len(m.cfg.Pieces)-1)), win: chunkcache.NewWindow()}
}

// Append appends the ids of a segment of raw text in UTF-8. It ignores first and last: this model
// treats the ends of a segment like any cut.
func (e *Encoder) Append(dst []uint32, segment []byte, first, last bool) []uint32 {
	w, m := e.win, e.m
	w.Reset(' ')
	for len(segment) > 0 {
		segment = e.fill(segment)
		w.Classify(&m.tables)
		e.patch()
		if len(segment) == 0 {
			break
		}
		dst = e.cache.Emit(dst, w, w.LastCut(w.Len()-utf8.UTFMax), e)
	}
	return e.cache.Emit(dst, w, w.Len(), e)
}

// fill copies text to the window until that is full, and returns the rest. Ill-formed and binary
// text is full of U+FFFD and NUL, so fill handles them if the normalizer drops them: it leaves out
// U+FFFD, and turns NUL into a control character that chunks may contain.
func (e *Encoder) fill(text []byte) []byte {
	w, m := e.win, e.m
	for free := w.Free(); len(free) > 0 && len(text) > 0; {
		n := min(len(free), len(text))
		to := free[:n]
		if m.cfg.Normalizer.Lowercase {
			copyLower(to, text[:n])
		} else {
			copy(to, text[:n])
		}
		text = text[n:]
		if m.dropsReplacement {
			to = dropReplacement(to)
		}
		if m.dropsNUL {
			for at := bytes.IndexByte(to, 0); at >= 0 && at < len(to); at++ {
				if to[at] == 0 {
					to[at] = 1
				}
			}
		}
		w.Commit(len(to))
		free = free[len(to):]
	}
	return text
}

const replacement = "\uFFFD"

// dropReplacement removes U+FFFD from text, in place. Parts of one at either end stay.
func dropReplacement(text []byte) []byte {
	at := bytes.Index(text, []byte(replacement))
	if at < 0 {
		return text
	}
	kept := text[:at]
	for at < len(text) {
		if text[at] == replacement[0] && bytes.HasPrefix(text[at:], []byte(replacement)) {
			at += len(replacement)
			continue
		}
		kept = append(kept, text[at])
		at++
	}
	return kept
}

// copyLower copies src to dst, with ASCII letters in lower case: eight bytes at a time.
func copyLower(dst, src []byte) {
	const ones = 0x0101010101010101
	dst = dst[:len(src)]
	for len(src) >= 8 {
		x := binary.LittleEndian.Uint64(src)
		low := x &^ (0x80 * ones)
		upper := (low + (0x80-'A')*ones) &^ (low + (0x80-'Z'-1)*ones) &^ x & (0x80 * ones)
		binary.LittleEndian.PutUint64(dst, x|upper>>2)
		dst, src = dst[8:], src[8:]
	}
	for i, b := range src {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		dst[i] = b
	}
}

// patch cuts around single-character words beyond ASCII, and turns spaces beyond ASCII into gaps.
func (e *Encoder) patch() {
	w, m := e.win, e.m
	text := w.Text()
	skip := uint64(0) // bits of the next word that belong to a character already seen
	for i, non := range w.NonASCII[:w.Words()] {
		non &^= skip
		skip = 0
		for non != 0 {
			k := bits.TrailingZeros64(non)
			p := i*64 + k
			r, size := decodeRune(text[p:])
			non &^= (1<<size - 1) << k
			if k+size > 64 {
				skip = 1<<(k+size-64) - 1
			}
			switch m.chars.get(r) & kindBits {
			case kindSpace:
				for j := p; j < p+size; j++ {
					w.Gap[j>>6] |= 1 << (j & 63)
				}
			case kindAlone:
				w.Cut[p>>6] |= 1 << (p & 63)
				w.Cut[(p+size)>>6] |= 1 << ((p + size) & 63)
			}
		}
	}
}

// Miss computes the ids of a chunk that the cache does not have.
func (e *Encoder) Miss(dst []uint32, w *chunkcache.Window, s chunkcache.Span) ([]uint32, bool) {
	return e.appendChunk(dst, w.Text()[s.Start:s.End]), true
}

// appendChunk normalizes a chunk, cuts it into words and spells them.
func (e *Encoder) appendChunk(dst []uint32, chunk []byte) []uint32 {
	e.norm = e.m.chars.append(e.norm[:0], chunk)
	dst = e.appendNormalized(dst, e.norm)
	if cap(e.norm) > 2*keepScratch {
		e.norm = nil
	}
	return dst
}

// appendNormalized applies the pre-tokenizer and the model.
func (e *Encoder) appendNormalized(dst []uint32, text []byte) []uint32 {
	begin := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = decodeRune(text[i:])
		}
		if kind := e.m.split.get(r) & kindBits; kind != kindKeep {
			dst = e.AppendWord(dst, text[begin:i])
			begin = i + size
			if kind == kindAlone {
				dst = e.AppendWord(dst, text[i:begin])
			}
		}
		i += size
	}
	return e.AppendWord(dst, text[begin:])
}

// AppendWord appends the ids of one normalized pre-token: the model alone.
func (e *Encoder) AppendWord(dst []uint32, word []byte) []uint32 {
	m := e.m
	if len(word) == 0 {
		return dst
	}
	if limit := m.cfg.MaxInputCharsPerWord; len(word) > limit && (len(word)/utf8.UTFMax > limit ||
		utf8.RuneCount(word) > limit) {
		return append(dst, m.cfg.UnkID)
	}
	before := len(dst)
	trie := m.first
	for len(word) > 0 {
		n := trie.Root()
		length := 0
		var id uint32
		for i, b := range word {
			var ok bool
			if n, ok = trie.Step(n, b); !ok {
				break
			}
			if v, ok := n.Value(); ok {
				id, length = v, i+1
			}
		}
		if length == 0 {
			return append(dst[:before], m.cfg.UnkID)
		}
		dst = append(dst, id)
		word = word[length:]
		trie = m.rest
	}
	return dst
}
