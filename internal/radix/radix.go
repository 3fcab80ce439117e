// Package radix sorts unsigned numbers by their digits. Random numbers, by which a comparison sort
// mispredicts its branches, take it a third of the time.
package radix

import (
	"math/bits"
	"slices"
)

const (
	// digitBits is the maximum width of a digit: its counters stay in the first cache.
	digitBits = 9
	// fewKeys is the number of keys below which clearing counters takes longer than comparing keys.
	fewKeys = 48
	// mostInserted is the maximum number of keys that are sorted by insertion.
	mostInserted = 16
)

// Sort sorts keys ascending, in place: it divides them by the highest digit in which they differ, each
// key going to where its digit's keys belong (McIlroy, Bostic and McIlroy 1993, "Engineering radix
// sort", American flag sort), and then sorts the keys of each digit.
func Sort(keys []uint64) {
	if len(keys) < fewKeys {
		slices.Sort(keys)
		return
	}
	var differ uint64
	for _, k := range keys {
		differ |= k ^ keys[0]
	}
	width := bits.Len64(differ)
	if width == 0 {
		return
	}
	digit := min(digitBits, bits.Len(uint(len(keys)))-1, width) // about a digit for each key
	shift, mask := uint(width-digit), uint64(1)<<digit-1
	var next, ends [1 << digitBits]uint32
	for _, k := range keys {
		ends[k>>shift&mask]++
	}
	at := uint32(0)
	for d, n := range ends[:mask+1] {
		next[d] = at
		at += n
		ends[d] = at
	}
	begin := uint32(0)
	for d, end := range ends[:mask+1] {
		for i := next[d]; i < end; i++ {
			k := keys[i]
			for to := k >> shift & mask; to != uint64(d); to = k >> shift & mask {
				keys[next[to]], k = k, keys[next[to]]
				next[to]++
			}
			keys[i] = k
		}
		if part := keys[begin:end]; len(part) <= mostInserted {
			insert(part)
		} else {
			Sort(part)
		}
		begin = end
	}
}

// insert sorts a few keys by insertion.
func insert(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		k, j := keys[i], i
		for ; j > 0 && keys[j-1] > k; j-- {
			keys[j] = keys[j-1]
		}
		keys[j] = k
	}
}
