package shardfile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/zeebo/blake3"
)

// A sealed file is a JSON object whose last member, "blake3", is the checksum of every byte before
// that member's line. What follows it is fixed. So every changed byte is found, and other programs
// still read plain JSON.

const (
	SealBefore = "  \"blake3\": \""
	SealAfter  = "\"\n}\n"
	SealDigits = 64
	SealBytes  = len(SealBefore) + SealDigits + len(SealAfter)
)

// CheckSeal checks a sealed file and returns its seal, 64 hexadecimal digits; file is for messages.
func CheckSeal(file string, data []byte) (string, error) {
	return CheckSealedFile(file, bytes.NewReader(data), int64(len(data)))
}

// CheckSealedFile is CheckSeal for a file that need not fit in memory.
func CheckSealedFile(file string, r io.ReaderAt, size int64) (string, error) {
	if size < int64(SealBytes) {
		return "", Truncated(file, size, int64(SealBytes))
	}
	h := blake3.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, size-int64(SealBytes))); err != nil {
		return "", err
	}
	seal := make([]byte, SealBytes)
	if _, err := io.ReadFull(io.NewSectionReader(r, size-int64(SealBytes), int64(SealBytes)), seal); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if string(seal) != SealBefore+sum+SealAfter {
		return "", Corrupt(file, -1, "its own checksum differs")
	}
	return sum, nil
}

// sealedWriter writes a sealed file in a layout that people can read and diff: one line for each
// member and for each element of a long list. It keeps the first error.
type sealedWriter struct {
	to   io.Writer
	hash *blake3.Hasher
	left int64 // bytes that the file may still have
	b    bytes.Buffer
	err  error
}

// sealedPiece is about how many bytes a sealedWriter holds.
const sealedPiece = 32 << 10

// NewSealedWriter returns a writer of a sealed file of at most limit bytes.
func NewSealedWriter(to io.Writer, limit int64) *sealedWriter {
	w := &sealedWriter{to: to, hash: blake3.New(), left: limit}
	w.b.WriteString("{\n")
	return w
}

// flush passes the buffer on.
func (w *sealedWriter) flush() {
	if w.err != nil {
		return
	}
	w.hash.Write(w.b.Bytes()) // never fails
	if w.left -= int64(w.b.Len()); w.left < 0 {
		w.err = fmt.Errorf("%w: the manifest of this many shards is larger than readers accept; "+
			"build with larger shards", ErrTooLarge)
		return
	}
	_, w.err = w.to.Write(w.b.Bytes())
	w.b.Reset()
}

func (w *sealedWriter) value(v any) {
	data, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.b.Write(data)
	if w.b.Len() > sealedPiece {
		w.flush()
	}
}

// Member writes a line of the outer object.
func (w *sealedWriter) Member(name string, v any) {
	fmt.Fprintf(&w.b, "  %q: ", name)
	w.value(v)
	w.b.WriteString(",\n")
}

// Lines writes a member that is a list of n elements, each on its own line.
func (w *sealedWriter) Lines(name string, n int, at func(int) any) {
	fmt.Fprintf(&w.b, "  %q: ", name)
	w.elements("    ", n, at)
	w.b.WriteString(",\n")
}

// FieldLines writes a field that is a list of n elements, each on its own line.
func (w *sealedWriter) FieldLines(name string, n int, at func(int) any) {
	fmt.Fprintf(&w.b, "%q: ", name)
	w.elements("      ", n, at)
	w.b.WriteString(",\n     ")
}

func (w *sealedWriter) elements(indent string, n int, at func(int) any) {
	w.list(indent, func(add func(any) error) error {
		for i := range n {
			add(at(i)) // its error is w's
		}
		return nil
	})
}

func (w *sealedWriter) list(indent string, each func(add func(any) error) error) {
	w.b.WriteString("[")
	first := true
	err := each(func(v any) error {
		if !first {
			w.b.WriteString(",")
		}
		first = false
		w.b.WriteString("\n" + indent)
		w.value(v)
		return w.err
	})
	if err != nil && w.err == nil {
		w.err = err
	}
	w.b.WriteString("]")
}

// Open and close bracket a member that is a list of objects, each from element to EndElement with
// fields between.
func (w *sealedWriter) Open(name string) { fmt.Fprintf(&w.b, "  %q: [", name) }
func (w *sealedWriter) Close()           { w.b.WriteString("],\n") }

func (w *sealedWriter) Element(first bool) {
	if !first {
		w.b.WriteString(",")
	}
	w.b.WriteString("\n    {")
}

func (w *sealedWriter) Field(name string, v any) {
	w.LastField(name, v)
	w.b.WriteString(",\n     ")
}

// LastLines writes the last field of an element, a list with each of its elements on its own line.
func (w *sealedWriter) LastLines(name string, each func(add func(any) error) error) {
	fmt.Fprintf(&w.b, "%q: ", name)
	w.list("      ", each)
}

// LastField writes the last field of an element.
func (w *sealedWriter) LastField(name string, v any) {
	fmt.Fprintf(&w.b, "%q: ", name)
	w.value(v)
}

func (w *sealedWriter) EndElement() { w.b.WriteString("}") }

// Seal ends the object.
func (w *sealedWriter) Seal() error {
	w.flush()
	if w.err == nil {
		_, w.err = io.WriteString(w.to, SealBefore+hex.EncodeToString(w.hash.Sum(nil))+SealAfter)
	}
	return w.err
}

// EncodeSealed returns a sealed file with the members of an object, sorted by name, each on a line.
func EncodeSealed(object any) ([]byte, error) {
	var members map[string]json.RawMessage
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &members)
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := NewSealedWriter(&b, math.MaxInt64)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w.Member(name, members[name])
	}
	err = w.Seal()
	return b.Bytes(), err
}
