// Package charclass answers questions about characters as Hugging Face tokenizers does. Parts of
// that library follow different versions of Unicode (the Rust standard library, the regex crate,
// unicode_categories, Oniguruma, …), so gen/tables.py made every table here by asking it about each
// code point. White space alone is the same in all of them, and in unicode.IsSpace (tested).
package charclass

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// Class is a set of properties of a character.
type Class uint16

const (
	Whitespace    Class = 1 << iota // Rust's char::is_whitespace
	Numeric                         // Rust's char::is_numeric
	Punctuation                     // punctuation to the Punctuation and Bert pre-tokenizers
	Word                            // \w of the regex crate
	CombiningMark                   // removed by StripAccents
	Nonspacing                      // removed by BertNormalizer's strip_accents
	BertDropped                     // removed by BertNormalizer's clean_text
	BertSpace                       // made a space by BertNormalizer's clean_text
	BertChinese                     // set apart by BertNormalizer's handle_chinese_chars
)

var classes = sync.OnceValue(func() *pages[Class] {
	b := newBuilder[Class]()
	for i, name := range []string{"space", " numeric", " punctuation", " word", " accents", " bert marks", " bert dropped",
		" bert spaces", " bert chinese"} {
		b.add(1<<i, Set(name)...)
	}
	return b.build()
})

var scripts = sync.OnceValue(func() *pages[uint8] {
	b := newBuilder[uint8]()
	eachValue(" scripts", func(x Range, class uint8) { b.add(class, x) })
	return b.build()
})

// lowerCase maps characters to the distance of their lower case, or to several, which lie in special.
type lowerCase struct {
	distance *pages[uint32]
	special  map[rune]string
}

const severalChars = 1 << 31

var lowers = sync.OnceValue(func() lowerCase {
	b := newBuilder[uint32]()
	special := map[rune]string{}
	for c, s := range stringsOf(lowerTable) {
		if l, n := utf8.DecodeRuneInString(s); n == len(s) {
			b.add(uint32(l-c), Range{c, c})
		} else {
			b.add(severalChars, Range{c, c})
			special[c] = s
		}
	}
	return lowerCase{b.build(), special}
})

// Table gives fast access to the classes.
type Table struct{ p *pages[Class] }

// Classes returns the table. The first call builds it.
func Classes() Table { return Table{classes()} }

// Is reports whether r has any of the properties.
func (t Table) Is(r rune, c Class) bool { return t.p.at(r)&c != 0 }

// Is reports whether r has any of the properties.
func Is(r rune, c Class) bool { return classes().at(r)&c != 0 }

// Script returns the number of the script that the UnicodeScripts pre-tokenizer assigns to r, 0 for
// characters that fit any script.
func Script(r rune) uint8 { return scripts().at(r) }

// AppendLower appends Rust's char::to_lowercase of r.
func AppendLower(dst []byte, r rune) []byte {
	if r < 0x80 {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	l := lowers()
	if d := l.distance.at(r); d != severalChars {
		return utf8.AppendRune(dst, r+rune(d))
	}
	return append(dst, l.special[r]...)
}

// Nmt returns what Hugging Face's Nmt normalizer, SentencePiece's clean-up for translation, makes
// of a character: -1 if it is removed. It removes control characters and turns unusual spaces into
// spaces.
func Nmt(r rune) rune {
	switch {
	case r >= 0x20 && r < 0x7F:
		return r
	case r >= 1 && r <= 8, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return -1
	case r == 9, r == 0x0A, r == 0x0C, r == 0x0D, r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029,
		r == 0x2581, r == 0xFEFF, r == 0xFFFD:
		return ' '
	}
	return r
}

// AppendNmt appends what Nmt makes of a character.
func AppendNmt(dst []byte, r rune) []byte {
	if r = Nmt(r); r < 0 {
		return dst
	}
	return utf8.AppendRune(dst, r)
}

// AppendNmtText appends what Nmt makes of a text.
func AppendNmtText(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		dst = AppendNmt(dst, r)
		text = text[n:]
	}
	return dst
}

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

// Class bits of a code point, as Oniguruma inside Hugging Face's tokenizers sees them. A code point
// without the low three bits is what the patterns call "other". Letters that are neither ClassUpper
// nor ClassLower are \p{Lm} or \p{Lo}.
const (
	ClassLetter = 1 << iota // \p{L}
	ClassNumber             // \p{N}
	ClassSpace              // \s
	ClassMark               // \p{M}
	ClassUpper              // \p{Lu} or \p{Lt}
	ClassLower              // \p{Ll}
)

// AppendOnig appends a table of class bits: the numbers of the pages of 128 code points, two bytes each, low
// byte first, and the pages.
func AppendOnig(dst []byte) []byte {
	b := newBuilder[uint8]()
	for i, names := range [][]string{{"l"}, {"n"}, {"space"}, {"m"}, {"lu", "lt"}, {"ll"}} {
		for _, name := range names {
			b.add(1<<i, Set(name)...)
		}
	}
	p := b.build()
	dst = slices.Grow(dst, 4*len(p.index)+256*len(p.data))
	for _, k := range p.index {
		dst = append(dst, byte(2*k), byte(2*k>>8), byte(2*k+1), byte((2*k+1)>>8))
	}
	for i := range p.data {
		dst = append(dst, p.data[i][:]...)
	}
	return dst
}
