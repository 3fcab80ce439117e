//go:build !purego

package collate

import "golang.org/x/sys/cpu"

// rampAVX2 writes vectors of 32 bytes, at least one: first, and then step more in each of the four numbers than
// in the vector before.
//
//go:noescape
func rampAVX2(dst *byte, vectors int, first *[4]uint64, step uint64)

// The others widen n ids, a positive multiple of 16. Ids of four bytes keep their sign.

//go:noescape
func widen16to64AVX2(dst, src *byte, n int)

//go:noescape
func widen16to32AVX2(dst, src *byte, n int)

//go:noescape
func widen32to64AVX2(dst, src *byte, n int)

// hasKernels is off in some tests.
var hasKernels = cpu.X86.HasAVX2

// rampVectors writes first, first+step … as far as vectors reach, and returns how many bytes.
func rampVectors(dst []byte, first [4]uint64, step uint64) int {
	n := len(dst) / 32
	if n == 0 || !hasKernels {
		return 0
	}
	rampAVX2(&dst[0], n, &first, step)
	return 32 * n
}

// widenVectors widens ids of src from the width `from` to the width `to` as far as vectors reach in dst and src,
// and returns how many ids.
func widenVectors(dst, src []byte, from, to int) int {
	n := min(len(dst)/to, len(src)/from) &^ 15
	if n == 0 || !hasKernels {
		return 0
	}
	switch {
	case from == 4:
		widen32to64AVX2(&dst[0], &src[0], n)
	case to == 8:
		widen16to64AVX2(&dst[0], &src[0], n)
	default:
		widen16to32AVX2(&dst[0], &src[0], n)
	}
	return n
}
