package build

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dsload/dsload/loader/remote"
	"github.com/dsload/dsload/loader/remote/remotetest"
)

// A file of a bucket that several machines write to is written again while it is read: with the same
// bytes, as a twin does, and with others.
func TestSharedFileWrittenAgain(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	text := strings.Repeat("0123456789abcdef", 1<<16)
	put := func(text, etag string) {
		srv.Put("/part-p00000.json", remotetest.File{Data: []byte(text), ETag: etag})
	}
	put(text, `"first"`)
	store := remote.NewStore(remote.Options{})
	defer store.Close()
	f, err := newSharedFile(func() (*remote.File, error) {
		o, _, err := store.Stat(context.Background(), srv.URL+"/part-p00000.json", make([]byte, 1))
		return store.Open(o), err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, len(text))
	for i, half := range [][]byte{got[:len(got)/2], got[len(got)/2:]} {
		put(text, []string{`"second"`, `"third"`}[i])
		if _, err := f.ReadAt(half, int64(i*len(half))); err != nil {
			t.Fatal(err)
		}
	}
	if string(got) != text {
		t.Error("other bytes")
	}
	put(text[1:], `"fourth"`)
	n, err := f.ReadAt(got, 0)
	if changed := (*remote.ChangedError)(nil); !errors.As(err, &changed) {
		t.Errorf("read %d bytes of a file of another size: %v", n, err)
	}
}
