package remote

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

// TestVersionsAreNotMixed breaks the first answer to a reader. What comes next has the same size, and
// either the same content or another one; its validator is missing, or of another kind. The same
// content is read to its end, the other one is never read on.
func TestVersionsAreNotMixed(t *testing.T) {
	data := content(megabyte)
	other := bytes.Clone(data)
	other[len(other)-5]++ // what was read is the same, only the rest differs
	early := bytes.Clone(data)
	early[5]++
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const none = "-"
	for _, c := range []struct {
		name       string
		was, later remotetest.File // without content
		noRanges   bool
	}{
		{name: "no validators", was: remotetest.File{ETag: none}, later: remotetest.File{ETag: none}},
		{name: "no validators, no ranges", was: remotetest.File{ETag: none}, later: remotetest.File{ETag: none},
			noRanges: true},
		{name: "an ETag that is missing", was: remotetest.File{ETag: `"1"`}, later: remotetest.File{ETag: none}},
		{name: "an ETag, then a time", was: remotetest.File{ETag: `"1"`},
			later: remotetest.File{ETag: none, Modified: then}},
		{name: "a time that is missing", was: remotetest.File{ETag: none, Modified: then},
			later: remotetest.File{ETag: none}},
		{name: "a validator that comes late", was: remotetest.File{ETag: none}, later: remotetest.File{ETag: `"1"`}},
		{name: "the same ETag, no ranges", was: remotetest.File{ETag: `"1"`}, later: remotetest.File{ETag: `"1"`},
			noRanges: true},
	} {
		for what, now := range map[string][]byte{"the same": data, "other bytes before": early} {
			srv := remotetest.New()
			srv.NoRanges = c.noRanges
			srv.Put("/f", remotetest.File{Data: data, ETag: c.was.ETag, Modified: c.was.Modified})
			s := newStore(t, srv)
			o := stat(t, s, srv.URL+"/f")
			srv.Fail(remotetest.Fault{Drop: megabyte / 2, Then: func() {
				srv.Put("/f", remotetest.File{Data: now, ETag: c.later.ETag, Modified: c.later.Modified})
			}})
			got, err := readFile(t, s, o, 0)
			var changed *ChangedError
			if what == "the same" && (err != nil || !bytes.Equal(got, data)) {
				t.Errorf("%s: %d bytes of the same content, %v", c.name, len(got), err)
			}
			if what != "the same" && (!errors.As(err, &changed) || changed.What != "content" ||
				!bytes.HasPrefix(data, got)) {
				t.Errorf("%s: %d bytes of other content, %v", c.name, len(got), err)
			}
		}
	}
	// Bytes that were not read cannot have been of the first version: the whole answer is compared.
	srv := remotetest.New()
	srv.Put("/f", remotetest.File{Data: data, ETag: none})
	s := newStore(t, srv)
	o := stat(t, s, srv.URL+"/f")
	srv.Fail(remotetest.Fault{Drop: megabyte / 2,
		Then: func() { srv.Put("/f", remotetest.File{Data: other, ETag: none}) }})
	if got, err := readFile(t, s, o, 0); err != nil || !bytes.Equal(got, other) {
		t.Errorf("one that begins alike: %d bytes, %v", len(got), err)
	}
}

// TestUnprovenPlaces checks that a reader in the middle of a file, and one at many places, refuse
// answers without the validator that the file had.
func TestUnprovenPlaces(t *testing.T) {
	data := content(megabyte)
	srv := remotetest.New()
	srv.Put("/f", remotetest.File{Data: data, ETag: `"1"`})
	s := newStore(t, srv)
	o := stat(t, s, srv.URL+"/f")
	srv.Put("/f", remotetest.File{Data: data, ETag: "-"})
	var changed *ChangedError
	if _, err := readFile(t, s, o, 7); !errors.As(err, &changed) || changed.What != "ETag" || changed.Is != "missing" {
		t.Errorf("from the middle: %v", err)
	}
	f := s.Open(context.Background(), o)
	defer f.Close()
	if _, err := f.ReadAt(make([]byte, 10), 0); !errors.As(err, &changed) {
		t.Errorf("at many places: %v", err)
	}
	g := s.Open(context.Background(), stat(t, s, srv.URL+"/f?part=2"))
	defer g.Close()
	if _, err := g.ReadAt(make([]byte, 10), 0); !errors.Is(err, ErrMismatch) {
		t.Errorf("at many places, never a validator: %v", err)
	}
}

// TestBreaksWithoutValidators checks that a server is given up soon whose every answer from the
// beginning breaks at the same byte: what follows cannot be known to be of the same version.
func TestBreaksWithoutValidators(t *testing.T) {
	data := content(megabyte)
	srv := remotetest.New()
	srv.Put("/f", remotetest.File{Data: data, ETag: "-"})
	s := newStore(t, srv)
	s.policy.attempts = 100
	o := stat(t, s, srv.URL+"/f")
	half := remotetest.Fault{Drop: megabyte / 2}
	srv.Fail(half, remotetest.Fault{}, half, half, half, half, half, half, half, half)
	before := len(srv.Requests())
	got, err := readFile(t, s, o, 0)
	if n := len(srv.Requests()) - before; !errors.Is(err, ErrUnreachable) || n > maxUnproven+2 ||
		len(got) != megabyte/2 {
		t.Errorf("%d bytes, %v after %d requests", len(got), err, n)
	}
}

// TestIfRange checks that what continues a file is asked for under its ETag, unless that is weak.
func TestIfRange(t *testing.T) {
	for tag, want := range map[string]string{`"1"`: `"1"`, `W/"1"`: "", "-": ""} {
		srv := remotetest.New()
		srv.Put("/f", remotetest.File{Data: content(1000), ETag: tag})
		s := newStore(t, srv)
		if _, err := readFile(t, s, stat(t, s, srv.URL+"/f"), 10); err != nil {
			t.Error(err)
		}
		requests := srv.Requests()
		if got := requests[len(requests)-1]; got.IfRange != want || got.Range != "bytes=10-" {
			t.Errorf("%s: asked for %q if %q", tag, got.Range, got.IfRange)
		}
	}
}

// TestMoreThanAskedFor checks that nothing is read of what a server sends beyond a range, and that
// its connection is not used again.
func TestMoreThanAskedFor(t *testing.T) {
	data := content(8 * megabyte)
	srv := remotetest.New()
	srv.Beyond = true
	srv.Put("/f", remotetest.File{Data: data})
	s := newStore(t, srv)
	o := stat(t, s, srv.URL+"/f")
	f := s.Open(context.Background(), o)
	defer f.Close()
	p := make([]byte, 1000)
	for _, off := range []int64{0, 5 * megabyte, 2 * megabyte, 7 * megabyte, 0} {
		if _, err := f.ReadAt(p, off); err != nil || !bytes.Equal(p, data[off:off+1000]) {
			t.Errorf("at %d: %v", off, err)
		}
	}
	var got []byte
	err := s.ReadRange(context.Background(), o, megabyte, 3*megabyte, func(b []byte) error {
		got = append(got, b...)
		return nil
	})
	if err != nil || !bytes.Equal(got, data[megabyte:3*megabyte]) {
		t.Errorf("a range: %d bytes, %v", len(got), err)
	}
}
