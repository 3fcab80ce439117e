package ucd

import (
	"encoding/binary"
	"sync"
)

// Class bits of a code point, as Oniguruma inside Hugging Face's tokenizers sees them. A code point
// without the low three bits is what the patterns call "other". Letters that are neither ClassUpper
// nor ClassLower are \p{Lm} or \p{Lo}.
const (
	ClassLetter = 1 << iota // \p{L}
	ClassNumber             // \p{N}
	ClassSpace              // \s
	ClassMark               // \p{M}
	ClassUpper              // \p{Lu} or \p{Lt}
	ClassLower              // \p{Ll}
)

// OnigTable maps a code point c to its class bits: Pages[int(Index[c>>7])<<7|c&127].
type OnigTable struct {
	Index [0x110000 >> 7]uint16
	Pages []uint8
}

// Onig returns the table, which all callers share and must not change.
var Onig = sync.OnceValue(func() *OnigTable {
	t := new(OnigTable)
	seen := make(map[[128]uint8]uint16)
	var page [128]uint8
	c := 0
	for runs := []byte(onigRuns); len(runs) > 0; {
		class := runs[0]
		n, size := binary.Uvarint(runs[1:])
		runs = runs[1+size:]
		for left := int(n); left > 0; {
			k := min(left, 128-c&127)
			fill := page[c&127:][:k]
			for j := range fill {
				fill[j] = class
			}
			c, left = c+k, left-k
			if c&127 != 0 {
				continue
			}
			p, ok := seen[page]
			if !ok {
				p = uint16(len(t.Pages) >> 7)
				seen[page] = p
				t.Pages = append(t.Pages, page[:]...)
			}
			t.Index[c>>7-1] = p
			for ; k == 128 && left >= 128; left -= 128 { // most of the table is pages of one class
				t.Index[c>>7] = p
				c += 128
			}
		}
	}
	return t
})
