package wordpiece

import (
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/ucd"
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

// charTable maps characters to entries: pages of 256.
type charTable struct {
	index [(utf8.MaxRune + 256) >> 8]uint16
	pages [][256]uint32
	text  []byte // replacements
	norm  Normalizer
}

func (t *charTable) get(r rune) uint32 { return t.pages[t.index[uint32(r)>>8]][r&255] }

func (t *charTable) replacement(entry uint32) []byte {
	at := entry & (1<<24 - 1) >> lengthBits
	return t.text[at : at+entry&(1<<lengthBits-1)]
}

// newCharTable builds the table of characters for these settings. split includes the pre-tokenizer.
func newCharTable(norm Normalizer, split bool) *charTable {
	t := &charTable{norm: norm, pages: make([][256]uint32, 1)}
	b := ucd.BertTables()
	done := make(runeSet, (utf8.MaxRune+64)/64)
	mapped := map[string]uint32{}
	one := func(r rune) {
		if !done.has(r) {
			done.add(r)
			t.set(r, t.classify(b, r, split, mapped))
		}
	}
	for _, m := range []map[rune]string{b.Stripped, b.Lower} {
		for r := range m {
			one(r)
		}
	}
	for r := range b.Order {
		one(r)
	}
	for r := rune(0); r < utf8.RuneSelf; r++ {
		one(r)
	}
	each(b.Spaces, one)
	each(b.Walls, one)
	each(b.Punctuation, one)
	for r := rune(0x80); r <= 0x3000; r++ {
		if ucd.IsRustSpace(r) {
			one(r)
		}
	}
	if norm.StripAccents {
		t.fill(ucd.Ranges{{First: 0xAC00, Last: 0xD7A3}}, kindHangul)
	}
	if norm.HandleChineseChars {
		t.fillWhere(b.Chinese, kindAlone, done)
	}
	if norm.CleanText {
		t.fill(b.Dropped, kindDrop)
	}
	return t
}

func each(s ucd.Ranges, f func(rune)) {
	for _, x := range s {
		for r := x.First; r <= x.Last; r++ {
			f(r)
		}
	}
}

func (t *charTable) set(r rune, entry uint32) {
	i := &t.index[uint32(r)>>8]
	if *i == 0 {
		if entry == kindKeep {
			return
		}
		t.pages = append(t.pages, t.pages[0])
		*i = uint16(len(t.pages) - 1)
	}
	t.pages[*i][r&255] = entry
}

// fill gives all characters of a set the same entry; whole pages are shared.
func (t *charTable) fill(s ucd.Ranges, entry uint32) { t.fillWhere(s, entry, nil) }

// runeSet is a set of characters, a bit for each; nil is empty.
type runeSet []uint64

func (s runeSet) has(r rune) bool { return s != nil && s[r>>6]>>(r&63)&1 != 0 }

func (s runeSet) add(r rune) { s[r>>6] |= 1 << (r & 63) }

// fillWhere is fill for characters that are not in skip.
func (t *charTable) fillWhere(s ucd.Ranges, entry uint32, skip runeSet) {
	whole := uint16(0)
	for _, x := range s {
		for r := x.First; r <= x.Last; {
			if r&255 == 0 && r+255 <= x.Last && t.index[r>>8] == 0 && skip == nil {
				if whole == 0 {
					var p [256]uint32
					for i := range p {
						p[i] = entry
					}
					t.pages = append(t.pages, p)
					whole = uint16(len(t.pages) - 1)
				}
				t.index[r>>8] = whole
				r += 256
				continue
			}
			if !skip.has(r) {
				t.set(r, entry)
			}
			r++
		}
	}
}

// classify returns the entry of one character.
func (t *charTable) classify(b *ucd.Bert, r rune, split bool, mapped map[string]uint32) uint32 {
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
		if ucd.IsRustSpace(r) {
			return kindSpace
		}
	}
	return kindKeep
}

// mapping returns the entry of a character that becomes s. Equal replacements are stored once.
func (t *charTable) mapping(b *ucd.Bert, s string, mapped map[string]uint32) uint32 {
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

func lower(b *ucd.Bert, s string) string {
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
