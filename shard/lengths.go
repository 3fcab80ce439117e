package shard

import (
	"fmt"

	"github.com/dsload/dsload/internal/shardfile"
)

// BucketBounds returns the smallest and the largest length of the histogram bucket that holds
// length.
func BucketBounds(length int64) (low, high int64) {
	b := shardfile.LengthBucket(int(min(max(length, 0), shardfile.MaxRowTokens)))
	if b == shardfile.NumBuckets-1 {
		return shardfile.MaxRowTokens, shardfile.MaxRowTokens
	}
	return shardfile.BucketLow(b), shardfile.BucketLow(b+1) - 1
}

// checkLengths checks that a manifest's histogram is well formed and adds up to the split's totals.
func checkLengths(s *SplitInfo) error {
	var rows, tokens int64
	last := int64(-1)
	for _, h := range s.Lengths {
		low, high := BucketBounds(h[0])
		if h[0] != low || low <= last || low > s.MaxLength || high < s.MinLength {
			return fmt.Errorf("histogram bucket %d", h[0])
		}
		last = low
		// Bound the rows first, so that the products below stay within 63 bits.
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
		return fmt.Errorf("histogram has %d rows and %d tokens, the split %d and %d", rows, tokens, s.Examples,
			s.Tokens)
	}
	return nil
}
