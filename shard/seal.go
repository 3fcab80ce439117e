package shard

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/zeebo/blake3"
)

// A sealed file is a JSON object whose last member, "blake3", is the checksum of every byte before
// that member's line. What follows it is fixed. So every changed byte is found, and other programs
// still read plain JSON.

const (
	sealBefore = "  \"blake3\": \""
	sealAfter  = "\"\n}\n"
	sealDigits = 64
	sealBytes  = len(sealBefore) + sealDigits + len(sealAfter)
)

// checkSeal verifies data as a whole; file is for messages.
func checkSeal(file string, data []byte) error {
	if len(data) < sealBytes {
		return truncated(file, int64(len(data)), int64(sealBytes))
	}
	body, seal := data[:len(data)-sealBytes], data[len(data)-sealBytes:]
	if string(seal) != sealOf(body) {
		return corrupt(file, -1, "its own checksum differs")
	}
	return nil
}

// CheckSealedFile is CheckSealed for a file that need not fit in memory.
func CheckSealedFile(file string, r io.ReaderAt, size int64) (string, error) {
	if size < int64(sealBytes) {
		return "", truncated(file, size, int64(sealBytes))
	}
	h := blake3.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, size-int64(sealBytes))); err != nil {
		return "", err
	}
	seal := make([]byte, sealBytes)
	if _, err := io.ReadFull(io.NewSectionReader(r, size-int64(sealBytes), int64(sealBytes)), seal); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if string(seal) != sealBefore+sum+sealAfter {
		return "", corrupt(file, -1, "its own checksum differs")
	}
	return sum, nil
}

func sealOf(body []byte) string {
	sum := blake3.Sum256(body)
	return sealBefore + hex.EncodeToString(sum[:]) + sealAfter
}

// sealedWriter writes a sealed file in a layout that people can read and diff: one line for each
// member and for each element of a long list. It keeps the first error.
type sealedWriter struct {
	b   bytes.Buffer
	err error
}

func newSealedWriter() *sealedWriter {
	w := &sealedWriter{}
	w.b.WriteString("{\n")
	return w
}

func (w *sealedWriter) value(v any) {
	data, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.b.Write(data)
}

// member writes a line of the outer object.
func (w *sealedWriter) member(name string, v any) {
	fmt.Fprintf(&w.b, "  %q: ", name)
	w.value(v)
	w.b.WriteString(",\n")
}

// lines writes a member that is a list of n elements, each on its own line.
func (w *sealedWriter) lines(name string, n int, at func(int) any) {
	fmt.Fprintf(&w.b, "  %q: ", name)
	w.list("    ", n, at)
	w.b.WriteString(",\n")
}

func (w *sealedWriter) list(indent string, n int, at func(int) any) {
	w.b.WriteString("[")
	for i := range n {
		if i > 0 {
			w.b.WriteString(",")
		}
		w.b.WriteString("\n" + indent)
		w.value(at(i))
	}
	w.b.WriteString("]")
}

// open and close bracket a member that is a list of objects, each from element to endElement with
// fields between.
func (w *sealedWriter) open(name string) { fmt.Fprintf(&w.b, "  %q: [", name) }
func (w *sealedWriter) close()           { w.b.WriteString("],\n") }

func (w *sealedWriter) element(first bool) {
	if !first {
		w.b.WriteString(",")
	}
	w.b.WriteString("\n    {")
}

func (w *sealedWriter) field(name string, v any) {
	fmt.Fprintf(&w.b, "%q: ", name)
	w.value(v)
	w.b.WriteString(",\n     ")
}

// fieldLines writes the last field of an element.
func (w *sealedWriter) fieldLines(name string, n int, at func(int) any) {
	fmt.Fprintf(&w.b, "%q: ", name)
	w.list("      ", n, at)
}

// lastField writes the last field of an element.
func (w *sealedWriter) lastField(name string, v any) {
	fmt.Fprintf(&w.b, "%q: ", name)
	w.value(v)
}

func (w *sealedWriter) endElement() { w.b.WriteString("}") }

// seal ends the object.
func (w *sealedWriter) seal() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	w.b.WriteString(sealOf(w.b.Bytes()))
	return w.b.Bytes(), nil
}

// EncodeSealed returns a sealed file with these members, sorted by name, each on a line.
func EncodeSealed(members map[string]json.RawMessage) ([]byte, error) {
	w := newSealedWriter()
	for _, name := range sortedKeys(members) {
		w.member(name, members[name])
	}
	return w.seal()
}

// CheckSealed checks a sealed file and returns its seal, 64 hexadecimal digits; file is for
// messages.
func CheckSealed(file string, data []byte) (string, error) {
	if err := checkSeal(file, data); err != nil {
		return "", err
	}
	return string(data[len(data)-len(sealAfter)-sealDigits : len(data)-len(sealAfter)]), nil
}
