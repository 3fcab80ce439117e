package pack

import "math/bits"

// Count returns how many rows of length len(counts)-1 best fit decreasing makes of pieces of which
// counts[n] have n tokens: as many as a Packer does, in a time that does not grow with their
// number. Pieces of equal length are placed together: a row that is the best fit for one stays it
// until no more of that length fits.
func Count(counts []int64) (rows int64) {
	size := len(counts) - 1
	free := freeRows{make([]int64, size+1), make([]uint64, size/64+1)}
	for n := size; n > 0; n-- {
		for left := counts[n]; left > 0; {
			room := free.least(n)
			available := left // new rows, as many as it takes
			if room == 0 {
				room = size
			} else {
				available = free.counts[room]
			}
			each := int64(room / n)
			full := min(left/each, available)
			rest := int64(0) // pieces in one row more that they do not fill
			if full < available {
				rest = left - full*each
			}
			if opened := full + min(rest, 1); room == size {
				rows += opened
			} else {
				free.add(room, -opened)
			}
			free.add(room-int(each)*n, full)
			if rest > 0 {
				free.add(room-int(rest)*n, 1)
			}
			left -= full*each + rest
		}
	}
	return rows
}

// freeRows counts rows by the room that is left in them.
type freeRows struct {
	counts []int64
	some   []uint64 // bit r: counts[r] > 0
}

func (f *freeRows) add(room int, n int64) {
	f.counts[room] += n
	if f.counts[room] > 0 {
		f.some[room/64] |= 1 << (room % 64)
	} else {
		f.some[room/64] &^= 1 << (room % 64)
	}
}

// least is the least room of at least n that a row has, 0 where none has.
func (f *freeRows) least(n int) int {
	word := f.some[n/64] &^ (1<<(n%64) - 1)
	for i := n / 64; ; word = f.some[i] {
		if word != 0 {
			return 64*i + bits.TrailingZeros64(word)
		}
		if i++; i == len(f.some) {
			return 0
		}
	}
}
