//go:build !amd64 || purego

package filter

const hasWide = false

func classify(text *[windowBytes]byte) (word, high uint64) { return classifyGo(text) }

func (b *batch) hashes(words *[batchWords]uint64, n int) { b.hashesGo(words, n) }

func shinglesOf(words *[shingleWords - 1 + batchWords]uint64, x, y *[batchWords]uint64, n int) {
	shinglesGo(words, x, y, n)
}

func fold(v *values, sketch *[sketchBytes]byte) { foldGo(v, sketch) }
