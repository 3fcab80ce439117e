package wordpiece

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// The kinds of characters for the scanner and the normalizer, in the top byte of a table entry. For
// kindMap and kindMapOrder the rest is the position and length of the replacement.
const (
	kindKeep     = iota << 24 // stays as it is, part of a word
	kindMap                   // becomes a string, part of a word
	kindDrop                  // is removed
	kindSpace                 // separates words
	kindAlone                 // is a separate word
	kindHangul                // decomposes by arithmetic
	kindOrder                 // like kindKeep, but canonical ordering may move it
	kindWall                  // is removed, but nothing moves across it
	kindMapOrder              // like kindMap, with characters that canonical ordering may move

	kindBits   = 0xFF << 24
	lengthBits = 6 // a replacement's position and length share the other 24 bits
)

// charTable maps characters to entries: pages of 256, of which the first ones, whose characters are all of
// one kind, are in several places.
type charTable struct {
	index [(utf8.MaxRune + 256) >> 8]uint16
	pages [][256]uint32
	text  []byte // replacements
	norm  Normalizer
}

// pageKinds are the kinds of the characters of the first pages.
var pageKinds = [...]uint32{kindKeep, kindHangul, kindAlone, kindDrop}

func (t *charTable) get(r rune) uint32 { return t.pages[t.index[uint32(r)>>8]][r&255] }

func (t *charTable) replacement(entry uint32) []byte {
	at := entry & (1<<24 - 1) >> lengthBits
	return t.text[at : at+entry&(1<<lengthBits-1)]
}

// newCharTable builds the table of characters for these settings. split includes the pre-tokenizer.
func newCharTable(norm Normalizer, split bool) *charTable {
	t := &charTable{norm: norm, pages: make([][256]uint32, len(pageKinds))}
	for k, kind := range pageKinds {
		for i := range t.pages[k] {
			t.pages[k][i] = kind
		}
	}
	b := charclass.BertTables()
	if norm.StripAccents {
		t.fill(charclass.Ranges{{First: 0xAC00, Last: 0xD7A3}}, 1)
	}
	if norm.HandleChineseChars {
		t.fill(b.Chinese, 2)
	}
	if norm.CleanText {
		t.fill(b.Dropped, 3)
	}
	mapped := map[string]uint32{}
	one := func(r rune) { t.set(r, t.classify(b, r, split, mapped)) }
	for _, m := range []map[rune]string{b.Stripped, b.Lower} {
		for r := range m {
			one(r)
		}
	}
	for r := range b.Order {
		one(r)
	}
	ascii := charclass.Range{First: 0, Last: utf8.RuneSelf - 1}
	for _, x := range slices.Concat(charclass.Ranges{ascii}, b.Spaces, b.Walls, b.Punctuation, charclass.Set("space")) {
		for r := x.First; r <= x.Last; r++ {
			one(r)
		}
	}
	return t
}

func (t *charTable) set(r rune, entry uint32) {
	i := &t.index[uint32(r)>>8]
	if int(*i) < len(pageKinds) {
		if entry == pageKinds[*i] {
			return
		}
		t.pages = append(t.pages, t.pages[*i])
		*i = uint16(len(t.pages) - 1)
	}
	t.pages[*i][r&255] = entry
}

// fill gives all characters of a set the kind of one of the first pages.
func (t *charTable) fill(s charclass.Ranges, page uint16) {
	for _, x := range s {
		for r := x.First; r <= x.Last; r++ {
			if r&255 == 0 && r+255 <= x.Last {
				t.index[r>>8] = page
				r += 255
			} else {
				t.set(r, pageKinds[page])
			}
		}
	}
}

// classify returns the entry of one character.
func (t *charTable) classify(b *charclass.Bert, r rune, split bool, mapped map[string]uint32) uint32 {
	n := &t.norm
	if n.CleanText {
		if b.Dropped.Has(r) {
			return kindDrop
		}
		if b.Spaces.Has(r) || r == ' ' {
			return kindSpace
		}
	}
	if n.HandleChineseChars && b.Chinese.Has(r) && !n.StripAccents {
		return kindAlone
	}
	s := string(r)
	if n.StripAccents {
		if x, ok := b.Stripped[r]; ok {
			s = x
		}
	}
	if n.Lowercase {
		s = lower(b, s)
	}
	if s == "" {
		if b.Walls.Has(r) {
			return kindWall
		}
		return kindDrop
	}
	if s != string(r) {
		if n.HandleChineseChars && b.Chinese.Has(r) { // compatibility characters decompose to Chinese characters
			s = " " + s + " "
		}
		return t.mapping(b, s, mapped)
	}
	if n.HandleChineseChars && b.Chinese.Has(r) {
		return kindAlone
	}
	if n.StripAccents && b.Order[r] != 0 {
		return kindOrder
	}
	if split {
		if b.Punctuation.Has(r) {
			return kindAlone
		}
		if unicode.IsSpace(r) {
			return kindSpace
		}
	}
	return kindKeep
}

// mapping returns the entry of a character that becomes s. Equal replacements are stored once.
func (t *charTable) mapping(b *charclass.Bert, s string, mapped map[string]uint32) uint32 {
	if e, ok := mapped[s]; ok {
		return e
	}
	kind := uint32(kindMap)
	for _, x := range s {
		if t.norm.StripAccents && b.Order[x] != 0 {
			kind = kindMapOrder
		}
	}
	e := kind | uint32(len(t.text))<<lengthBits | uint32(len(s))
	mapped[s] = e
	t.text = append(t.text, s...)
	return e
}

func lower(b *charclass.Bert, s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if x, ok := b.Lower[r]; ok {
			out = append(out, x...)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}
