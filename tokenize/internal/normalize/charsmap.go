package normalize

import "bytes"

// Mapper is a precompiled character map, applied per grapheme cluster.
type Mapper interface {
	Append(dst, text []byte) []byte
	// Leading returns how many bytes of Append's result come from the first n bytes of text, which
	// must be whole characters; if those are removed, it counts the bytes from the first character
	// that is not.
	Leading(text []byte, n int) int
}

type charsmap struct{ m Mapper }

func (c charsmap) Append(dst, src []byte, e *Edges) []byte {
	from := len(dst)
	dst = c.m.Append(dst, src)
	if e.Zero > 0 && !bytes.Equal(dst[from:], src) {
		e.Zero = c.m.Leading(src, e.Zero)
	}
	return dst
}
