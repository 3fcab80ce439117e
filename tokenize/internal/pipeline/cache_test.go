package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCache checks that the cache forgets without lying.
func TestCache(t *testing.T) {
	c := newCache(0)
	r := rand.New(rand.NewPCG(7, 8))
	for range 200000 {
		key := fmt.Appendf(nil, "%d", r.IntN(20000))
		want := []uint32{uint32(len(key)), uint32(key[0])}
		ids, h, at, ok := c.get(key)
		if ok && !slices.Equal(ids, want) {
			t.Fatalf("%s: %v", key, ids)
		}
		if !ok {
			c.put(key, h, at, want)
		}
	}
}
