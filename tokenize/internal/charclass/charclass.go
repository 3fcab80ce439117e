// Package charclass answers questions about characters as Hugging Face tokenizers does. Parts of
// that library follow different versions of Unicode (the Rust standard library, the regex crate,
// unicode_categories, Oniguruma, …), so gen/tables.py made every table here by asking it about each
// code point. White space alone is the same in all of them, and in unicode.IsSpace (tested).
package charclass

import (
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
