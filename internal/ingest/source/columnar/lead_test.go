package columnar

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// failing is a file whose goroutines fail to read it from an offset on.
type failing struct {
	io.ReaderAt
	from int64
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, errors.New("the disk failed")
	}
	return f.ReaderAt.ReadAt(p, off)
}

// TestLead: large buffers that are read ahead, one after another and also where one is left early, have their bytes; what
// fails ahead is read again.
func TestLead(t *testing.T) {
	data := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{1}).Read(data)
	file := bytes.NewReader(data)
	f := &arrowFile{}
	f.options.Spare.Bytes = decompress.ReadAheadBytes
	var s, other stream
	defer s.close()
	for _, c := range []struct{ from, to, take, fails int }{
		{0, 1 << 20, 1 << 20, len(data)}, {7, 2 << 20, 300 << 10, len(data)}, {1 << 20, 2 << 20, 1 << 20, 3 << 19}, {5, 1<<20 + 5, 1 << 20, 0},
	} {
		offset, length := int64(c.from), int64(c.to-c.from)
		if f.leads(&other, length) != (s.ahead == nil) { // it takes the room
			t.Error("more is read ahead than there is room for")
		}
		src := s.lead(failing{file, int64(c.fails)}, io.NewSectionReader(file, offset, length), offset, length)
		got, err := io.ReadAll(io.LimitReader(src, int64(c.take)))
		if err != nil || !bytes.Equal(got, data[c.from:c.from+c.take]) {
			t.Fatalf("%+v: %d bytes, %v", c, len(got), err)
		}
		if n, err := src.Read(make([]byte, 1)); c.take == c.to-c.from && (n > 0 || err != io.EOF) {
			t.Errorf("%+v: %d more bytes, %v", c, n, err)
		}
	}
	if f.leads(&other, decompress.ReadAheadBytes-1) {
		t.Error("a small buffer is read ahead")
	}
}
