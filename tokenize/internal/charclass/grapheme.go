package charclass

import "sync"

// Grapheme is the class of a character for extended grapheme clusters of less than six bytes, which
// Hugging Face's Precompiled normalizer treats as one. It splits longer clusters (Hangul, flags,
// emoji sequences), so their rules are not needed.
type Grapheme uint8

const (
	GraphemeOther   Grapheme = iota
	GraphemeExtend           // joins the character before it: Extend, SpacingMark, ZWJ
	GraphemeControl          // nothing joins it, except CR and LF each other
	GraphemePrepend          // joins the character after it
)

// GraphemeOf returns the class of r.
func GraphemeOf(r rune) Grapheme {
	if r < 0x300 { // nothing extends, nothing prepends
		if r < 0x20 || r >= 0x7F && r < 0xA0 || r == 0xAD {
			return GraphemeControl
		}
		return GraphemeOther
	}
	return graphemes().at(r)
}

var graphemes = sync.OnceValue(func() *pages[Grapheme] {
	b := newBuilder[Grapheme]()
	b.add(GraphemeExtend, Set(" extends")...)
	b.add(GraphemeControl, Set(" controls")...)
	b.add(GraphemePrepend, Set(" prepends")...)
	return b.build()
})
