//go:build !purego

package chunkcache

import (
	"unsafe"

	"github.com/dsload/dsload/tokenize/internal/cpu"
)

//go:noescape
func keysAMD64(text *byte, spans *Span, n int, rules *keyRule, recs *record, lines *line)

//go:noescape
func probeAVX2(recs *record, i, n int, lines *line, dst *uint32, spill *uint16, size, head uint32) (next, written int)

//go:noescape
func classifyVBMI(text *byte, t *Tables, words int, cut, gap, non *uint64)

//go:noescape
func classifyAVX2(text *byte, t *Tables, words int, cut, gap, non *uint64, rows *[128]byte)

// What the kernels may use; tests turn it off.
var hasAVX2, hasVBMI = cpu.AVX2, cpu.VBMI

// rowIndex holds row n's number in the upper four bits of its 16 bytes.
var rowIndex = func() (t [128]byte) {
	for i := range t {
		t[i] = byte(i &^ 15)
	}
	return t
}()

func (c *Cache) keys(text *byte, n int, rules *[maxInline + 2]keyRule) {
	keysAMD64(text, &c.spans[0], n, &rules[0], &c.recs[0], &c.lines[0])
}

func (c *Cache) probe(dst []uint32, i, n int) (int, []uint32) {
	if !hasAVX2 || c.wide {
		return c.probeGo(dst, i, n)
	}
	// Emit has made room for maxCopy ids of each chunk and for a store past them.
	next, written := probeAVX2(&c.recs[0], i, n, &c.lines[0],
		(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(dst)), 4*len(dst))),
		&c.spill16.buf[0], c.spill16.size, c.spill16.head)
	return next, dst[:len(dst)+written]
}

func classify(w *Window, t *Tables, words int) {
	text := &w.buf[pad]
	switch {
	case hasVBMI:
		classifyVBMI(text, t, words, &w.Cut[0], &w.Gap[0], &w.NonASCII[0])
	case hasAVX2:
		classifyAVX2(text, t, words, &w.Cut[0], &w.Gap[0], &w.NonASCII[0], &rowIndex)
	default:
		classifyGo(w, t, words)
	}
}
