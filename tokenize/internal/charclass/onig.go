package charclass

import "slices"

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

// AppendOnig appends a table of class bits: the numbers of the pages of 128 code points, two bytes each, low
// byte first, and the pages.
func AppendOnig(dst []byte) []byte {
	b := newBuilder[uint8]()
	for i, names := range [][]string{{"l"}, {"n"}, {"space"}, {"m"}, {"lu", "lt"}, {"ll"}} {
		for _, name := range names {
			b.add(1<<i, Set(name)...)
		}
	}
	p := b.build()
	dst = slices.Grow(dst, 4*len(p.index)+256*len(p.data))
	for _, k := range p.index {
		dst = append(dst, byte(2*k), byte(2*k>>8), byte(2*k+1), byte((2*k+1)>>8))
	}
	for i := range p.data {
		dst = append(dst, p.data[i][:]...)
	}
	return dst
}
