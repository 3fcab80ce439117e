package decompress

import (
	"encoding/binary"
	"io"
)

// A steadyReader reads blocks of one size, whatever size it is asked for. A read in which the xz
// decoder meets damage gives nothing, so the size decides how much comes before the damage.
type steadyReader struct {
	src   io.Reader
	block [4 << 10]byte
	rest  []byte
	err   error
}

func (r *steadyReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var n int
		n, r.err = ReadBlock(r.src, r.block[:])
		r.rest = r.block[:n]
	}
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

// XZDictionary returns the dictionary that the first block of xz data asks for, in bytes, 0 if head
// does not say. The decoder refuses what is not a block.
func XZDictionary(head []byte) int64 {
	const streamHeader, lzma2 = 12, 0x21
	if len(head) < streamHeader+2 {
		return 0
	}
	block := head[streamHeader:]
	size := 4 * (int(block[0]) + 1)
	if block[0] == 0 || len(block) < size {
		return 0 // no block: an empty stream
	}
	block = block[:size]
	flags, at := block[1], 2
	number := func() uint64 {
		v, n := binary.Uvarint(block[at:])
		at += max(n, 0)
		return v
	}
	for _, flag := range []byte{0x40, 0x80} { // sizes
		if flags&flag != 0 {
			number()
		}
	}
	for range int(flags&3) + 1 {
		id, properties := number(), int(min(number(), 64))
		if at+properties > len(block) {
			return 0
		}
		if id == lzma2 && properties == 1 {
			b := int64(block[at])
			return (2 | b&1) << (min(b, 40)/2 + 11)
		}
		at += properties
	}
	return 0
}
