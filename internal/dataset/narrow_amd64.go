//go:build !purego

package dataset

import "golang.org/x/sys/cpu"

// narrowAVX2 writes n ids as uint16, n a positive multiple of 16, and returns the largest. Ids that do not fit are
// written as others.
//
//go:noescape
func narrowAVX2(dst *byte, ids *uint32, n int) (top uint32)

// narrow writes as many ids as uint16 as fit its vectors, and returns how many and the largest.
func narrow(dst []byte, ids []uint32) (n int, top uint32) {
	if n = len(ids) &^ 15; n == 0 || !cpu.X86.HasAVX2 {
		return 0, 0
	}
	_ = dst[2*n-1]
	return n, narrowAVX2(&dst[0], &ids[0], n)
}
