package chunkcache

// ring is a circular store of records of varying length. Positions only grow; a record is
// overwritten when the head has advanced by the ring's size.
type ring[T byte | uint16 | uint32] struct {
	buf  []T // size items and maxCopy more, since a probe copies a fixed number
	size uint32
	head uint32
}

// init makes room for about n items, rounded to a power of two.
func (r *ring[T]) init(n int) {
	size := 1
	for size*2 <= n {
		size *= 2
	}
	r.buf = make([]T, size+maxCopy)
	r.size = uint32(size)
	r.reset()
}

func (r *ring[T]) reset() { r.head = 0 }

// put reserves room for n items and returns their position. It refuses records larger than a
// quarter of the ring and, when full, everything until the owner resets the ring.
func (r *ring[T]) put(n int) (pos uint32, dst []T, ok bool) {
	if uint32(n) > r.size/4 || r.full() {
		return 0, nil, false
	}
	at := r.head & (r.size - 1)
	if at+uint32(n) > r.size { // records do not wrap
		r.head += r.size - at
		at = 0
	}
	pos = r.head
	r.head += uint32(n)
	return pos, r.buf[at : at+uint32(n)], true
}

// full reports whether positions are about to overflow.
func (r *ring[T]) full() bool { return r.head > 1<<32-1-2*r.size }

// get returns the n items put at pos, or false if they have been overwritten.
func (r *ring[T]) get(pos uint32, n int) ([]T, bool) {
	if r.head-pos > r.size {
		return nil, false
	}
	at := pos & (r.size - 1)
	return r.buf[at : at+uint32(n)], true
}
