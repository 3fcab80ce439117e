package ucd

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
	t := graphemeTables()
	if p := t.index[uint32(r)>>8&0x1FFF]; p != 0 {
		return t.pages[p][r&255]
	}
	return GraphemeOther
}

type graphemePages struct {
	index [0x2000]uint8
	pages [][256]Grapheme
}

var graphemeTables = sync.OnceValue(func() *graphemePages {
	t := &graphemePages{pages: make([][256]Grapheme, 1)}
	shared := map[[256]Grapheme]uint8{{}: 0}
	var all [0x110000 >> 8]*[256]Grapheme
	fill := func(s Ranges, g Grapheme) {
		for _, x := range s {
			for c := x.First; c <= x.Last; c++ {
				p := &all[c>>8]
				if *p == nil {
					*p = new([256]Grapheme)
				}
				(*p)[c&255] = g
			}
		}
	}
	fill(readRanges(graphemeExtends), GraphemeExtend)
	fill(readRanges(graphemeControls), GraphemeControl)
	fill(readRanges(graphemePrepends), GraphemePrepend)
	for i, p := range all {
		if p == nil {
			continue
		}
		k, ok := shared[*p]
		if !ok {
			k = uint8(len(t.pages))
			shared[*p] = k
			t.pages = append(t.pages, *p)
		}
		t.index[i] = k
	}
	return t
})
