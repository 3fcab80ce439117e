package tokenize

import "github.com/dsload/dsload/tokenize/internal/normalize"

// Valid reports whether text is valid UTF-8, as utf8.Valid does, but several times as fast.
func Valid(text []byte) bool { return normalize.Valid(text) }

// AppendValid appends text to dst as tokenizers read it: with every maximal ill-formed part replaced
// by one U+FFFD. replaced counts them.
func AppendValid(dst, text []byte) (out []byte, replaced int) {
	return normalize.AppendValid(dst, text)
}
