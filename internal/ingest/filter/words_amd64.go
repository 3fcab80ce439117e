//go:build !purego

package filter

import "golang.org/x/sys/cpu"

// hasWide is false where the plain twins must do.
var hasWide = cpu.X86.HasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ

// classifyAVX2 returns which of 64 bytes are letters or digits of ASCII, and which are beyond ASCII, a bit each.
//
//go:noescape
func classifyAVX2(text *byte) (word, high uint64)

// hashAVX512 is batch.hashes for n words, rounded up to eight.
//
//go:noescape
func hashAVX512(b *batch, words *uint64, n int)

// shinglesAVX512 is shinglesOf for n shingles, rounded up to eight.
//
//go:noescape
func shinglesAVX512(words, x, y *uint64, n int)

// foldAVX512 is fold for n values, a multiple of eight.
//
//go:noescape
func foldAVX512(values *uint32, sketch *byte, n int)

func classify(text *[windowBytes]byte) (word, high uint64) { return classifyAVX2(&text[0]) }

func (b *batch) hashes(words *[batchWords]uint64, n int) {
	if !hasWide {
		b.hashesGo(words, n)
		return
	}
	hashAVX512(b, &words[0], n)
}

func shinglesOf(words *[shingleWords - 1 + batchWords]uint64, x, y *[batchWords]uint64, n int) {
	if !hasWide {
		shinglesGo(words, x, y, n)
		return
	}
	shinglesAVX512(&words[0], &x[0], &y[0], n)
}

func fold(v *values, sketch *[sketchBytes]byte) {
	if !hasWide {
		foldGo(v, sketch)
		return
	}
	foldAVX512(&v[0], &sketch[0], sketchBytes)
}
