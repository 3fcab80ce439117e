package pack

import "math/bits"

// Count returns how many rows of length len(counts)-1 best fit decreasing makes of pieces, where
// counts[n] pieces have n tokens. It returns as many as a Packer makes, in time that does not
// depend on the number of pieces. It places pieces of equal length together: a row that is the best
// fit for one remains so until no more of that length fit.
func Count(counts []int64) (rows int64) {
	size := len(counts) - 1
	free := freeRows{make([]int64, size+1), make([]uint64, size/64+1)}
	for n := size; n > 0; n-- {
		for left := counts[n]; left > 0; {
			room := free.least(n)
			available := left // room for as many new rows as it takes
			if room == 0 {
				room = size
			} else {
				available = free.counts[room]
			}
			each := int64(room / n)
			full := min(left/each, available)
			rest := int64(0) // pieces in one more row, which they do not fill
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

// freeRows counts rows by their free room.
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

// least returns the smallest free room of at least n among the rows, 0 if none has that much.
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
