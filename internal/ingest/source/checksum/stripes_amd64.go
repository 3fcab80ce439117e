//go:build !purego

package checksum

import "golang.org/x/sys/cpu"

// accumulateAVX2 is accumulateGo for a positive number of stripes.
//
//go:noescape
func accumulateAVX2(acc *[8]uint64, p, secret *byte, stripes int)

func accumulate(acc *[8]uint64, p, secret []byte) {
	n := len(p) / sumStripe
	if n == 0 || !cpu.X86.HasAVX2 {
		accumulateGo(acc, p, secret)
		return
	}
	_ = secret[8*(n-1)+sumStripe-1]
	accumulateAVX2(acc, &p[0], &secret[0], n)
}
