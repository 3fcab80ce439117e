// Package minheap is a binary heap of uint64 with the least on top. The merge loops keep pairs in
// it as rank<<32 | position: lowest rank first, leftmost among equals. The heap is a slice that its
// owner reuses; package container/heap would box every number.
package minheap

// Init reorders h into a heap.
func Init(h []uint64) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		sink(h, i, h[i])
	}
}

// Push returns h with x added.
func Push(h []uint64, x uint64) []uint64 {
	h = append(h, x)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= x {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
	return h
}

// Pop returns the least element and h without it. The heap must not be empty.
func Pop(h []uint64) (least uint64, rest []uint64) {
	least = h[0]
	x := h[len(h)-1]
	h = h[:len(h)-1]
	if len(h) > 0 {
		sink(h, 0, x)
	}
	return least, h
}

// sink puts x at i or below it, where it belongs.
func sink(h []uint64, i int, x uint64) {
	for {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if c >= len(h) || x <= h[c] {
			h[i] = x
			return
		}
		h[i] = h[c]
		i = c
	}
}
