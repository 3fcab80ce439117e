// Package charsmap reads and applies SentencePiece's precompiled character maps.
package charsmap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// Map is SentencePiece's precompiled character map: a double array (Darts-clone) from strings to
// their replacements.
type Map struct {
	units  []uint32
	text   []byte // replacements, each ended by a NUL
	single [128]bool
}

// ErrTooLarge reports that a character map has a replacement longer than maxReplacement.
var ErrTooLarge = errors.New("character map too large")

// maxReplacement bounds replacements. The longest in use is 33 bytes.
const maxReplacement = 64

// Parse reads a map (in tokenizer.json: precompiled_charsmap, decoded from base64). It keeps no
// part of blob.
func Parse(blob []byte) (*Map, error) {
	if len(blob) < 4 {
		return nil, errors.New("character map: shorter than its header")
	}
	n := binary.LittleEndian.Uint32(blob)
	rest := blob[4:]
	if uint64(n) > uint64(len(rest)) || n%4 != 0 || n == 0 {
		return nil, fmt.Errorf("character map: the table claims %d bytes, the map has %d", n, len(blob))
	}
	c := &Map{units: make([]uint32, n/4), text: bytes.Clone(rest[n:])}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	if !utf8.Valid(c.text) {
		return nil, errors.New("character map: replacements are not UTF-8")
	}
	for to := range bytes.SplitSeq(c.text, []byte{0}) {
		if len(to) > maxReplacement {
			return nil, fmt.Errorf("%w: a replacement of %d bytes; the limit is %d", ErrTooLarge, len(to),
				maxReplacement)
		}
	}
	for b := range c.single {
		_, c.single[b] = c.Replacement([]byte{byte(b)})
	}
	return c, nil
}

func unitOffset(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }

const unitLabel = 1<<31 | 0xFF

// walk calls f for the prefixes of key that have a replacement, shortest first, until f returns
// false. A NUL ends the key.
func (c *Map) walk(key []byte, f func(length int, value uint32) (more bool)) {
	pos := unitOffset(c.units[0])
	for i, b := range key {
		if b == 0 {
			return
		}
		pos ^= uint32(b)
		if pos >= uint32(len(c.units)) {
			return
		}
		u := c.units[pos]
		if u&unitLabel != uint32(b) {
			return
		}
		pos ^= unitOffset(u)
		if pos >= uint32(len(c.units)) {
			return
		}
		if u>>8&1 != 0 && !f(i+1, c.units[pos]&^(1<<31)) {
			return
		}
	}
}

// at returns the replacement that begins at an offset.
func (c *Map) at(value uint32) ([]byte, bool) {
	if value >= uint32(len(c.text)) {
		return nil, value == uint32(len(c.text))
	}
	t := c.text[value:]
	if n := bytes.IndexByte(t, 0); n >= 0 {
		t = t[:n]
	}
	return t, true
}

// Replacement applies Hugging Face's rule: the replacement of the shortest prefix of part replaces
// all of part.
func (c *Map) Replacement(part []byte) (to []byte, ok bool) {
	c.walk(part, func(_ int, value uint32) bool {
		to, ok = c.at(value)
		return false
	})
	return to, ok
}

// Longest applies SentencePiece's rule: it returns the replacement of the longest prefix of text
// that has one, and the length of that prefix, 0 if there is none.
func (c *Map) Longest(text []byte) (to []byte, length int) {
	c.walk(text, func(n int, value uint32) bool {
		if t, ok := c.at(value); ok {
			to, length = t, n
		}
		return true
	})
	return to, length
}

// maxCluster is the size in bytes from which a grapheme cluster is replaced character by character.
const maxCluster = 6

// Append appends text as normalized by Hugging Face's Precompiled normalizer, which replaces short
// grapheme clusters as a whole.
func (c *Map) Append(dst, text []byte) []byte { return c.AppendClusters(dst, text, false) }

// AppendClusters is Append after earlier text. If joined, that text ended in a cluster which begins
// no entry of the map, and extending characters at the beginning of text belong to it.
func (c *Map) AppendClusters(dst, text []byte, joined bool) []byte {
	if joined {
		for len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			if charclass.GraphemeOf(r) != charclass.GraphemeExtend {
				break
			}
			dst = c.appendChar(dst, text[:n])
			text = text[n:]
		}
	}
	for len(text) > 0 {
		if b := text[0]; b < utf8.RuneSelf &&
			(len(text) == 1 || text[1] < utf8.RuneSelf && (b != '\r' || text[1] != '\n')) {
			if b == 0 || !c.single[b] {
				dst = append(dst, b)
			} else {
				dst = c.appendChar(dst, text[:1])
			}
			text = text[1:]
			continue
		}
		n, end := cluster(text)
		if n > 0 {
			if to, ok := c.Replacement(text[:n]); ok {
				dst = append(dst, to...)
				text = text[n:]
				continue
			}
			end = n
		}
		for i := 0; i < end; {
			_, size := utf8.DecodeRune(text[i:])
			dst = c.appendChar(dst, text[i:i+size])
			i += size
		}
		text = text[end:]
	}
	return dst
}

func (c *Map) appendChar(dst, char []byte) []byte {
	if to, ok := c.Replacement(char); ok {
		return append(dst, to...)
	}
	return append(dst, char...)
}

// Parts yields, from left to right, the parts of text that Append replaces or keeps as a whole, and
// what becomes of each.
func (c *Map) Parts(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(part, to []byte) bool) {
		for len(text) > 0 {
			n, end := cluster(text)
			if n > 0 {
				if to, ok := c.Replacement(text[:n]); ok {
					if !yield(text[:n], to) {
						return
					}
					text = text[n:]
					continue
				}
			}
			for i := 0; i < end; {
				_, size := utf8.DecodeRune(text[i:])
				part := text[i : i+size]
				to, ok := c.Replacement(part)
				if !ok {
					to = part
				}
				if !yield(part, to) {
					return
				}
				i += size
			}
			text = text[end:]
		}
	}
}

// Leading returns how many bytes of Append's result come from the first n bytes of text, which must
// be whole characters; if those are removed, it counts the bytes from the first character that is
// not. As in the original, the characters of a cluster that is replaced as a whole match those of
// the replacement one by one, and the last one takes the rest.
func (c *Map) Leading(text []byte, n int) int {
	made, pos := 0, 0
	for part, to := range c.Parts(text) {
		if pos >= n {
			if made > 0 {
				break
			}
			_, size := utf8.DecodeRune(part)
			n = pos + size
		}
		if pos+len(part) > n {
			return made + prefixOf(to, utf8.RuneCount(text[pos:n]))
		}
		made, pos = made+len(to), pos+len(part)
	}
	return made
}

// prefixOf returns the length of the first characters of text in bytes.
func prefixOf(text []byte, characters int) int {
	n := 0
	for ; characters > 0 && n < len(text); characters-- {
		_, size := utf8.DecodeRune(text[n:])
		n += size
	}
	return n
}

// cluster returns the length of the grapheme cluster at the beginning of text if it is shorter than
// maxCluster, else 0. end is the offset up to which characters certainly belong to it (all that
// extend it).
func cluster(text []byte) (short, end int) {
	if text[0] == '\r' && len(text) > 1 && text[1] == '\n' {
		return 2, 2
	}
	n := 0
	for n < len(text) { // Prepend* and the base
		r, size := utf8.DecodeRune(text[n:])
		g := charclass.GraphemeOf(r)
		if g == charclass.GraphemeControl {
			return shortN(cmp.Or(n, size))
		}
		n += size
		if g != charclass.GraphemePrepend {
			break
		}
	}
	for n < len(text) && text[n] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(text[n:])
		if charclass.GraphemeOf(r) != charclass.GraphemeExtend {
			break
		}
		n += size
	}
	return shortN(n)
}

func shortN(n int) (short, end int) {
	if n < maxCluster {
		return n, n
	}
	return 0, n
}

// BeginsWith reports whether some entry of the map begins with prefix and is longer.
func (c *Map) BeginsWith(prefix []byte) bool {
	pos := unitOffset(c.units[0])
	for _, b := range prefix {
		pos ^= uint32(b)
		if b == 0 || pos >= uint32(len(c.units)) || c.units[pos]&unitLabel != uint32(b) {
			return false
		}
		pos ^= unitOffset(c.units[pos])
	}
	for b := uint32(1); b < 256; b++ {
		if at := pos ^ b; at < uint32(len(c.units)) && c.units[at]&unitLabel == b {
			return true
		}
	}
	return false
}

// Bytes returns the memory that the map holds.
func (c *Map) Bytes() int64 { return int64(len(c.units))*4 + int64(len(c.text)) }

// HasSpaces reports whether an entry may contain a space.
func (c *Map) HasSpaces() bool {
	for _, u := range c.units {
		if u&unitLabel == ' ' {
			return true
		}
	}
	return false
}
