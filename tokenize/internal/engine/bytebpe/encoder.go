package bytebpe

import (
	"bytes"
	"math/bits"
)

// DefaultCacheBytes is the memory of an Encoder made with zero cache bytes.
const DefaultCacheBytes = 8 << 20

const batchWords = 64

// Encoder turns text into ids. It belongs to one goroutine; its memory is fixed when it is made.
type Encoder struct {
	m *Model
	cache
	merger

	buf     [windowBytes + padBytes]byte
	blocks  [1 + numBlocks + 2]block // the first is spare
	start   [numBlocks + 1]uint64
	inside  [numBlocks + 1]uint64 // which of these cutInside added
	pos     positions
	probes  [2]probes
	values  [windowBytes + 8]uint64         // the cache's for the window's words
	missed  [windowBytes + 8]uint16         // indexes of words that are not cached
	ids     [windowBytes + ringSlack]uint32 // used if the caller's buffer is too small for a window's worst case
	scanned int                             // bytes scanned so far; tests compare it with the bytes encoded
	touched uint64                          // keeps the compiler from dropping loads that only touch lines
	kept    []byte                          // a word without the bytes that have no token
	hashes  [windowBytes / 16]uint64        // the window's long words'
	joint   [numBlocks + 2]uint64           // where the words of texts that share the window begin
	ends    [maxTexts]uint16                // the numbers of the words after each of them
	sorted  [windowBytes + 8]uint16         // missed words by length
	wide    wideBatch

	coldMisses int    // until Warm
	mapped     bool   // the lines of the cache are
	looked     uint64 // lengths of words that resolve looks up; all until Warm
}

// NewEncoder returns an encoder of at most cacheBytes of memory (see EncoderBytes). 0 means
// DefaultCacheBytes; less than 512 KiB is raised to 512 KiB. The cache is empty until Warm.
func (m *Model) NewEncoder(cacheBytes int) *Encoder {
	e := &Encoder{m: m, coldMisses: coldMisses, looked: anyLength}
	e.merger.m = m
	e.merger.memo = &e.cache
	e.cache.init(layoutOf(cacheSize(cacheBytes)))
	e.heap.reserve(keptSymbols)
	return e
}

const (
	// coldMisses is how many words an encoder misses before it calls Warm, which takes as long as some
	// 50,000 misses: little text never pays for the vocabulary.
	coldMisses = 8 << 10
	// coldLines is how many words it misses before it maps the lines of its cache. A miss reads a line
	// before it writes one, and a page that was read first costs two faults, the second of which
	// interrupts every other core that works for the process.
	coldLines = 64
)

// Warm puts the vocabulary into the cache and touches the encoder's memory, so that encoding meets
// no page faults. The encoder does so by itself once it has missed coldMisses words.
func (e *Encoder) Warm() {
	if e.coldMisses <= 0 {
		return
	}
	empty := e.coldMisses == coldMisses
	e.coldMisses = 0
	if hasMergeWide() { // else a look-up costs less than a merge
		e.looked = e.m.unmerged()
	}
	e.touch()
	e.seed(empty)
}

// encoderFixed is an upper bound of an Encoder's memory besides the cache: its own fields and the
// scratch for long words.
const encoderFixed = 192 << 10

func cacheSize(cacheBytes int) int {
	if cacheBytes <= 0 {
		cacheBytes = DefaultCacheBytes
	}
	return max(cacheBytes-encoderFixed, minCache)
}

// EncoderBytes returns the memory of an encoder made with the same argument.
func (m *Model) EncoderBytes(cacheBytes int) int64 {
	return layoutOf(cacheSize(cacheBytes)).bytes() + encoderFixed
}

// mapLines maps the lines of the cache once the encoder has missed more than coldLines words.
func (e *Encoder) mapLines(misses int) {
	if !e.mapped && coldMisses-e.coldMisses+misses > coldLines {
		e.mapped = true
		populate(e.lines)
	}
}

// touch writes to all of the encoder's memory that may not have been used yet.
func (e *Encoder) touch() {
	h := &e.heap
	for _, s := range [][]uint32{h.sym, h.next, h.prev, h.rank, h.ids, h.at} {
		clear(s)
	}
	clear(h.heap[:cap(h.heap)])
	e.cache.touch()
}

// seed puts the vocabulary into the cache, low ids last: they are the frequent ones, and the newest
// entry is first in its line. empty says that no text has put words there.
func (e *Encoder) seed(empty bool) {
	room := len(e.lines) / 2 // more entries would only push each other out
	set := e.m.seeds()
	limit := uint32(0)
	for id := range uint32(e.m.vocab.Len()) {
		if set[id>>6]>>(id&63)&1 != 0 {
			limit = id + 1
			if room--; room == 0 {
				break
			}
		}
	}
	var probes [seedBatch]probe
	var ids [seedBatch]uint32
	for id := limit; id > 0; {
		n := 0
		for touched := uint64(0); id > 0 && n < seedBatch; e.touched = touched {
			if id--; set[id>>6]>>(id&63)&1 == 0 {
				continue
			}
			text, _ := e.m.vocab.Token(id)
			ids[n], probes[n] = id, e.probeOf(text)
			touched += e.lines[probes[n].line/8]
			n++
		}
		for i := range probes[:n] {
			if p := &probes[i]; empty || e.find(p) == nil {
				e.insert(p, e.value(ids[i:i+1]))
			}
		}
	}
}

// seedBatch is how many lines are touched together when the cache is seeded: their cache misses overlap.
const seedBatch = 16

// Append appends the ids of a segment: the text between added tokens. A segment may come in pieces,
// cut where SafeCut says; first and last report whether this piece begins and ends it. Bytes that are
// not UTF-8 count as characters without a class.
func (e *Encoder) Append(dst []uint32, segment []byte, first, last bool) []uint32 {
	if e.m.split == None {
		if len(segment) == 0 {
			return dst
		}
		return e.appendWord(dst, segment)
	}
	for s := segment; len(s) > 0; {
		n := e.fill(s)
		words, nul := e.scan(n)
		end := n
		if n < len(s) {
			words = e.settled(words, n)
			if words == 0 {
				end = e.m.tokenEnd(s, 0)
				e.scanned += end
				dst = e.appendWord(dst, s[:end])
				s = s[end:]
				continue
			}
			end = int(e.pos[words])
		}
		if cap(dst)-len(dst) >= end+ringSlack {
			dst = e.appendWords(dst, words, nul)
		} else {
			dst = append(dst, e.appendWords(e.ids[:0], words, nul)...)
		}
		s = s[end:]
	}
	return dst
}

// fill copies whole characters from the beginning of a text to the buffer and returns the number of
// bytes.
func (e *Encoder) fill(s []byte) int {
	n := min(len(s), windowBytes)
	e.scanned += n
	for back := n - 3; n < len(s) && n > back && s[n]&0xc0 == 0x80; n-- {
		// A window ends between characters.
	}
	copy(e.buf[:], s[:n])
	copy(e.buf[n:], blanks)
	return n
}

var blanks = bytes.Repeat([]byte{' '}, padBytes)

// scan finds the pre-tokens of the first n bytes of the buffer: pos[0..words]. nul reports whether
// one of them may hold a zero byte.
func (e *Encoder) scan(n int) (words int, nul bool) {
	nul = e.bounds(e.buf[:], n)
	return flatten(e.start[:n/blockBytes+1], n, &e.pos), nul
}

// bounds finds the beginnings of the pre-tokens of the first n bytes of a part of the buffer: start.
func (e *Encoder) bounds(buf []byte, n int) (nul bool) {
	count := n/blockBytes + 1
	blocks := e.blocks[1 : count+2]
	high, zero := classify(buf, blocks)
	if high != 0 {
		e.m.classifyHigh(buf, e.blocks[:count+2], n)
	}
	switch e.m.split {
	case GPT2:
		boundsGPT2(buf, blocks, e.start[:count])
	default:
		if !boundsCL100K(buf, blocks, e.start[:count], e.m.split) {
			e.boundsPlain(buf[:n])
		}
	}
	if high != 0 {
		e.m.cutInside(buf, blocks, e.start[:count], e.inside[:count])
	} else {
		clear(e.inside[:count])
	}
	return zero != 0
}

// boundsPlain finds the boundaries with the plain scanner.
func (e *Encoder) boundsPlain(text []byte) {
	n := len(text)
	clear(e.start[:n/blockBytes+1])
	for i := 0; i < n; {
		e.start[i/blockBytes] |= 1 << (i % blockBytes)
		i = e.m.tokenEnd(text, i)
	}
	e.start[n/blockBytes] |= 1 << (n % blockBytes)
}

// settled returns how many of the window's first words do not change, whatever follows the n bytes.
// A boundary inside white space depends on what follows it, one at the end on the rest of its
// character or contraction.
func (e *Encoder) settled(words, n int) int {
	for ; words > 0; words-- {
		p := int(e.pos[words])
		if p > n-16 || e.inside[p/blockBytes]>>(p%blockBytes)&1 != 0 {
			continue
		}
		a := e.m.lastChar(e.buf[:p])
		b, _ := e.m.char(e.buf[:n], p)
		if a&b&space != 0 {
			continue
		}
		if e.m.split == O200K && (a&(letter|mark) != 0 && b&letter != 0) && a&lower == 0 &&
			e.m.run(e.buf[:n], p, upper, upper) > n-16 {
			continue
		}
		return words
	}
	return 0
}

// lastChar returns the classes of the last character of s.
func (m *Model) lastChar(s []byte) uint8 {
	for n := 1; n <= 4 && n <= len(s); n++ {
		if k, size := m.char(s, len(s)-n); size == n && (n > 1 || s[len(s)-1] < 0x80) {
			return k
		}
	}
	return 0
}

// appendWords appends the ids of the words in the window; dst has room for all of them and
// ringSlack more. nul reports whether some may hold a zero byte.
func (e *Encoder) appendWords(dst []uint32, words int, nul bool) []uint32 {
	e.look(words, nul)
	return e.appendValues(dst, 0, words)
}

// look sets the values of the words in the window.
func (e *Encoder) look(words int, nul bool) {
	misses := 0
	if words > 0 {
		e.prepare(0, min(batchWords, words))
	}
	for w := 0; w < words; w += batchWords {
		if next := w + batchWords; next < words {
			e.prepare(next, min(batchWords, words-next))
		}
		misses = e.match(w, min(batchWords, words-w), misses)
	}
	if nul {
		misses = e.markZeros(words, misses)
	}
	if misses > 0 {
		e.resolve(e.missed[:misses])
	}
}

// batchFrom returns the probes of the batch of words that begins with this one. Two batches take turns: one is matched
// while the other's lines arrive.
func (e *Encoder) batchFrom(first int) *probes { return &e.probes[first/batchWords%2] }

// appendValues appends the ids of some words, of which look has set the values.
func (e *Encoder) appendValues(dst []uint32, w, end int) []uint32 {
	for ; w < end; w++ {
		if dst, w = e.emit(dst, w, end); w < end {
			dst = e.appendStopped(dst, w)
		}
	}
	return dst
}

// markZeros marks words with a zero byte as missed, since their keys are ambiguous: they are
// resolved each time. It returns the number of words missed.
func (e *Encoder) markZeros(words, misses int) int {
	w := 0
	for k := range numBlocks + 1 {
		for zeros := e.blocks[1+k].nul; zeros != 0; zeros &= zeros - 1 {
			p := k*blockBytes + bits.TrailingZeros64(zeros)
			if p >= int(e.pos[words]) {
				break
			}
			for int(e.pos[w+1]) <= p {
				w++
			}
			e.values[w] = zeroMark
		}
	}
	left := 0
	for _, w := range e.missed[:misses] {
		if e.values[w] != zeroMark {
			e.missed[left] = w
			left++
		}
	}
	for w, v := range e.values[:words] {
		if v == zeroMark {
			e.missed[left] = uint16(w)
			left++
		}
	}
	return left
}

// appendStopped appends the ids of a word at which emit stopped: one of more than maxLong bytes, or
// one whose spilled ids have left the ring.
func (e *Encoder) appendStopped(dst []uint32, w int) []uint32 {
	word := e.buf[e.pos[w]:e.pos[w+1]]
	base := len(dst)
	dst = e.appendUncached(dst, word)
	switch {
	case len(word) > maxLong:
	case len(word) > 16:
		e.keep(w, hashBytes(word), e.value(dst[base:]))
	case bytes.IndexByte(word, 0) < 0:
		e.keep(w, 0, e.value(dst[base:]))
	}
	return dst
}
