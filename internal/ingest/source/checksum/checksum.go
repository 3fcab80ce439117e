// Package checksum has the checksum of what was read of an input, and one that can be resumed.
package checksum

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/zeebo/xxh3"
)

// A Resumable is the XXH3-128 of what was written to it. Unlike the library's, its state can be
// saved, so that a remote input resumed in its middle is not read again for its checksum. The
// algorithm is the long form of XXH3 with the default secret, from Yann Collet's specification;
// inputs of at most 240 bytes are left to the library.
type Resumable struct {
	Size uint64 // bytes written

	acc  [8]uint64
	tail [sumStripe]byte // the end of the last whole block
	buf  [sumBlock]byte  // what follows it
	n    int             // bytes of buf
}

const (
	sumStripe  = 64
	sumBlock   = sumStripes * sumStripe
	sumStripes = 16  // stripes until the secret is used up
	sumShort   = 240 // the longest input of the short forms
	sumPrime1  = 0x9E3779B1
	sumPrime2  = 0x85EBCA77
	sumPrime3  = 0xC2B2AE3D
	sumPrime1L = 0x9E3779B185EBCA87
	sumPrime2L = 0xC2B2AE3D27D4EB4F
	sumPrime3L = 0x165667B19E3779F9
	sumPrime4L = 0x85EBCA77C2B2AE63
	sumPrime5L = 0x27D4EB2F165667C5
)

// sumSecret is the default secret of XXH3.
var sumSecret = [192]byte{
	0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
	0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
	0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
	0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
	0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
	0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
	0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
	0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
	0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
	0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
	0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
	0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
}

// NewResumable returns the checksum of nothing.
func NewResumable() *Resumable {
	s := &Resumable{}
	s.Reset()
	return s
}

// Reset makes it the checksum of nothing.
func (s *Resumable) Reset() {
	s.acc = [8]uint64{sumPrime3, sumPrime1L, sumPrime2L, sumPrime3L, sumPrime4L, sumPrime2, sumPrime5L, sumPrime1}
	s.Size, s.n = 0, 0
}

// A Hasher makes the checksum of what is written to it as a Resumable does where vectors take in the stripes, and else
// as the library's hasher does, which copies nearly all of it first. Reset comes before all other methods.
type Hasher struct {
	wide   Resumable
	narrow xxh3.Hasher
}

// Reset makes it the checksum of nothing.
func (h *Hasher) Reset() {
	h.wide.Reset()
	h.narrow.Reset()
}

// Write implements io.Writer; it never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	if hasWide {
		return h.wide.Write(p)
	}
	return h.narrow.Write(p)
}

// Sum returns the checksum of what was written so far.
func (h *Hasher) Sum() Sum {
	if hasWide {
		return h.wide.Sum()
	}
	return Of(&h.narrow)
}

// accumulateGo takes the whole stripes of p in, each with the secret from 8 bytes further on, and ends a block after
// as many as that has.
func accumulateGo(acc *[8]uint64, p, secret []byte) {
	for rest := secret; len(p) >= sumStripe; p = p[sumStripe:] {
		stripe, key := (*[sumStripe]byte)(p), (*[sumStripe]byte)(rest)
		for i := 0; i < 8; i += 2 {
			a, b := binary.LittleEndian.Uint64(stripe[8*i:]), binary.LittleEndian.Uint64(stripe[8*i+8:])
			x, y := a^binary.LittleEndian.Uint64(key[8*i:]), b^binary.LittleEndian.Uint64(key[8*i+8:])
			acc[i] += b + (x&0xFFFFFFFF)*(x>>32)
			acc[i+1] += a + (y&0xFFFFFFFF)*(y>>32)
		}
		if rest = rest[8:]; len(secret)-len(rest) < 8*sumStripes {
			continue
		}
		for i, a := range acc {
			acc[i] = (a ^ a>>47 ^ binary.LittleEndian.Uint64(rest[8*i:])) * sumPrime1
		}
		rest = secret
	}
}

// Write implements io.Writer; it never fails. A block is taken in once something follows it: the
// last one is treated in another way.
func (s *Resumable) Write(p []byte) (int, error) {
	written := len(p)
	s.Size += uint64(written)
	for len(p) > 0 {
		if s.n == sumBlock {
			accumulate(&s.acc, s.buf[:], sumSecret[:])
			copy(s.tail[:], s.buf[sumBlock-sumStripe:])
			s.n = 0
		}
		if n := (len(p) - 1) / sumBlock * sumBlock; s.n == 0 && n > 0 {
			accumulate(&s.acc, p[:n], sumSecret[:])
			copy(s.tail[:], p[n-sumStripe:n])
			p = p[n:]
			continue
		}
		n := copy(s.buf[s.n:], p)
		s.n += n
		p = p[n:]
	}
	return written, nil
}

// Sum returns the checksum of what was written so far.
func (s *Resumable) Sum() (sum Sum) {
	if s.Size <= sumShort {
		h := xxh3.Hash128(s.buf[:s.n])
		return h.Bytes()
	}
	acc := s.acc
	accumulate(&acc, s.buf[:(s.n-1)/sumStripe*sumStripe], sumSecret[:])
	var last [sumStripe]byte
	if s.n >= sumStripe {
		copy(last[:], s.buf[s.n-sumStripe:s.n])
	} else {
		copy(last[:], s.tail[s.n:])
		copy(last[sumStripe-s.n:], s.buf[:s.n])
	}
	accumulate(&acc, last[:], sumSecret[len(sumSecret)-sumStripe-7:])
	binary.BigEndian.PutUint64(sum[:8], mergeSum(&acc, sumSecret[len(sumSecret)-sumStripe-11:], ^(s.Size*sumPrime2L)))
	binary.BigEndian.PutUint64(sum[8:], mergeSum(&acc, sumSecret[11:], s.Size*sumPrime1L))
	return sum
}

func mergeSum(acc *[8]uint64, secret []byte, start uint64) uint64 {
	for i := 0; i < 8; i += 2 {
		hi, lo := bits.Mul64(acc[i]^binary.LittleEndian.Uint64(secret[8*i:]),
			acc[i+1]^binary.LittleEndian.Uint64(secret[8*i+8:]))
		start += hi ^ lo
	}
	start ^= start >> 37
	start *= 0x165667919E3779F9
	return start ^ start>>32
}

// stateBytes is the size of a state without what follows the last whole block.
const stateBytes = 8*8 + 8 + sumStripe

// AppendState appends what RestoreState needs.
func (s *Resumable) AppendState(dst []byte) []byte {
	dst = slices.Grow(dst, stateBytes+s.n)
	for _, a := range s.acc {
		dst = binary.LittleEndian.AppendUint64(dst, a)
	}
	dst = binary.LittleEndian.AppendUint64(dst, s.Size)
	dst = append(dst, s.tail[:]...)
	return append(dst, s.buf[:s.n]...)
}

// RestoreState sets the state that AppendState wrote, and reports whether it is valid.
func (s *Resumable) RestoreState(state []byte) bool {
	if len(state) < stateBytes || len(state) > stateBytes+sumBlock {
		return false
	}
	for i := range s.acc {
		s.acc[i] = binary.LittleEndian.Uint64(state[8*i:])
	}
	s.Size = binary.LittleEndian.Uint64(state[64:])
	copy(s.tail[:], state[72:])
	s.n = copy(s.buf[:], state[stateBytes:])
	return s.Size >= uint64(s.n)
}

// Sum is an XXH3-128 checksum in its canonical (big-endian) byte order.
type Sum [16]byte

// String returns the checksum as xxhsum prints it.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Tagged returns the checksum as manifests have it, after the name of its hash.
func (s Sum) Tagged() string { return "xxh3-128:" + s.String() }

// IsZero reports whether there is no checksum.
func (s Sum) IsZero() bool { return s == Sum{} }

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return fault.Of(cause.Corrupt, "checksum of %d digits", len(text))
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Of returns the checksum of what was written to hasher.
func Of(hasher *xxh3.Hasher) Sum { return hasher.Sum128().Bytes() }

// Then is Chain of another checksum.
func (s Sum) Then(next Sum) Sum {
	var both [2 * len(s)]byte
	copy(both[copy(both[:], s[:]):], next[:])
	return xxh3.Hash128(both[:]).Bytes()
}

// Chain returns the checksum over a checksum and what follows it: a digest of a list that can be
// stopped and resumed after each of its members.
func (s Sum) Chain(data []byte) Sum {
	h := xxh3.New()
	h.Write(s[:]) // never fails
	h.Write(data)
	return Of(h)
}
