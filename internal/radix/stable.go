package radix

import "math/bits"

// mostOnStack is the maximum number of keys that SortFrom sorts with a copy of them on its stack.
const mostOnStack = 512

// SortFrom sorts keys ascending whose bits below `from` ascend already, such as those of numbers above their
// indexes. Few keys take half the time of Sort: they go by the lowest digit first, and back, in as few passes as
// the bits in which they differ need.
func SortFrom(keys []uint64, from uint) {
	if len(keys) < fewKeys || len(keys) > mostOnStack {
		Sort(keys)
		return
	}
	var differ uint64
	for _, k := range keys {
		differ |= k ^ keys[0]
	}
	if differ >>= from; differ == 0 {
		return
	}
	low := uint(bits.TrailingZeros64(differ))
	width := uint(bits.Len64(differ)) - low
	passes := (width + digitBits - 1) / digitBits
	digit := (width + passes - 1) / passes
	var room [mostOnStack]uint64
	have, other := keys, room[:len(keys)]
	for shift := from + low; passes > 0; passes, shift = passes-1, shift+digit {
		scatter(other, have, shift, digit)
		have, other = other, have
	}
	if &have[0] != &keys[0] {
		copy(keys, have)
	}
}

// scatter writes keys to dst by one digit, those with equal digits in their order.
func scatter(dst, keys []uint64, shift, digit uint) {
	var next [1 << digitBits]uint32
	mask := uint64(1)<<digit - 1
	for _, k := range keys {
		next[k>>shift&mask]++
	}
	at := uint32(0)
	for d, n := range next[:mask+1] {
		next[d] = at
		at += n
	}
	for _, k := range keys {
		d := k >> shift & mask
		dst[next[d]] = k
		next[d]++
	}
}
