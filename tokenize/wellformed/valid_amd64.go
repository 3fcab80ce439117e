//go:build !purego

package wellformed

import (
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/cpu"
)

// hasAVX2 is false where the plain twin must do.
var hasAVX2 = cpu.AVX2

// validAVX2 reports whether a text of n bytes, a positive multiple of 32, is valid so far: its last character may
// be incomplete.
//
//go:noescape
func validAVX2(text *byte, n int) bool

// Valid reports whether text is valid UTF-8.
func Valid(text []byte) bool {
	n := len(text) &^ 31
	if n == 0 || !hasAVX2 {
		return utf8.Valid(text)
	}
	if !validAVX2(&text[0], n) {
		return false
	}
	for back := 1; back < utf8.UTFMax; back++ {
		if b := text[n-back]; b >= utf8.RuneSelf && utf8.RuneStart(b) {
			n -= back // the last character, which may go on
			break
		}
	}
	return utf8.Valid(text[n:])
}
