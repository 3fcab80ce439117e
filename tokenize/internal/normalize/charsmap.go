package normalize

import (
	"bytes"
	"unicode/utf8"
)

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
	if e.Zero > 0 && !bytes.Equal(dst[from:], src) {
		head := c.m.Append(nil, src[:e.Zero])
		if len(head) == 0 || !bytes.HasPrefix(dst[from:], head) {
			// A cluster was mapped as a whole, or removed: the first character that is left counts.
			_, n := utf8.DecodeRune(dst[from:])
			head = dst[from : from+n]
		}
		e.Zero = len(head)
	}
	return dst
}
