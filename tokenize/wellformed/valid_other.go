//go:build !amd64 || purego

package wellformed

import "unicode/utf8"

// Valid reports whether text is valid UTF-8.
func Valid(text []byte) bool { return utf8.Valid(text) }
