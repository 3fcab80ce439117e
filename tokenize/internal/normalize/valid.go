package normalize

import "unicode/utf8"

// AppendValid appends text with each maximal ill-formed part replaced by U+FFFD.
func AppendValid(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r != utf8.RuneError || n != 1 {
			dst = append(dst, text[i:i+n]...)
			i += n
			continue
		}
		dst = append(dst, "\uFFFD"...)
		i += illFormed(text[i:])
	}
	return dst
}

// illFormed returns the length of the ill-formed part at the beginning of text: the longest prefix
// of a character, or one byte.
func illFormed(text []byte) int {
	lo, hi, need := byte(0x80), byte(0xBF), 0
	switch c := text[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	n := 1
	for n <= need && n < len(text) && lo <= text[n] && text[n] <= hi {
		n++
		lo, hi = 0x80, 0xBF
	}
	return n
}
