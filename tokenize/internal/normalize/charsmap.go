package normalize

import "unicode/utf8"

// Mapper is a precompiled character map, applied per grapheme cluster.
type Mapper interface {
	Append(dst, text []byte) []byte
}

type charsmap struct{ m Mapper }

// Charsmap is the Precompiled normalizer.
func Charsmap(m Mapper) Step { return charsmap{m} }

func (c charsmap) Append(dst, src []byte, e *Edges) []byte {
	from := len(dst)
	dst = c.m.Append(dst, src)
	if e.Zero > 0 {
		// The first character of the result counts as stemming from the first of the text.
		_, e.Zero = utf8.DecodeRune(dst[from:])
	}
	return dst
}
