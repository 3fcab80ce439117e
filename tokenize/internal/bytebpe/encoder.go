package bytebpe

import (
	"bytes"
	"encoding/binary"
)

// DefaultCacheBytes is the memory of an Encoder made with zero cache bytes.
const DefaultCacheBytes = 8 << 20

const batchWords = 64

// Encoder turns text into ids. It belongs to one goroutine; its memory is fixed when it is made.
type Encoder struct {
	m *Model
	cache
	merger

	buf    [windowBytes + padBytes]byte
	blocks [numBlocks + 2]block
	start  [numBlocks + 1]uint64
	pos    [windowBytes + 72]uint16
	probes [batchWords + 8]probe
	ids    [windowBytes + 32]uint32 // where the caller's buffer is too small for a window's worst case
	kept   []byte                   // a word without the bytes that have no token
}

// probe is one word ready to be looked up.
type probe struct {
	lo, second uint64
	line       uint32 // byte offset
	any        uint32 // 0xf for A, where each matching lane is a hit; 0 for B, where two must match
}

// NewEncoder makes an encoder whose memory, as EncoderBytes tells, is at most cacheBytes; 0 means DefaultCacheBytes, and fewer than
// 512 KiB are raised to that. Its cache begins with the tokens of the vocabulary.
func (m *Model) NewEncoder(cacheBytes int) *Encoder {
	e := &Encoder{m: m}
	e.merger.m = m
	e.cache.init(shapeOf(cacheSize(cacheBytes)))
	e.seed()
	return e
}

// encoderFixed is an upper bound of an Encoder's memory besides the cache.
const encoderFixed = 128 << 10

func cacheSize(cacheBytes int) int {
	if cacheBytes <= 0 {
		cacheBytes = DefaultCacheBytes
	}
	return max(cacheBytes-encoderFixed, minCache)
}

// EncoderBytes returns the memory an encoder made with the same argument uses.
func (m *Model) EncoderBytes(cacheBytes int) int64 {
	return shapeOf(cacheSize(cacheBytes)).bytes() + encoderFixed
}

// seed puts the vocabulary into the cache, low ids last, since those are the frequent ones and the last entry comes first in its line.
func (e *Encoder) seed() {
	room := len(e.lines) / 2 // at most this many entries, or they only push each other out
	set := e.m.seeds()
	limit := uint32(0)
	for id := range uint32(len(e.m.vocab.ends)) {
		if set[id>>6]>>(id&63)&1 != 0 {
			limit = id + 1
			if room--; room == 0 {
				break
			}
		}
	}
	var one [1]uint32
	for id := limit; id > 0; {
		id--
		if set[id>>6]>>(id&63)&1 != 0 {
			one[0] = id
			p := e.probeOf(e.m.vocab.token(id))
			e.insert(&p, one[:])
		}
	}
}

// Append appends the ids of a segment: the text between added tokens. A segment may come in pieces, cut where SafeCut says; first and last
// tell whether this piece begins and ends it. Bytes that are not UTF-8 count as characters of no class.
func (e *Encoder) Append(dst []uint32, segment []byte, first, last bool) []uint32 {
	if e.m.split == None {
		if len(segment) == 0 {
			return dst
		}
		return e.appendWord(dst, segment)
	}
	for s := segment; len(s) > 0; {
		n := copy(e.buf[:windowBytes], s)
		for i := n; i < n+padBytes && i < len(e.buf); i++ {
			e.buf[i] = ' '
		}
		words, nul := e.scan(n)
		end := n
		if n < len(s) {
			words = e.settled(words, n)
			if words == 0 {
				end = e.m.tokenEnd(s, 0)
				dst = e.appendWord(dst, s[:end])
				s = s[end:]
				continue
			}
			end = int(e.pos[words])
		}
		if nul {
			for i := range words {
				dst = e.appendWord(dst, e.buf[e.pos[i]:e.pos[i+1]])
			}
		} else if cap(dst)-len(dst) >= end+ringSlack {
			dst = e.appendWords(dst, words)
		} else {
			dst = append(dst, e.appendWords(e.ids[:0], words)...)
		}
		s = s[end:]
	}
	return dst
}

// scan finds the pre-tokens of the first n bytes of the buffer: pos[0..words]. nul says that one of them may hold a zero byte.
func (e *Encoder) scan(n int) (words int, nul bool) {
	if e.m.split == O200K {
		return e.scanPlain(n), bytes.IndexByte(e.buf[:n], 0) >= 0
	}
	count := n/blockBytes + 1
	blocks := e.blocks[:count+1]
	high, zero := classify(e.buf[:], blocks)
	if high != 0 {
		e.m.classifyHigh(e.buf[:n], blocks)
	}
	switch e.m.split {
	case GPT2:
		boundsGPT2(e.buf[:], blocks, e.start[:count])
	default:
		if !boundsCL100K(e.buf[:], blocks, e.start[:count], e.m.split == CL100K) {
			return e.scanPlain(n), zero != 0
		}
	}
	return flatten(e.start[:count], n, &e.pos), zero != 0
}

// scanPlain is scan by the plain scanner.
func (e *Encoder) scanPlain(n int) (words int) {
	for i := 0; i < n; words++ {
		e.pos[words] = uint16(i)
		i = e.m.tokenEnd(e.buf[:n], i)
	}
	e.pos[words] = uint16(n)
	return words
}

// settled returns how many of the window's first words stay as they are whatever follows the n bytes. A boundary inside white space waits
// for what follows it, one at the end for the rest of its character or contraction.
func (e *Encoder) settled(words, n int) int {
	for ; words > 0; words-- {
		p := int(e.pos[words])
		if p > n-16 {
			continue
		}
		a, _ := e.m.lastChar(e.buf[:p])
		b, _ := e.m.char(e.buf[:n], p)
		if a&space == 0 || b&space == 0 {
			return words
		}
	}
	return 0
}

// lastChar returns the classes and size of the character that ends s.
func (m *Model) lastChar(s []byte) (class uint8, size int) {
	for n := 1; n <= 4 && n <= len(s); n++ {
		if k, size := m.char(s, len(s)-n); size == n && (n > 1 || s[len(s)-1] < 0x80) {
			return k, n
		}
	}
	return 0, 1
}

// appendWords appends the ids of the words in the window; dst has room for them all and ringSlack more.
func (e *Encoder) appendWords(dst []uint32, words int) []uint32 {
	for w := 0; w < words; {
		count := min(batchWords, words-w)
		pos := e.pos[w : w+count+1]
		e.prepare(pos, e.probes[:count])
		for i := 0; i < count; i++ {
			var hit int
			if dst, hit = e.lookup(dst, e.probes[i:count]); i+hit == count {
				break
			}
			i += hit
			dst = e.appendMiss(dst, int(pos[i]), int(pos[i+1]), &e.probes[i])
		}
		w += count
	}
	return dst
}

// prepareGo computes keys and lines of the words between neighbouring positions.
func (e *Encoder) prepareGo(pos []uint16, out []probe) {
	for i := range out {
		p := int(pos[i])
		k := &e.kinds[min(int(pos[i+1])-p, 17)]
		text := e.buf[p : p+16]
		lo := binary.LittleEndian.Uint64(text) & k.maskLo
		hi := binary.LittleEndian.Uint64(text[8:]) & k.maskHi
		out[i] = k.probe(lo, hi)
	}
}

// lookupGo appends the ids of words until one is not cached, and returns how many were.
func (e *Encoder) lookupGo(dst []uint32, probes []probe) (_ []uint32, hits int) {
	n := len(dst)
	out := dst[:cap(dst)]
	for i := range probes {
		p := &probes[i]
		line := (*[lineWords]uint64)(e.lines[p.line/8:])
		var v uint64
		if p.any != 0 {
			switch p.lo {
			case line[0]:
				v = line[4]
			case line[1]:
				v = line[5]
			case line[2]:
				v = line[6]
			case line[3]:
				v = line[7]
			default:
				return dst[:n], i
			}
		} else if line[0] == p.lo && line[2] == p.second {
			v = line[4]
		} else if line[1] == p.lo && line[3] == p.second {
			v = line[5]
		} else {
			return dst[:n], i
		}
		if count := int(v >> 60); count <= 3 {
			o := out[n : n+3]
			o[0], o[1], o[2] = uint32(v&idMask), uint32(v>>20&idMask), uint32(v>>40&idMask)
			n += count
			continue
		}
		if !e.spillLive(v & (1<<40 - 1)) {
			return dst[:n], i
		}
		at := e.spillAt(v & (1<<40 - 1))
		n += copy(out[n:], e.spill[at:at+int(v>>40&idMask)])
	}
	return dst[:n], len(probes)
}

// appendMiss appends the ids of the word at buf[begin:end], which has no NUL and is not in the lines, and caches them.
func (e *Encoder) appendMiss(dst []uint32, begin, end int, p *probe) []uint32 {
	w := e.buf[begin:end]
	if len(w) > 16 {
		return e.appendLongWord(dst, w)
	}
	base := len(dst)
	if id := e.whole(w); id != noSymbol {
		dst = append(dst, id)
	} else if e.m.missing {
		dst = e.appendPresent(dst, w)
	} else {
		n := e.merge16((*[16]byte)(e.buf[begin:begin+16]), len(w))
		dst = append(dst, e.merger.ids[:n]...)
	}
	e.insert(p, dst[base:])
	return dst
}

// appendWord appends the ids of any word, wherever it lies.
func (e *Encoder) appendWord(dst []uint32, w []byte) []uint32 {
	if len(w) <= 16 || bytes.IndexByte(w, 0) >= 0 {
		return e.appendUncached(dst, w)
	}
	return e.appendLongWord(dst, w)
}

// appendLongWord appends the ids of a word of more than 16 bytes.
func (e *Encoder) appendLongWord(dst []uint32, w []byte) []uint32 {
	if len(w) > maxLong {
		return e.appendUncached(dst, w)
	}
	base := len(dst)
	hash := hashBytes(w)
	dst, ok := e.appendLong(dst, w, hash)
	if !ok {
		dst = e.appendUncached(dst, w)
		e.insertLong(w, hash, dst[base:])
	}
	return dst
}

func (e *Encoder) appendUncached(dst []uint32, w []byte) []uint32 {
	if id := e.whole(w); id != noSymbol {
		return append(dst, id)
	}
	if e.m.missing {
		return e.appendPresent(dst, w)
	}
	return e.appendMerged(dst, w)
}

// whole returns the token that is the whole word, where the model takes it without merging, else noSymbol.
func (e *Encoder) whole(w []byte) uint32 {
	if !e.m.ignoreMerges {
		return noSymbol
	}
	return e.m.vocab.find(w)
}

// appendPresent merges what is left of a word without the bytes that have no token.
func (e *Encoder) appendPresent(dst []uint32, w []byte) []uint32 {
	if !e.m.hasMissing(w) {
		return e.appendMerged(dst, w)
	}
	e.kept = e.kept[:0]
	for _, c := range w {
		if e.m.byteID[c] != noSymbol {
			e.kept = append(e.kept, c)
		}
	}
	if len(e.kept) > 0 {
		dst = e.appendMerged(dst, e.kept)
	}
	if cap(e.kept) > 1<<16 {
		e.kept = nil
	}
	return dst
}

// SafeCut returns the largest n <= len(text) for which ids(text+rest) = ids(text[:n]) followed by ids(text[n:]+rest) whatever rest is, or 0
// where none is found in the last 64 KiB.
func (m *Model) SafeCut(text []byte) int {
	if m.split == None {
		return 0
	}
	for n := len(text) - 1; n > max(0, len(text)-64<<10); n-- {
		if text[n]&0xc0 == 0x80 {
			continue
		}
		b, size := m.char(text, n)
		if size > 1 || text[n] < 0x80 {
			a, _ := m.lastChar(text[:n])
			if m.cuts(a, b, text[n]) {
				return n
			}
		}
	}
	return 0
}

// cuts says that a pre-token always ends between a character of classes a and one of classes b, whose first byte is c, without a look at anything
// else. The patterns never look back, so the text after such a place is cut as if it stood alone.
func (m *Model) cuts(a, b, c uint8) bool {
	if a&space != 0 {
		return false
	}
	if c == ' ' {
		return true
	}
	la, lb := a&letter != 0, b&letter != 0
	na, nb := a&number != 0, b&number != 0
	if m.split == O200K && (a|b)&mark != 0 {
		return false
	}
	switch {
	case la && nb, na && lb:
		return true
	case na && b&lns == 0:
		return true
	case la && b&lns == 0:
		return m.split != O200K || c != '\''
	}
	return false
}
