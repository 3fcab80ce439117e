package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

// eachBucket runs a test with a bucket in memory for each kind.
func eachBucket(t *testing.T, test func(t *testing.T, srv *remotetest.Server, s *Store, uri string)) {
	remotetest.EachMemoryBucket(t, func(t *testing.T, srv *remotetest.Server, uri string) {
		test(t, srv, newStore(t, srv), uri)
	})
}

func putBytes(t *testing.T, s *Store, uri string, data []byte) {
	t.Helper()
	if _, err := s.Put(context.Background(), uri, bytes.NewReader(data), int64(len(data)), Condition{}); err != nil {
		t.Fatal(err)
	}
}

// What is put into a bucket is described, listed in order over several pages, read, and removed.
func TestObjects(t *testing.T) {
	ctx := context.Background()
	eachBucket(t, func(t *testing.T, _ *remotetest.Server, s *Store, uri string) {
		var want []string
		for i := range 45 {
			name := fmt.Sprintf("a b/%02d é.txt", i)
			want = append(want, strings.TrimPrefix(name, "a b/"))
			putBytes(t, s, uri+"/"+name, content(i*1000))
		}
		putBytes(t, s, uri+"/other", []byte("x"))
		var got []string
		var last Object
		if err := s.List(ctx, uri+"/a b", func(name string, o Object) error {
			got, last = append(got, name), o
			return nil
		}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: %q", err, got)
		}
		o, err := s.Describe(ctx, uri+"/a b/44 é.txt")
		if err != nil || o != last || o.Size != 44_000 || o.ETag == "" || o.Modified.IsZero() {
			t.Errorf("%v: %+v, listed as %+v", err, o, last)
		}
		if data, err := s.ReadAll(ctx, o, 1<<20); err != nil || !bytes.Equal(data, content(44_000)) {
			t.Errorf("%d bytes, %v", len(data), err)
		}
		if err := errors.Join(s.Remove(ctx, o.URI), s.Remove(ctx, o.URI)); err != nil {
			t.Error(err)
		}
		if _, err := s.Describe(ctx, o.URI); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was removed: %v", err)
		}
		broken := errors.New("enough")
		if err := s.List(ctx, uri, func(string, Object) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("a list that is ended: %v", err)
		}
	})
}

// A write whose condition is not met changes nothing, where the store knows conditions. One whose answer was lost
// is found to be stored.
func TestPutUnderCondition(t *testing.T) {
	ctx := context.Background()
	eachBucket(t, func(t *testing.T, srv *remotetest.Server, s *Store, uri string) {
		put := func(text string, when Condition) (string, error) {
			return s.Put(ctx, uri+"/x", strings.NewReader(text), int64(len(text)), when)
		}
		holds := func(want string) {
			t.Helper()
			o, err := s.Describe(ctx, uri+"/x")
			if err != nil {
				t.Fatal(err)
			}
			if data, err := s.ReadAll(ctx, o, 100); err != nil || string(data) != want {
				t.Errorf("%q, %v, want %q", data, err, want)
			}
		}
		if _, err := put("zero", Condition{ETag: `"7"`}); !errors.Is(err, ErrConflict) {
			t.Errorf("a version of nothing: %v", err)
		}
		first, err := put("one", Condition{Absent: true})
		if err != nil || first == "" {
			t.Fatalf("%q, %v", first, err)
		}
		if _, err := put("two", Condition{Absent: true}); !errors.Is(err, ErrConflict) {
			t.Errorf("it is there: %v", err)
		}
		holds("one")
		second, err := put("three", Condition{ETag: first})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := put("four", Condition{ETag: first}); !errors.Is(err, ErrConflict) {
			t.Errorf("an earlier version: %v", err)
		}
		lost := false
		srv.OnWrite = func(string, string) (f remotetest.WriteFault) {
			f.Lose, lost = !lost, true
			return f
		}
		if _, err := put("five", Condition{ETag: second}); !errors.Is(err, ErrConflict) {
			t.Errorf("its answer was lost: %v", err)
		}
		srv.OnWrite = nil
		holds("five")
		for _, c := range []remotetest.Conditions{remotetest.ConditionsIgnored, remotetest.ConditionsRefused} {
			srv.Conditions = c
			text := fmt.Sprint("without conditions ", c)
			if _, err := put(text, Condition{Absent: true}); err != nil {
				t.Error(err)
			}
			holds(text)
		}
	})
}

// A read continues after passing faults with the same bytes, and ends where the object was written again.
func TestObjectFaults(t *testing.T) {
	ctx, data, soon := context.Background(), content(300_000), http.Header{"Retry-After": {"0"}}
	eachBucket(t, func(t *testing.T, srv *remotetest.Server, s *Store, uri string) {
		putBytes(t, s, uri+"/x", data)
		o, err := s.Describe(ctx, uri+"/x")
		if err != nil {
			t.Fatal(err)
		}
		read := func(faults ...remotetest.Fault) ([]byte, error) {
			srv.Fail(faults...)
			f := s.Open(context.Background(), o)
			defer f.Close()
			return io.ReadAll(f)
		}
		got, err := read(remotetest.Fault{Drop: 100_000}, remotetest.Fault{Status: 503, Header: soon},
			remotetest.Fault{Status: 429, Header: soon}, remotetest.Fault{Drop: 1})
		if err != nil || !bytes.Equal(got, data) || srv.Left() > 0 {
			t.Errorf("%d bytes, %v, %d faults left", len(got), err, srv.Left())
		}
		if _, err := read(remotetest.Fault{Status: 403}); !errors.Is(err, ErrDenied) {
			t.Errorf("denied: %v", err)
		}
		var changed *ChangedError
		if _, err := read(remotetest.Fault{Drop: 100_000, Then: func() {
			putBytes(t, s, uri+"/x", data[1:])
		}}); !errors.As(err, &changed) {
			t.Errorf("written again meanwhile: %v", err)
		}
	})
}

func TestNoSuchBucket(t *testing.T) {
	eachBucket(t, func(t *testing.T, _ *remotetest.Server, s *Store, uri string) {
		if _, err := s.Describe(context.Background(), uri[:5]+"nothing-here/x"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		want := map[string]error{"s3": ErrNoBucket, "gs": fs.ErrNotExist}[uri[:2]] // gs does not tell them apart
		if err := s.List(context.Background(), uri[:5]+"nothing-here", nil); !errors.Is(err, want) {
			t.Errorf("a list: %v, want %v", err, want)
		}
	})
}
