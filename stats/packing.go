package stats

import "github.com/dsload/dsload/internal/pack"

const (
	minPacked = 256  // the shortest row length to report
	maxFirst  = 8192 // the longest row length that the list begins with
	numPacked = 5
)

// packedLengths returns the row lengths to report: powers of two around the longest row.
func packedLengths(longest int64) []int {
	first := minPacked
	for int64(first) < (longest+1)/2 && first < maxFirst {
		first *= 2
	}
	out := make([]int, numPacked)
	for i := range out {
		out[i] = first << i
	}
	return out
}

// packing computes the fill of each policy and length from the counts of lengths. Best fit
// decreasing runs over all lengths at once; packing within windows comes close to it.
func packing(c *lengthCounts) []Packing {
	out := []Packing{}
	for _, length := range packedLengths(c.max) {
		for _, policy := range pack.Policies {
			out = append(out, packed(c, policy, length))
		}
	}
	return out
}

func packed(c *lengthCounts, policy pack.Policy, length int) Packing {
	p := Packing{Policy: string(policy), Length: length}
	size := int64(length)
	switch policy {
	case pack.Wrapped:
		p.Rows = (c.tokens + size - 1) / size
	case pack.None:
		p.Rows = c.total
		c.each(func(n, count int64) { p.Dropped += max(0, n-size) * count })
	default:
		counts := make([]int64, length+1)
		c.each(func(n, count int64) {
			switch {
			case n <= size:
				counts[n] += count
			case policy == pack.BFD:
				counts[size] += count
				p.Dropped += (n - size) * count
			default:
				counts[size] += n / size * count
				counts[n%size] += count
			}
		})
		p.Rows = pack.Count(counts)
	}
	if p.Rows > 0 {
		p.Fill = float64(c.tokens-p.Dropped) / float64(p.Rows*size)
	}
	return p
}
