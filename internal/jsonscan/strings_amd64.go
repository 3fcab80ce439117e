//go:build !purego

package jsonscan

import (
	"slices"

	"golang.org/x/sys/cpu"
)

// hasWide is false where the plain twins must do.
var hasWide = cpu.X86.HasAVX2 && cpu.X86.HasBMI1

// scanAVX2 reads the inside of a string in a text of n bytes until what neither stands for itself nor is an
// escape that is in escapes, or until fewer than wideBytes are left.
//
//go:noescape
func scanAVX2(text *byte, n int, escapes *[256]byte) (end int, escaped bool)

// unescapeAVX2 decodes the inside of a string of n bytes until an escape that is not in escapes, or until fewer
// than wideBytes are left. dst has room for n bytes.
//
//go:noescape
func unescapeAVX2(dst, raw *byte, n int, escapes *[256]byte) (read, written int)

func scanWide(text []byte, escapes *[256]byte) (end int, escaped bool) {
	return scanAVX2(&text[0], len(text), escapes)
}

func unescapeWide(dst, raw []byte) (text []byte, read int) {
	n := len(dst)
	dst = slices.Grow(dst, len(raw))[:n+len(raw)]
	read, written := unescapeAVX2(&dst[n], &raw[0], len(raw), &escapes)
	return dst[:n+written], read
}
