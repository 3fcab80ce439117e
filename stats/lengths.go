package stats

import (
	"maps"
	"slices"

	"github.com/dsload/dsload/shard"
)

// exactLengths is the length from which lengths are counted in the buckets of the manifest's
// histogram, each at most 1/64 of its lower bound wide.
const exactLengths = 1 << 16

// lengthCounts counts lengths.
type lengthCounts struct {
	exact  []int64             // indexed by length
	longer map[int64]*[2]int64 // keys are the buckets' lower bounds; values are count and tokens
	total  int64               // count of all
	tokens int64
	min    int64
	max    int64
}

func newLengthCounts() *lengthCounts {
	return &lengthCounts{exact: make([]int64, exactLengths), longer: map[int64]*[2]int64{}}
}

func (c *lengthCounts) add(n int64) {
	if c.total == 0 || n < c.min {
		c.min = n
	}
	c.max = max(c.max, n)
	c.total++
	c.tokens += n
	if n < exactLengths {
		c.exact[n]++
		return
	}
	low := n // beyond the buckets, documents are few and their lengths are counted exactly
	if lowest, high := shard.BucketBounds(n); n <= high {
		low = lowest
	}
	if c.longer[low] == nil {
		c.longer[low] = &[2]int64{}
	}
	c.longer[low][0]++
	c.longer[low][1] += n
}

// each calls do for each length that occurs, or the mean of each bucket, ascending.
func (c *lengthCounts) each(do func(length, count int64)) {
	for n, k := range c.exact {
		if k > 0 {
			do(int64(n), k)
		}
	}
	for _, low := range slices.Sorted(maps.Keys(c.longer)) {
		b := c.longer[low]
		do((b[1]+b[0]/2)/b[0], b[0])
	}
}

// pairs lists {length or lower bound, count}.
func (c *lengthCounts) pairs() [][2]int64 {
	out := [][2]int64{}
	for n, k := range c.exact {
		if k > 0 {
			out = append(out, [2]int64{int64(n), k})
		}
	}
	for _, low := range slices.Sorted(maps.Keys(c.longer)) {
		out = append(out, [2]int64{low, c.longer[low][0]})
	}
	return out
}

// summary returns quantiles that are lengths that occur: the q-quantile of n is the ⌈q·n⌉-th
// shortest.
func (c *lengthCounts) summary() Summary {
	if c.total == 0 {
		return Summary{}
	}
	s := Summary{Min: c.min, Max: c.max, Mean: float64(c.tokens) / float64(c.total)}
	var seen int64
	half, most := (c.total+1)/2, (c.total*95+99)/100
	c.each(func(length, count int64) {
		before := seen
		seen += count
		if before < half && half <= seen {
			s.P50 = length
		}
		if before < most && most <= seen {
			s.P95 = length
		}
	})
	return s
}
