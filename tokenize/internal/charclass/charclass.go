// Package charclass answers questions about characters as Hugging Face tokenizers does. Parts of
// that library follow different versions of Unicode (the Rust standard library, the regex crate,
// unicode_categories, …), so gen/tables.py made every table here by asking it about each code
// point.
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

type runeRange struct{ lo, hi rune }

// lowerRun says that lo, lo+step, ... hi become lower case by adding delta.
type lowerRun struct{ lo, hi, delta, step rune }

type scriptRun struct {
	lo, hi rune
	class  uint8
}

// pages is a two-level table: pages of 256 characters, equal ones shared.
type pages[T comparable] struct {
	index [0x1100]uint16
	data  [][256]T
}

func (p *pages[T]) at(r rune) T {
	if uint32(r) > 0x10FFFF {
		var zero T
		return zero
	}
	return p.data[p.index[r>>8]][r&255]
}

// build fills a table from a function that calls set for each run of characters.
func build[T comparable](fill func(set func(lo, hi rune, v T))) *pages[T] {
	flat := make([]T, 0x110000)
	fill(func(lo, hi rune, v T) {
		for r := lo; r <= hi; r++ {
			flat[r] = v
		}
	})
	return compress(flat)
}

func compress[T comparable](flat []T) *pages[T] {
	p := new(pages[T])
	seen := map[[256]T]uint16{}
	for i := range p.index {
		page := [256]T(flat[i*256:])
		k, ok := seen[page]
		if !ok {
			k = uint16(len(p.data))
			seen[page] = k
			p.data = append(p.data, page)
		}
		p.index[i] = k
	}
	return p
}

var classes = sync.OnceValue(func() *pages[Class] {
	flat := make([]Class, 0x110000)
	for _, t := range []struct {
		class  Class
		ranges []runeRange
	}{
		{Whitespace, whitespaceRanges}, {Numeric, numericRanges}, {Punctuation, punctuationRanges}, {Word, wordRanges},
		{CombiningMark, combiningMarkRanges}, {Nonspacing, nonspacingMarkRanges}, {BertDropped, bertDroppedRanges},
		{BertSpace, bertSpaceRanges}, {BertChinese, bertChineseRanges},
	} {
		for _, r := range t.ranges {
			for c := r.lo; c <= r.hi; c++ {
				flat[c] |= t.class
			}
		}
	}
	return compress(flat)
})

var scripts = sync.OnceValue(func() *pages[uint8] {
	return build(func(set func(lo, hi rune, v uint8)) {
		for _, r := range scriptRuns {
			set(r.lo, r.hi, r.class)
		}
	})
})

var lowers = sync.OnceValue(func() *pages[rune] {
	return build(func(set func(lo, hi rune, v rune)) {
		for _, r := range lowerDeltas {
			for c := r.lo; c <= r.hi; c += r.step {
				set(c, c, r.delta)
			}
		}
	})
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
	if s, ok := lowerSpecial[r]; ok {
		return append(dst, s...)
	}
	return utf8.AppendRune(dst, r+lowers().at(r))
}
