package builtin

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/pairhash"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
	"github.com/klauspost/compress/zstd"
)

// header begins a prepared vocabulary, little-endian, which is compressed by zstd. The ranks from 256 on
// follow, each of which is a merge of two lower ones: the low bytes of all left ranks, their second bytes,
// those of all right ranks, and if there are more than 65,536 ranks, a byte for each with the bits above,
// left ones below right ones. The displacements of the pairs' perfect hash come last, low bytes first.
type header struct {
	Tokens, TextBytes       uint32 // number of ranks, and the total length of their tokens
	Multiplier              uint64 // the perfect hash's
	SlotBits, Displacements uint32 // the perfect hash's
	Fingerprint             [32]byte
	Bytes                   [256]byte // the tokens of the ranks below 256
}

// expand decompresses a prepared vocabulary.
func expand(packed []byte) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(packed, nil)
}

// shortText is the length of the texts that are copied without a call.
const shortText = 16

// prepare builds the tables of a prepared vocabulary. mem counts their memory.
func prepare(packed []byte, mem *spec.Meter) (m *spec.Ranks, fingerprint string, err error) {
	file, err := expand(packed)
	if err != nil {
		return nil, "", err
	}
	var h header
	n, err := binary.Decode(file, binary.LittleEndian, &h)
	if err != nil {
		return nil, "", err
	}
	merges := int(h.Tokens) - len(h.Bytes)
	planes := 4 * merges
	if h.Tokens > 1<<16 {
		planes += merges
	}
	if want := n + planes + 2*int(h.Displacements); len(file) != want {
		return nil, "", fmt.Errorf("%d bytes, want %d", len(file), want)
	}
	if err := mem.Take(int64(h.Tokens)*spec.ListedTokenBytes+int64(h.TextBytes), "the ranks"); err != nil {
		return nil, "", err
	}
	plane := func(i int) []byte { return file[n+i*merges:][:merges] }
	left, left8, right, right8, high := plane(0), plane(1), plane(2), plane(3), file[n+4*merges:n+planes]
	disp := make([]uint16, h.Displacements)
	low, low8 := file[n+planes:][:len(disp)], file[n+planes+len(disp):]
	for i := range disp {
		disp[i] = uint16(low[i]) | uint16(low8[i])<<8
	}
	pairs := pairhash.NewEmpty(h.Multiplier, int(h.SlotBits), disp)
	blob := make([]byte, int(h.TextBytes)+shortText) // the copy of a short text goes past its end
	used := copy(blob, h.Bytes[:])
	offsets := make([]uint32, 0, h.Tokens+1)
	for i := range uint32(len(h.Bytes) + 1) {
		offsets = append(offsets, i)
	}
	for i := range merges {
		l, r := uint32(left[i])|uint32(left8[i])<<8, uint32(right[i])|uint32(right8[i])<<8
		if len(high) > 0 {
			l, r = l|uint32(high[i]&15)<<16, r|uint32(high[i]>>4)<<16
		}
		pairs.Put(pairhash.Key(l, r)<<24 | uint64(len(h.Bytes)+i))
		for _, part := range [2]uint32{l, r} {
			to, from := blob[used:], blob[offsets[part]:]
			n := int(offsets[part+1] - offsets[part])
			if n <= shortText {
				*(*[shortText]byte)(to) = *(*[shortText]byte)(from)
			} else {
				copy(to, from[:n])
			}
			used += n
		}
		offsets = append(offsets, uint32(used))
	}
	return &spec.Ranks{Vocab: vocab.FromBlob(blob[:used:used], offsets), Pairs: &pairs}, hex.EncodeToString(h.Fingerprint[:]), nil
}
