// Package wellformed validates UTF-8, several times as fast as unicode/utf8 where the processor has AVX2, and
// repairs it as tokenizers do. Its functions may be called by any number of goroutines.
package wellformed

import "unicode/utf8"

// Append appends text to dst with every maximal ill-formed part replaced by one U+FFFD, as
// Python's bytes.decode(errors="replace") and the Unicode standard (section 3.9, "substitution of
// maximal subparts") do. replaced counts them.
func Append(dst, text []byte) (out []byte, replaced int) {
	if Valid(text) {
		return append(dst, text...), 0
	}
	done := 0 // bytes that are in dst
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		if r, size := utf8.DecodeRune(text[i:]); r != utf8.RuneError || size > 1 {
			i += size
			continue
		}
		dst = append(append(dst, text[done:i]...), "\uFFFD"...)
		i += IllFormed(text[i:])
		replaced, done = replaced+1, i
	}
	return append(dst, text[done:]...), replaced
}

// IllFormed returns the length of the ill-formed part at the beginning of text: the longest prefix
// of a character, at least one byte.
func IllFormed(text []byte) int {
	n := 1
	for n < len(text) && !utf8.FullRune(text[:n+1]) {
		n++
	}
	return n
}
