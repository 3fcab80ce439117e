package bytebpe

import (
	"encoding/binary"
	"math/bits"
)

// Scripts without spaces have long words, most of which occur once. They are cut inside, before
// they are looked up, where no token can lie across: their parts, of a character or two, are nearly
// always in the cache.
//
// If no token has the bytes on both sides of a place, no merge joins them, and the word is no token
// itself. So each side merges as it would alone, and the ids of the word are those of both sides.
// Where a word that is a token is not merged, a part that is one is not, either: merges have to make
// all tokens then.

// joinedBytes says between which bytes tokens lie, as far as the second one begins a character of
// three bytes or more. Of tokens with at least three bytes on both sides it knows these six, by a
// hash; a bit that is set may be another's. Of other tokens it knows the two bytes at the place.
type joinedBytes struct {
	six [1 << joinedBits / 64]uint64
	two [1 << 16 / 64]uint64
}

const joinedBits = 18

// whereJoined returns the bits of a place, of which text has three bytes before it and five after.
func whereJoined(text uint64) (six, two uint64) {
	return text << 16 * mulLo >> (64 - joinedBits), text >> 16 & 0xffff
}

// shortBytes is the length of words of which four share a line of the cache. They are not cut.
const shortBytes = 8

// findJoined returns the table of a vocabulary, nil if words may not be cut.
func (m *Model) findJoined() *joinedBytes {
	if m.missing || m.ignoreMerges && m.unmerged() != 0 {
		return nil
	}
	s := new(joinedBytes)
	for id := range uint32(m.vocab.Len()) {
		t, _ := m.vocab.Token(id)
		for i := 1; i < len(t); i++ {
			if t[i] < 0xe0 {
				continue
			}
			var text [8]byte
			copy(text[max(0, 3-i):], t[max(0, i-3):])
			six, two := whereJoined(binary.LittleEndian.Uint64(text[:]))
			if i < 3 || i+3 > len(t) {
				s.two[two/64] |= 1 << (two % 64)
				continue
			}
			s.six[six/64] |= 1 << (six % 64)
		}
	}
	return s
}

// joinedAfter is how many places in long words texts have before the table is made: making it takes as long as it saves on
// about as many.
const joinedAfter = 1 << 15

// joinedFor counts some more places and returns the table, nil if it is not made yet or words may not be cut.
func (m *Model) joinedFor(places uint64) *joinedBytes {
	if m.places.Load() < joinedAfter && m.places.Add(int64(bits.OnesCount64(places))) < joinedAfter {
		return nil
	}
	return m.joined()
}

// cutInside adds to start the places inside long words where no token can lie across, and keeps
// them in inside.
func (m *Model) cutInside(buf []byte, blocks []block, start, inside []uint64) {
	previous := uint64(0)
	var joined *joinedBytes
	for k, s := range start {
		cuts := uint64(0)
		if blocks[k].high != 0 {
			next := ^uint64(0)
			if k+1 < len(start) {
				next = start[k+1]
			}
			first := longWords(previous, s, next) & threeBytes(blocks, k)
			if k == 0 {
				first &^= 7
			}
			if first != 0 && joined == nil {
				joined = m.joinedFor(first)
			}
			if joined == nil {
				first = 0
			}
			for first != 0 {
				place := first & -first
				first ^= place
				i := (k*blockBytes + bits.TrailingZeros64(place) - 3) & (windowBytes - 1)
				six, two := whereJoined(binary.LittleEndian.Uint64(buf[i:]))
				across := joined.six[six/64]>>(six%64) | joined.two[two/64]>>(two%64)
				cuts |= place & (across&1 - 1)
			}
		}
		previous = s
		inside[k] = cuts
		start[k] = s | cuts
	}
}

// longWords returns the bytes of words of more than shortBytes, but the first one of each. A block's
// words begin at the bits of s, the blocks before and after it are previous and next.
func longWords(previous, s, next uint64) uint64 {
	x, y := s>>1|s>>2, next<<(64-shortBytes) // will have the 8 places before each bit
	x |= x >> 2
	x |= x >> 4
	y |= y << 1
	y |= y << 2
	y |= y << 4
	long := s &^ (x | y) << 1
	if bits.LeadingZeros64(previous)+1+bits.TrailingZeros64(s) > shortBytes {
		long |= 1
	}
	return ^s &^ (^s + long) // a carry clears the bits after the first byte
}

// threeBytes returns the first bytes of a block's characters of three bytes or more.
func threeBytes(blocks []block, k int) uint64 {
	b, more := &blocks[k], blocks[k+1].cont
	return b.high &^ b.cont & (b.cont>>1 | more<<63) & (b.cont>>2 | more<<62)
}
