//go:build !amd64 || purego

package checksum

const hasWide = false

func accumulate(acc *[8]uint64, p, secret []byte) { accumulateGo(acc, p, secret) }
