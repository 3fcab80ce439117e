// Package checksum has the checksum of what was read of an input, and one that can be resumed.
package checksum

import (
	"encoding/hex"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/zeebo/xxh3"
)

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
