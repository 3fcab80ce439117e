package spec

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Hasher computes a fingerprint incrementally.
type Hasher struct {
	*bufio.Writer
	sum hash.Hash
}

// NewHasher starts the fingerprint of a kind of file.
func NewHasher(kind string) Hasher {
	h := sha256.New()
	w := Hasher{bufio.NewWriter(h), h}
	w.WriteString(kind)
	w.WriteByte(0)
	return w
}

// String returns the fingerprint in hexadecimal.
func (h Hasher) String() string {
	h.Flush() // writing to a hash never fails
	return hex.EncodeToString(h.sum.Sum(nil))
}

// Fingerprint returns the fingerprint of a whole file.
func Fingerprint(kind string, data []byte) string {
	h := NewHasher(kind)
	h.Write(data)
	return h.String()
}

// Concurrently starts f in a goroutine and returns a function that waits for its result. It serves to
// compute a file's fingerprint while its tables are built.
func Concurrently[T any](f func() T) (wait func() T) {
	result := make(chan T, 1)
	go func() { result <- f() }()
	return func() T { return <-result }
}
