//go:build !purego

package frame

import "golang.org/x/sys/cpu"

var hasWide = cpu.X86.HasAVX2 && cpu.X86.HasBMI1 && cpu.X86.HasPOPCNT

// endsAVX2 writes where "\n" lies in a text of n bytes, until fewer than 64 are left or have more of it than there is
// room for.
//
//go:noescape
func endsAVX2(ends *int32, room int, text *byte, n int) (found, read int)

// endsWide is LineEnds for the beginning of the text: it returns how much.
func endsWide(ends []int32, text []byte) ([]int32, int) {
	n := len(ends)
	if !hasWide || n == cap(ends) || len(text) == 0 {
		return ends, 0
	}
	found, read := endsAVX2(&ends[:n+1][n], cap(ends)-n, &text[0], len(text))
	return ends[:n+found], read
}
