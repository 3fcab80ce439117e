package filter

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// Words are hashed by FNV-1a, over characters.
const (
	firstWord  = 0xcbf29ce484222325
	wordFactor = 0x100000001b3
)

// wordBytes maps ASCII characters of words to lower case, and all others to 0.
var wordBytes = func() (table [256]byte) {
	for c := range byte(utf8.RuneSelf) {
		switch low := c | 0x20; {
		case '0' <= c && c <= '9':
			table[c] = c
		case 'a' <= low && low <= 'z':
			table[c] = low
		}
	}
	return table
}()

// read takes the words of a text.
func (k *Sketcher) read(text []byte) {
	for i := 0; i < len(text); {
		if hasWide && !k.open && text[i] < utf8.RuneSelf {
			if n := k.readWide(text[i:]); n > 0 {
				i += n
				continue
			}
		}
		if wordBytes[text[i]] != 0 {
			if !k.open {
				k.word, k.open = firstWord, true
			}
			word := k.word
			for i < len(text) {
				c := wordBytes[text[i]]
				if c == 0 {
					break
				}
				word = (word ^ uint64(c)) * wordFactor
				i++
			}
			k.word = word
			continue
		}
		if text[i] < utf8.RuneSelf {
			i++
			k.end()
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		k.character(r)
	}
	k.end()
}

// character takes a character beyond ASCII.
func (k *Sketcher) character(r rune) {
	switch {
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r):
		k.add(r)
	case !unicode.IsLetter(r) && !unicode.IsDigit(r):
		k.end()
	case unspaced(r):
		k.end()
		k.add(r)
		k.end()
	default:
		k.add(unicode.ToLower(r))
	}
}

// unspaced reports whether a letter belongs to a script that is written without spaces between
// words.
func unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
}

func (k *Sketcher) add(r rune) {
	if !k.open {
		k.word, k.open = firstWord, true
	}
	k.word = (k.word ^ uint64(r)) * wordFactor
}

func (k *Sketcher) end() {
	if k.open {
		k.open = false
		k.take(k.word)
	}
}

const (
	windowBytes = 64
	kernelBytes = 16 // bytes of a word that the kernel hashes
	batchWords  = 64
)

// A batch is words whose hashes are to be made together: of each, the hash so far, and up to kernelBytes of ASCII that
// are yet to be taken in, in lower case.
type batch struct {
	begun, low, high, size [batchWords]uint64
}

// readWide takes words of ASCII, which it finds 64 bytes at a time, and returns how much of the text they and
// what is between them are. It stops before a word that goes on beyond ASCII or is as long as a window.
func (k *Sketcher) readWide(text []byte) (n int) {
	for n+windowBytes+kernelBytes <= len(text) {
		m := k.window((*[windowBytes + kernelBytes]byte)(text[n:]))
		if n += m; m < windowBytes/2 {
			return n // the next word may be one of those
		}
	}
	if rest := text[n:]; len(rest) < windowBytes {
		var last [windowBytes + kernelBytes]byte // what follows the text is in no word
		copy(last[:], rest)
		return min(len(text), n+k.window(&last))
	}
	return n
}

// window takes the words that end in the first 64 bytes of text, before the first byte beyond ASCII, and returns
// where the next one begins.
func (k *Sketcher) window(text *[windowBytes + kernelBytes]byte) (n int) {
	word, high := classify((*[windowBytes]byte)(text[:]))
	end := bits.TrailingZeros64(high) // 64 if there is none
	begins, ends := word&^(word<<1), word<<1&^word
	if end < windowBytes {
		ends &= 1<<end - 1
	}
	for ; ends != 0; begins, ends = begins&(begins-1), ends&(ends-1) {
		from, to := bits.TrailingZeros64(begins)&(windowBytes-1), bits.TrailingZeros64(ends)
		i, b := k.held, &k.batch
		if size := to - from; size <= kernelBytes {
			// Lower case is upper case with one more bit, which digits have too.
			const lower = 0x2020202020202020
			b.begun[i], b.size[i] = firstWord, uint64(size)
			b.low[i] = binary.LittleEndian.Uint64(text[from:]) | lower
			b.high[i] = binary.LittleEndian.Uint64(text[from+8:]) | lower
		} else {
			b.begun[i], b.size[i] = hashASCII(firstWord, text[from:to]), 0
		}
		k.hold()
	}
	return min(bits.TrailingZeros64(begins), end)
}

func hashASCII(h uint64, word []byte) uint64 {
	for _, c := range word {
		h = (h ^ uint64(wordBytes[c])) * wordFactor
	}
	return h
}

func (k *Sketcher) take(word uint64) {
	k.batch.begun[k.held], k.batch.size[k.held] = word, 0
	k.hold()
}

// hold counts a word. The shingles of many are made together.
func (k *Sketcher) hold() {
	k.n++
	if k.held++; k.held == batchWords {
		k.shingles()
	}
}

// shingles takes the shingles that end with the words in hand.
func (k *Sketcher) shingles() {
	if k.held == 0 {
		return
	}
	const before = shingleWords - 1
	k.batch.hashes((*[batchWords]uint64)(k.words[before:]), k.held)
	shinglesOf(&k.words, &k.x, &k.y, k.held)
	for i := max(0, before-(k.n-k.held)); i < k.held; i++ {
		k.shingle(k.x[i], k.y[i])
	}
	copy(k.words[:before], k.words[k.held:])
	k.held = 0
}

// The plain twins of the kernels.

func classifyGo(text *[windowBytes]byte) (word, high uint64) {
	for i, c := range text {
		if wordBytes[c] != 0 {
			word |= 1 << i
		}
		high |= uint64(c>>7) << i
	}
	return word, high
}

// hashesGo makes the hashes of n words.
func (b *batch) hashesGo(words *[batchWords]uint64, n int) {
	for i := range n {
		hash, bytes := b.begun[i], [2]uint64{b.low[i], b.high[i]}
		for at := range b.size[i] {
			hash = (hash ^ bytes[at/8]>>(at%8*8)&0xff) * wordFactor
		}
		words[i] = mix(hash)
	}
}

// shinglesGo makes the two hashes of n shingles, of which each begins one word after the one before it.
func shinglesGo(words *[shingleWords - 1 + batchWords]uint64, x, y *[batchWords]uint64, n int) {
	for i := range n {
		w := words[i : i+shingleWords : i+shingleWords]
		h := w[4] + shingleFactor*(w[3]+shingleFactor*(w[2]+shingleFactor*(w[1]+shingleFactor*w[0])))
		x[i], y[i] = mix(h^roundSeed1), mix(h^roundSeed2)
	}
}

// fold makes the bytes of a sketch of its values.
func foldGo(v *values, sketch *[sketchBytes]byte) {
	for i, least := range v {
		sketch[i] = byte(mix(uint64(least)))
	}
}
