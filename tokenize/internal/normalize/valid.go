package normalize

import "unicode/utf8"

// AppendValid appends text to dst with every maximal ill-formed part replaced by one U+FFFD, as
// Python's bytes.decode(errors="replace") and the Unicode standard (section 3.9, "substitution of
// maximal subparts") do. replaced counts them.
func AppendValid(dst, text []byte) (out []byte, replaced int) {
	for {
		n := validPrefix(text)
		dst = append(dst, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			return dst, replaced
		}
		dst = append(dst, "\uFFFD"...)
		replaced++
		text = text[illFormed(text):]
	}
}

// validPrefix returns the length of the longest valid prefix.
func validPrefix(text []byte) int {
	if Valid(text) {
		return len(text)
	}
	n := 0
	for n < len(text) {
		if text[n] < utf8.RuneSelf {
			n++
			continue
		}
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size == 1 {
			return n
		}
		n += size
	}
	return n
}

// illFormed returns the length of the ill-formed part at the beginning of text: the longest prefix
// of a character, at least one byte.
func illFormed(text []byte) int {
	low, high, more := byte(0x80), byte(0xbf), 0
	switch b := text[0]; {
	case 0xc2 <= b && b <= 0xdf:
		more = 1
	case 0xe0 <= b && b <= 0xef:
		more = 2
		if b == 0xe0 {
			low = 0xa0
		} else if b == 0xed {
			high = 0x9f
		}
	case 0xf0 <= b && b <= 0xf4:
		more = 3
		if b == 0xf0 {
			low = 0x90
		} else if b == 0xf4 {
			high = 0x8f
		}
	}
	n := 1
	for ; n <= more && n < len(text) && low <= text[n] && text[n] <= high; n++ {
		low, high = 0x80, 0xbf
	}
	return n
}
