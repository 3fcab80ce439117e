package source

import (
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/remote"
)

// A rawCheck compares the bytes of a file, as stored, with the hash that its server announced. What
// is read again after a jump back is not hashed twice, so it may be ahead of the position that its
// state is kept with.
type rawCheck struct {
	name string // what the hash is called
	want string // in hexadecimal
	hash hash.Hash
	at   int64 // bytes that were hashed
}

// newRawCheck returns nil if the server announced nothing.
func newRawCheck(o *remote.Object) *rawCheck {
	h, want := o.NewHash()
	if h == nil {
		return nil
	}
	name, _, _ := strings.Cut(o.Hash, ":")
	return &rawCheck{name: name, want: want, hash: h}
}

// add takes bytes in that begin at an offset.
func (c *rawCheck) add(p []byte, offset int64) {
	if skip := c.at - offset; skip > 0 {
		p = p[min(skip, int64(len(p))):]
	}
	c.hash.Write(p) // never fails
	c.at += int64(len(p))
}

// finish reads what follows the text, if anything does, and compares.
func (c *rawCheck) finish(r *decompress.Counted) error {
	buf := make([]byte, 4<<10)
	for r.Err == nil {
		r.Read(buf) // the error is kept
	}
	if err := r.Err; err != io.EOF {
		return err
	}
	if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.want {
		return &remote.Error{Kind: remote.ErrMismatch,
			Text: fmt.Sprintf("its %s is %s, and its server announced %s: the download or the file on the server is damaged",
				c.name, got, c.want),
			Hint: "start the build afresh"}
	}
	return nil
}

// state returns what restore needs.
func (c *rawCheck) state() []byte {
	state, _ := c.hash.(encoding.BinaryMarshaler).MarshalBinary() // the standard library's hashes never fail
	return state
}

func (c *rawCheck) restore(state []byte, at int64) bool {
	c.at = at
	return c.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(state) == nil
}
