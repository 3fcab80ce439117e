package charclass

import (
	_ "embed"
	"encoding/binary"
	"sort"
)

// Range is the characters from First to Last.
type Range struct{ First, Last rune }

// Ranges is a set of characters: ranges in ascending order that do not touch.
type Ranges []Range

// Has reports whether r is in the set.
func (s Ranges) Has(r rune) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].Last >= r })
	return i < len(s) && s[i].First <= r
}

// gen/tables.py describes the format of tablesBin. It is part of the program, so bad input is a bug.
//
//go:embed tables.bin
var tablesBin []byte

// reader decodes a table.
type reader struct{ b []byte }

func (r *reader) uvarint() rune {
	x, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return rune(x)
}

func (r *reader) bytes(n rune) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func find(name string) (*reader, bool) {
	tables := reader{tablesBin}
	names := reader{tables.bytes(tables.uvarint())}
	for len(names.b) > 0 {
		found := names.bytes(names.uvarint())
		at, size := names.uvarint(), names.uvarint()
		if string(found) == name {
			return &reader{tables.b[at : at+size]}, true
		}
	}
	return nil, false
}

func mustFind(name string) *reader {
	r, ok := find(name)
	if !ok {
		panic("charclass: tables.bin lacks " + name)
	}
	return r
}

// Property returns the characters of a property that \p{} names in Oniguruma, in lower case.
func Property(name string) (Ranges, bool) {
	r, ok := find(name)
	if !ok {
		return nil, false
	}
	s := make(Ranges, 0, len(r.b)/2) // a range takes two bytes or a few more
	for at := rune(0); len(r.b) > 0; {
		first := at + r.uvarint()
		at = first + r.uvarint()
		s = append(s, Range{first, at})
	}
	return s, true
}

// Set is Property for names that the program itself uses.
func Set(name string) Ranges {
	s, ok := Property(name)
	if !ok {
		panic("charclass: tables.bin lacks " + name)
	}
	return s
}

// Lists returns the lists of a table of lists of characters.
func Lists(name string) (lists [][]rune) {
	for r := mustFind(name); len(r.b) > 0; {
		list := make([]rune, r.uvarint())
		for i := range list {
			list[i] = r.uvarint()
		}
		lists = append(lists, list)
	}
	return lists
}

// eachValue calls f for each range of a table of values.
func eachValue(name string, f func(x Range, value uint8)) {
	at := rune(0)
	for r := mustFind(name); len(r.b) > 0; {
		first := at + r.uvarint()
		at = first + r.uvarint()
		f(Range{first, at}, uint8(r.uvarint()))
	}
}

// stringsOf returns what characters become.
func stringsOf(name string) map[rune]string {
	r := mustFind(name)
	m := make(map[rune]string, len(r.b)/3) // an entry takes three bytes or a few more
	for c := rune(0); len(r.b) > 0; {
		c += r.uvarint()
		if x := r.uvarint(); x&1 == 0 {
			d := x >> 1
			m[c] = string(c + (d>>1 ^ -(d & 1)))
		} else {
			m[c] = string(r.bytes(x >> 1))
		}
	}
	return m
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

// builder holds the pages of a table that are not zero.
type builder[T ~uint8 | ~uint16 | ~uint32] struct {
	pages  [0x1100]*[256]T
	shared map[*[256]T]bool // may be in several places
}

func newBuilder[T ~uint8 | ~uint16 | ~uint32]() *builder[T] {
	return &builder[T]{shared: map[*[256]T]bool{}}
}

// add sets bits of all characters of a set.
func (b *builder[T]) add(bits T, s ...Range) {
	whole := map[*[256]T]*[256]T{} // what becomes of pages of which all characters are in the set
	for _, x := range s {
		for c := x.First; c <= x.Last; {
			page, n := &b.pages[c>>8], min(256-c&255, x.Last-c+1)
			old := *page
			switch {
			case n == 256 && whole[old] != nil:
				*page = whole[old]
				c += n
				continue
			case old == nil:
				*page = new([256]T)
			case n == 256 || b.shared[old]:
				own := *old
				*page = &own
			}
			if n == 256 {
				whole[old], b.shared[*page] = *page, true
			}
			part := (*page)[c&255:][:n]
			for i := range part {
				part[i] |= bits
			}
			c += n
		}
	}
}

func (b *builder[T]) build() *pages[T] {
	p := &pages[T]{data: make([][256]T, 1, 160)} // as many as large tables have
	seen := map[*[256]T]uint16{nil: 0}
	for i, page := range b.pages {
		k, ok := seen[page]
		if !ok {
			k = uint16(len(p.data))
			seen[page] = k
			p.data = append(p.data, *page)
		}
		p.index[i] = k
	}
	return p
}
