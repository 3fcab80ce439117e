package regex

import (
	"cmp"
	"slices"
	"sort"
)

const maxRune = 0x10FFFF

type runeRange struct{ lo, hi rune }

// runeSet is a set of characters as ranges, sorted and disjoint once normalized.
type runeSet []runeRange

func (s runeSet) normalize() runeSet {
	slices.SortFunc(s, func(a, b runeRange) int { return cmp.Compare(a.lo, b.lo) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func (s runeSet) negate() runeSet {
	var out runeSet
	next := rune(0)
	for _, r := range s {
		if r.lo > next {
			out = append(out, runeRange{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= maxRune {
		out = append(out, runeRange{next, maxRune})
	}
	return out
}

func union(a, b runeSet) runeSet {
	return append(slices.Clone(a), b...).normalize()
}

func intersect(a, b runeSet) runeSet {
	var out runeSet
	for i, j := 0, 0; i < len(a) && j < len(b); {
		lo, hi := max(a[i].lo, b[j].lo), min(a[i].hi, b[j].hi)
		if lo <= hi {
			out = append(out, runeRange{lo, hi})
		}
		if a[i].hi < b[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func (s runeSet) has(c rune) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].hi >= c })
	return i < len(s) && s[i].lo <= c
}

// fold adds to s every character that equals one of s under (?i).
func (s runeSet) fold() runeSet {
	out := slices.Clone(s)
	for _, class := range foldClasses() {
		if slices.ContainsFunc(class, s.has) {
			for _, d := range class {
				out = append(out, runeRange{d, d})
			}
		}
	}
	return out.normalize()
}

// charSet is a runeSet in a form for matching: a bitmap for ASCII, and pages of 256 bits for the
// rest.
type charSet struct {
	ascii [2]uint64
	few   runeSet // the ranges above ASCII, if there are at most fewRanges
	index []uint16
	pages [][4]uint64
}

const fewRanges = 3

func newCharSet(s runeSet) *charSet {
	cs := new(charSet)
	for c := rune(0); c < 128; c++ {
		if s.has(c) {
			cs.ascii[c>>6] |= 1 << (c & 63)
		}
	}
	high := intersect(s, runeSet{{128, maxRune}})
	if len(high) <= fewRanges {
		cs.few = high
		return cs
	}
	cs.index = make([]uint16, (maxRune+1)>>8)
	cs.pages = make([][4]uint64, 2, 64)
	cs.pages[1] = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	for _, r := range high {
		for c := r.lo; c <= r.hi; {
			page := c >> 8
			last := min(r.hi, page<<8|255)
			if c&255 == 0 && last&255 == 255 {
				cs.index[page] = 1
				c = last + 1
				continue
			}
			if cs.index[page] == 0 {
				cs.index[page] = uint16(len(cs.pages))
				cs.pages = append(cs.pages, [4]uint64{})
			}
			for bits := &cs.pages[cs.index[page]]; c <= last; {
				end := min(last, c|63)
				bits[c>>6&3] |= ^uint64(0) >> (63 - (end - c)) << (c & 63)
				c = end + 1
			}
		}
	}
	return cs
}

// bytes estimates the memory of the set.
func (cs *charSet) bytes() int { return 120 + 8*len(cs.few) + 2*len(cs.index) + 32*cap(cs.pages) }

func (cs *charSet) has(c rune) bool {
	if uint32(c) < 128 {
		return cs.ascii[c>>6]>>(c&63)&1 != 0
	}
	if cs.index == nil {
		for _, r := range cs.few {
			if r.lo <= c && c <= r.hi {
				return true
			}
		}
		return false
	}
	return cs.pages[cs.index[c>>8]][c>>6&3]>>(c&63)&1 != 0
}
