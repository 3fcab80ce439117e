package flatbuf

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// fileOf returns what reads a file with this content.
func fileOf(data []byte) func(p []byte, at int64) error {
	return func(p []byte, at int64) error {
		_, err := bytes.NewReader(data).ReadAt(p, at)
		return err
	}
}

// A long buffer of FlatBuffers gives the values that it has when it is in memory as a whole.
func TestLongBuffer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 3*BufferBytes+5)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	var long Buffer
	if err := long.Open(fileOf(append([]byte("head"), data...)), 4, len(data)); err != nil ||
		long.whole != nil {
		t.Fatal(err)
	}
	at := 0
	for i := range 50_000 {
		switch at += rnd.IntN(50) - 20; {
		case i%10 == 0:
			at = rnd.IntN(len(data))
		case i%10 == 1:
			at = pageBytes*rnd.IntN(3*numPages) - rnd.IntN(9)
		}
		at = max(0, min(at, len(data)-1))
		want := int64(0)
		if at+8 <= len(data) {
			want = int64(binary.LittleEndian.Uint64(data[at:]))
		}
		if got := long.Int64(at); got != want {
			t.Fatalf("at %d: %d, want %d", at, got, want)
		}
	}
	if err := long.Open(fileOf(data[:BufferBytes]), 0, len(data)); err != nil {
		t.Fatal(err)
	}
	if long.Uint32(0) == 0 || long.Uint32(BufferBytes) != 0 || long.Err == nil || long.Uint32(0) != 0 {
		t.Errorf("beyond the end of the file: %v", long.Err)
	}
}
