package dataset

import (
	"math/rand/v2"
	"testing"
)

// A bitmap holds what was appended, however the lists are divided.
func TestAddBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for range 200 {
		var c batchColumn
		var want []bool
		for range rng.IntN(12) {
			list := make([]bool, rng.IntN(30))
			for i := range list {
				list[i] = rng.IntN(2) == 1
			}
			c.addBits(list)
			c.n += int64(len(list))
			want = append(want, list...)
		}
		if c.n != int64(len(want)) || len(c.values) != (len(want)+7)/8 {
			t.Fatalf("%d values in %d bytes, want %d", c.n, len(c.values), len(want))
		}
		for i := range 8 * len(c.values) {
			if got := c.values[i/8]>>(i%8)&1 == 1; got != (i < len(want) && want[i]) {
				t.Fatalf("value %d of %d is %t", i, len(want), got)
			}
		}
	}
}
