package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// A file of a bucket that several machines write to is written again while it is read: with the same
// bytes, as a twin does, and with others.
func TestSharedFileWrittenAgain(t *testing.T) {
	srv, buckets := remotetest.MemoryBuckets()
	defer srv.Close()
	for _, e := range buckets["gs"].Env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	objects := remote.NewStore(remote.Options{})
	defer objects.Close()
	ctx, at := t.Context(), &folder{store: objects, uri: buckets["gs"].URI + "/parts"}
	text := strings.Repeat("0123456789abcdef", 1<<16)
	put := func(text string) {
		t.Helper()
		if err := at.put(ctx, "part-p00000.json", strings.NewReader(text), int64(len(text))); err != nil {
			t.Fatal(err)
		}
	}
	put(text)
	o, err := at.describe(ctx, "part-p00000.json")
	if err != nil {
		t.Fatal(err)
	}
	f := &sharedFile{unwritable{o.URI}, at.store.Open(ctx, o), ctx, at}
	defer f.Close()
	got := make([]byte, len(text))
	for i, half := range [][]byte{got[:len(got)/2], got[len(got)/2:]} {
		put(text) // another generation of the object
		if _, err := f.ReadAt(half, int64(i*len(half))); err != nil {
			t.Fatal(err)
		}
	}
	if string(got) != text {
		t.Error("other bytes")
	}
	put(text[1:])
	n, err := f.ReadAt(got, 0)
	if changed := (*remote.ChangedError)(nil); !errors.As(err, &changed) {
		t.Errorf("read %d bytes of a file of another size: %v", n, err)
	}
}
