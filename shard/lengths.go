package shard

import (
	"fmt"
	"math/bits"
)

// The histogram of lengths: a bucket a length below 128, above that 64 equal buckets between each power of two and the
// next, so a bucket is at most 1/64 wide of its lower bound and every power of two begins one.
const (
	exactLengths = 128
	perOctave    = 64
	numBuckets   = exactLengths + (28-7)*perOctave + 1 // maxRowTokens = 2^28 is the last one's only length
)

// lengthBucket is the bucket of a length in 0..maxRowTokens.
func lengthBucket(n int) int {
	if n < exactLengths {
		return n
	}
	octave := bits.Len(uint(n)) - 8 // 128..255 is octave 0
	return exactLengths + octave*perOctave + n>>(octave+1) - perOctave
}

// bucketLow is the smallest length of a bucket.
func bucketLow(b int) int64 {
	if b < exactLengths {
		return int64(b)
	}
	octave, sub := (b-exactLengths)/perOctave, (b-exactLengths)%perOctave
	return int64(perOctave+sub) << (octave + 1)
}

// BucketBounds gives the lengths of a histogram bucket, from low to high inclusive, from any length in it.
func BucketBounds(length int64) (low, high int64) {
	b := lengthBucket(int(min(max(length, 0), maxRowTokens)))
	if b == numBuckets-1 {
		return maxRowTokens, maxRowTokens
	}
	return bucketLow(b), bucketLow(b+1) - 1
}

// splitStats is what a split's rows add up to.
type splitStats struct {
	rows, tokens, labelTokens       int64
	minLength, maxLength, maxLabels int64
	hist                            [numBuckets][2]int64 // rows, tokens
}

func (s *splitStats) add(length, labels int) {
	if s.rows == 0 || int64(length) < s.minLength {
		s.minLength = int64(length)
	}
	s.maxLength = max(s.maxLength, int64(length))
	s.maxLabels = max(s.maxLabels, int64(labels))
	s.rows++
	s.tokens += int64(length)
	s.labelTokens += int64(labels)
	h := &s.hist[lengthBucket(length)]
	h[0]++
	h[1] += int64(length)
}

// lengths is the histogram as the manifest has it.
func (s *splitStats) lengths() [][3]int64 {
	out := [][3]int64{}
	for b, h := range s.hist {
		if h[0] > 0 {
			out = append(out, [3]int64{bucketLow(b), h[0], h[1]})
		}
	}
	return out
}

// info is what the manifest says of a split with these rows, its name and shards apart.
func (s *splitStats) info() SplitInfo {
	return SplitInfo{Examples: s.rows, Tokens: s.tokens, LabelTokens: s.labelTokens, MinLength: s.minLength, MaxLength: s.maxLength,
		MaxLabels: s.maxLabels, Lengths: s.lengths()}
}

// checkLengths tests a manifest's histogram against itself and the split's sums.
func checkLengths(s *SplitInfo) error {
	var rows, tokens int64
	last := int64(-1)
	for _, h := range s.Lengths {
		low, high := BucketBounds(h[0])
		if h[0] != low || low <= last || low > s.MaxLength || high < s.MinLength {
			return fmt.Errorf("histogram bucket %d", h[0])
		}
		last = low
		// The rows bound first: the products below then stay within 63 bits.
		if h[1] < 1 || h[1] > s.Examples || h[2] < 1 || h[2] > s.Tokens || h[2]/h[1] < low || (h[2]-1)/h[1] >= high {
			return fmt.Errorf("histogram bucket %d: %d rows, %d tokens", h[0], h[1], h[2])
		}
		rows += h[1]
		tokens += h[2]
		if rows > s.Examples || tokens > s.Tokens {
			break
		}
	}
	if rows != s.Examples || tokens != s.Tokens {
		return fmt.Errorf("histogram has %d rows and %d tokens, the split %d and %d", rows, tokens, s.Examples, s.Tokens)
	}
	return nil
}
