//go:build !purego

package checksum

import "golang.org/x/sys/cpu"

var hasWide = cpu.X86.HasAVX2

// accumulateAVX2 is accumulateGo for a positive number of stripes.
//
//go:noescape
func accumulateAVX2(acc *[8]uint64, p, secret *byte, stripes int)

func accumulate(acc *[8]uint64, p, secret []byte) {
	n := len(p) / sumStripe
	if n == 0 || !hasWide {
		accumulateGo(acc, p, secret)
		return
	}
	keys := min(n+n/sumStripes, sumStripes+1) // a block ends with one more
	_ = secret[8*(keys-1)+sumStripe-1]
	accumulateAVX2(acc, &p[0], &secret[0], n)
}
