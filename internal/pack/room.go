package pack

import (
	"math/bits"
	"slices"
)

// roomIndex finds rows by their free room. Rows with equal room form a queue. A bit for each room
// that some row has, and a bit for each word of these bits, make the search short.
type roomIndex struct {
	first, last []int32 // for each room, the ends of its queue, as row + 1; 0 if it is empty
	next        []int32 // for each row, the one after it in its queue, as row + 1
	some        []uint64
	words       []uint64 // bit w: some[w] is not 0
}

func roomBytes(length int64) int64 { return 8*(length+1) + length/8 + length/512 + 64 }

// reset empties the index for rows of the given length.
func (x *roomIndex) reset(length int) {
	zero := func(s []int32, n int) []int32 {
		s = slices.Grow(s[:0], n)[:n]
		clear(s)
		return s
	}
	x.first, x.last, x.next = zero(x.first, length+1), zero(x.last, length+1), x.next[:0]
	words := length/64 + 1
	x.some = slices.Grow(x.some[:0], words)[:words]
	x.words = slices.Grow(x.words[:0], words/64+1)[:words/64+1]
	clear(x.some)
	clear(x.words)
}

// take removes and returns the row with the least room of at least n; among several, the one that
// has had it longest. row is -1 if no row has room.
func (x *roomIndex) take(n int32) (row, room int32) {
	room = x.least(n)
	if room < 0 {
		return -1, 0
	}
	row = x.first[room] - 1
	x.first[room] = x.next[row]
	if x.first[room] == 0 {
		x.last[room] = 0
		word := room / 64
		if x.some[word] &^= 1 << (room % 64); x.some[word] == 0 {
			x.words[word/64] &^= 1 << (word % 64)
		}
	}
	return row, room
}

// put adds a row with the given room. It ignores a full row.
func (x *roomIndex) put(row, room int32) {
	for int(row) >= len(x.next) {
		x.next = append(x.next, 0)
	}
	x.next[row] = 0
	if room == 0 {
		return
	}
	if last := x.last[room]; last != 0 {
		x.next[last-1] = row + 1
	} else {
		x.first[room] = row + 1
		x.some[room/64] |= 1 << (room % 64)
		x.words[room/64/64] |= 1 << (room / 64 % 64)
	}
	x.last[room] = row + 1
}

// least returns the smallest room of at least n among the rows, -1 if none has that much.
func (x *roomIndex) least(n int32) int32 {
	word := int(n / 64)
	if v := x.some[word] &^ (1<<(n%64) - 1); v != 0 {
		return int32(64*word + bits.TrailingZeros64(v))
	}
	word++
	for i := word / 64; i < len(x.words); i++ {
		v := x.words[i]
		if i == word/64 {
			v &^= 1<<(word%64) - 1
		}
		if v != 0 {
			word = 64*i + bits.TrailingZeros64(v)
			return int32(64*word + bits.TrailingZeros64(x.some[word]))
		}
	}
	return -1
}
