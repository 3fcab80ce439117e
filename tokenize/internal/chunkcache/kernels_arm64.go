//go:build !purego

package chunkcache

import "unsafe"

//go:noescape
func keysARM64(text *byte, spans *Span, n int, rules *keyRule, recs *record, lines *line)

//go:noescape
func probeNEON(recs *record, i, n int, lines *line, dst *uint32, spill *uint16, size, head uint32) (next, written int)

//go:noescape
func classifyNEON(text *byte, t *Tables, words int, cut, gap, non *uint64)

func (c *Cache) keys(text *byte, n int, rules *[maxInline + 2]keyRule) {
	keysARM64(text, &c.spans[0], n, &rules[0], &c.recs[0], &c.lines[0])
}

func (c *Cache) probe(dst []uint32, i, n int) (int, []uint32) {
	if c.wide {
		return c.probeGo(dst, i, n)
	}
	// Emit has made room for maxCopy ids of each chunk and for a store past them.
	next, written := probeNEON(&c.recs[0], i, n, &c.lines[0],
		(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(dst)), 4*len(dst))),
		&c.spill16.buf[0], c.spill16.size, c.spill16.head)
	return next, dst[:len(dst)+written]
}

func classify(w *Window, t *Tables, words int) {
	classifyNEON(&w.buf[pad], t, words, &w.Cut[0], &w.Gap[0], &w.NonASCII[0])
}
