//go:build !amd64 || purego

package jsonscan

const hasWide = false

func scanWide([]byte, *[256]byte) (end int, escaped bool) { return 0, false }

func unescapeWide(dst, _ []byte) (text []byte, read int) { return dst, 0 }
