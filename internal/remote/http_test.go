package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

func content(n int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	return data
}

// newStore returns a store that makes short pauses and trusts the server.
func newStore(t *testing.T, srv *remotetest.Server) *Store {
	t.Helper()
	s := NewStore(Options{})
	s.policy = policy{first: time.Millisecond, longest: 4 * time.Millisecond, attempts: 4, unknown: 2,
		maxWait: 5 * time.Second, idle: 200 * time.Millisecond}
	if srv != nil && srv.TLS != nil {
		pool := x509.NewCertPool()
		pool.AddCert(srv.Certificate())
		s.client.Transport.(*http.Transport).TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
	}
	t.Cleanup(func() {
		s.Close()
		if srv != nil {
			srv.Close()
		}
	})
	return s
}

// readFile reads a whole file, from an offset on.
func readFile(t *testing.T, s *Store, o Object, from int64) ([]byte, error) {
	t.Helper()
	f := s.Open(context.Background(), o)
	defer f.Close()
	f.SeekTo(from)
	return io.ReadAll(f)
}

func stat(t *testing.T, s *Store, address string) Object {
	t.Helper()
	o, _, err := s.Stat(context.Background(), address, make([]byte, 1000))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const megabyte = 1 << 20

// TestFaults checks that the bytes are those of the file, whatever faults occur.
func TestFaults(t *testing.T) {
	data := content(3*megabyte + 17)
	busy := http.Header{"Retry-After": {"0.1"}}
	for _, c := range []struct {
		name   string
		faults []remotetest.Fault
		set    func(*remotetest.Server)
	}{
		{name: "none"},
		{name: "drops", faults: []remotetest.Fault{{Drop: 1}, {Drop: megabyte}, {Drop: 100_000}}},
		{name: "many drops, each after some bytes", faults: []remotetest.Fault{{Drop: 1000}, {Drop: 1000},
			{Drop: 1000}, {Drop: 1000},
			{Drop: 1000}, {Drop: 1000}, {Drop: 1000}}},
		{name: "errors", faults: []remotetest.Fault{{Status: 500}, {Status: 502}, {Status: 503}}},
		{name: "busy", faults: []remotetest.Fault{{Status: 429, Header: busy}}},
		{name: "a stall", faults: []remotetest.Fault{{Stall: 300_000}}},
		{name: "all of it", faults: []remotetest.Fault{{Drop: 5}, {Status: 504}, {Stall: 10}, {Status: 408},
			{Drop: 2 * megabyte}}},
		{name: "no ranges", set: func(s *remotetest.Server) { s.NoRanges = true },
			faults: []remotetest.Fault{{Drop: megabyte}, {Drop: 2 * megabyte}}},
		{name: "no size", set: func(s *remotetest.Server) { s.Chunked, s.NoRanges = true, true },
			faults: []remotetest.Fault{{Drop: megabyte}}},
		{name: "no size, ranges", set: func(s *remotetest.Server) { s.Chunked = true },
			faults: []remotetest.Fault{{Drop: megabyte}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := remotetest.NewTLS()
			if c.set != nil {
				c.set(srv)
			}
			srv.Put("/f", remotetest.File{Data: data})
			s := newStore(t, srv)
			head := make([]byte, 1000)
			o, n, err := s.Stat(context.Background(), srv.URL+"/f", head)
			if err != nil || n != len(head) || !bytes.Equal(head, data[:n]) {
				t.Fatalf("%+v: %d bytes, %v", o, n, err)
			}
			if o.Size >= 0 != (!srv.Chunked || !srv.NoRanges) || o.ETag == "" {
				t.Errorf("%+v", o)
			}
			for _, from := range []int64{0, 12345, int64(len(data))} {
				if o.Size < 0 && from == int64(len(data)) {
					continue // where it ends is not known
				}
				srv.Fail(c.faults...)
				got, err := readFile(t, s, o, from)
				if err != nil || !bytes.Equal(got, data[from:]) {
					t.Fatalf("from %d: %d bytes, %v", from, len(got), err)
				}
				for range srv.Left() { // those that found nothing to break
					srv.Fail()
					readFile(t, s, o, 0)
				}
			}
		})
	}
}

// TestGoesOnWhereItEnded checks that bytes read before a break are not requested again.
func TestGoesOnWhereItEnded(t *testing.T) {
	data := content(4 * megabyte)
	srv := remotetest.New()
	srv.Put("/f", remotetest.File{Data: data})
	s := newStore(t, srv)
	o := stat(t, s, srv.URL+"/f")
	srv.Fail(remotetest.Fault{Drop: 3 * megabyte})
	if got, err := readFile(t, s, o, 0); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	requests := srv.Requests()
	last := requests[len(requests)-1]
	if last.Range == "" || last.Range == "bytes=0-" || srv.Sent() > len(data)+2*megabyte {
		t.Errorf("the last request was for %q, and %d bytes were sent", last.Range, srv.Sent())
	}
}

// TestReadAt reads any part of a file, and reads on in several places at once.
func TestReadAt(t *testing.T) {
	data := content(2*megabyte + 5)
	for _, noRanges := range []bool{false, true} {
		srv := remotetest.New()
		srv.NoRanges = noRanges
		srv.Put("/f", remotetest.File{Data: data})
		s := newStore(t, srv)
		f := s.Open(context.Background(), stat(t, s, srv.URL+"/f"))
		defer f.Close()
		check := func(off, n int64) {
			t.Helper()
			got, err := io.ReadAll(io.NewSectionReader(f, off, n))
			if end := min(off+n, int64(len(data))); err != nil || !bytes.Equal(got, data[min(off, end):end]) {
				t.Fatalf("%d bytes at %d: %d, %v", n, off, len(got), err)
			}
		}
		rnd := rand.New(rand.NewPCG(1, 1))
		for range 30 {
			check(rnd.Int64N(int64(len(data))+10), rnd.Int64N(megabyte))
		}
		srv.Fail(remotetest.Fault{Drop: 3}, remotetest.Fault{Status: 503}, remotetest.Fault{Drop: 1000})
		check(0, int64(len(data)))
		if noRanges {
			continue
		}
		before := len(srv.Requests())
		for at := int64(0); at < megabyte; at += 1000 { // two columns in turns
			check(at, 1000)
			check(megabyte+at, 1000)
		}
		if n := len(srv.Requests()) - before; n > 10 {
			t.Errorf("%d requests for two megabytes read in turns", n)
		}
	}
}

// TestChanged checks that a file that changes between or within requests is refused.
func TestChanged(t *testing.T) {
	data, other := content(megabyte), content(megabyte + 1)[1:]
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name     string
		was, is  remotetest.File
		noRanges bool
		want     string
	}{
		{"ETag", remotetest.File{Data: data}, remotetest.File{Data: other}, false, "ETag"},
		{"ETag, no ranges", remotetest.File{Data: data}, remotetest.File{Data: other}, true, "ETag"},
		{"time", remotetest.File{Data: data, ETag: "-", Modified: then},
			remotetest.File{Data: other, ETag: "-", Modified: then.Add(time.Hour)}, false, "modification time"},
		{"size", remotetest.File{Data: data, ETag: "-"}, remotetest.File{Data: data[:megabyte/2+5], ETag: "-"}, false,
			"size"},
		{"size below what was read", remotetest.File{Data: data, ETag: "-"},
			remotetest.File{Data: data[:5], ETag: "-"}, false, "size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := remotetest.New()
			srv.NoRanges = c.noRanges
			srv.Put("/f", c.was)
			s := newStore(t, srv)
			o := stat(t, s, srv.URL+"/f")
			srv.Fail(remotetest.Fault{Drop: megabyte / 2, Then: func() { srv.Put("/f", c.is) }})
			_, err := readFile(t, s, o, 0)
			var changed *ChangedError
			if !errors.As(err, &changed) || changed.What != c.want {
				t.Errorf("within: %v", err)
			}
			_, err = readFile(t, s, o, 3)
			if !errors.As(err, &changed) {
				t.Errorf("between: %v", err)
			}
		})
	}
}

// TestRefusals checks that an error that no retry cures is returned at once, in its own words and
// without the address.
func TestRefusals(t *testing.T) {
	srv := remotetest.New()
	srv.User = "joe:pa55word"
	srv.Put("/f", remotetest.File{Data: content(10)})
	s := newStore(t, srv)
	gone := remotetest.New()
	gone.Close()
	tls := remotetest.NewTLS()
	defer tls.Close()
	at := func(userinfo, path string) string {
		u, _ := url.Parse(srv.URL)
		return "http://" + userinfo + u.Host + path
	}
	for _, c := range []struct {
		address string
		kind    error
		words   string
	}{
		{at("joe:pa55word@", "/missing"), fs.ErrNotExist, "404 Not Found"},
		{at("joe:wrongSecret@", "/f"), ErrDenied, "401 Unauthorized"},
		{gone.URL + "/f?token=wrongSecret", ErrUnreachable, "refused"},
		{strings.Replace(gone.URL, "http://", "https://joe:wrongSecret@", 1) + "/f", ErrUnreachable, "refused"},
		{strings.Replace(tls.URL, "https://", "https://joe:wrongSecret@", 1) + "/f", ErrUnreachable, "certificate"},
		{strings.Replace(srv.URL, "http://", "https://", 1) + "/f", ErrUnreachable, "does not speak TLS"},
		{"https:///f", ErrUsage, "no host"},
		{"https://joe:wrongSecret@ho st/f", ErrUsage, "cannot be parsed"},
		{"https://joe:wrongSecret@name.invalid/f", ErrUnreachable, "name.invalid"},
	} {
		before := len(srv.Requests())
		_, _, err := s.Stat(context.Background(), c.address, make([]byte, 10))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) ||
			strings.Contains(err.Error(), "wrongSecret") {
			t.Errorf("%s: %v", c.address, err)
		}
		if n := len(srv.Requests()) - before; n > 1 {
			t.Errorf("%s: %d requests", c.address, n)
		}
	}
	srv.Put("/g", remotetest.File{Data: content(10)})
	srv.Fail(remotetest.Fault{Status: 503}, remotetest.Fault{Status: 503}, remotetest.Fault{Status: 503},
		remotetest.Fault{Status: 503})
	if _, _, err := s.Stat(context.Background(), at("joe:pa55word@", "/g"), make([]byte, 10)); !errors.Is(err,
		ErrUnreachable) || !strings.Contains(err.Error(), "4 times") {
		t.Errorf("after all attempts: %v", err)
	}
	srv.Fail(remotetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"4000"}}})
	if _, _, err := s.Stat(context.Background(), at("joe:pa55word@", "/g"), make([]byte, 10)); !errors.Is(err,
		ErrUnreachable) || !strings.Contains(err.Error(), "1h6m40s") {
		t.Errorf("asked to wait for long: %v", err)
	}
}

// TestRedirects checks that credentials follow a redirect on their own host, but never to another
// host or out of TLS.
func TestRedirects(t *testing.T) {
	srv, other, secure := remotetest.New(), remotetest.New(), remotetest.NewTLS()
	defer other.Close()
	defer secure.Close()
	data := content(100)
	srv.Put("/f", remotetest.File{Data: data})
	other.Put("/f", remotetest.File{Data: data})
	redirect := func(w http.ResponseWriter, r *http.Request) bool {
		to := map[string]string{"/own": "/f", "/other": other.URL + "/f", "/loop": "/loop", "/plain": srv.URL +
			"/f"}[r.URL.Path]
		if to != "" {
			http.Redirect(w, r, to, http.StatusFound)
		}
		return to != ""
	}
	srv.Serve, secure.Serve = redirect, redirect
	s := newStore(t, srv)
	s.client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	for _, path := range []string{"/own", "/other"} {
		o, _, err := s.Stat(context.Background(), strings.Replace(srv.URL, "://", "://joe:pa55word@",
			1)+path+"?sig=S3cret",
			make([]byte, 10))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readFile(t, s, o, 0); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	for _, r := range srv.Requests() {
		if r.Authorization == "" {
			t.Errorf("%s: no credentials for its own host", r.Path)
		}
	}
	for _, r := range other.Requests() {
		if r.Authorization != "" || r.Referer != "" {
			t.Errorf("the other host got credentials: %q, %q", r.Authorization, r.Referer)
		}
	}
	for address, words := range map[string]string{srv.URL + "/loop": "redirects 10 times", secure.URL +
		"/plain": "without TLS"} {
		if _, _, err := s.Stat(context.Background(), address, make([]byte, 10)); !errors.Is(err, ErrUnreachable) ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestDone checks that the end of a build ends all waiting and reading.
func TestDone(t *testing.T) {
	srv := remotetest.New()
	srv.Put("/f", remotetest.File{Data: content(megabyte)})
	done := make(chan struct{})
	s := newStore(t, srv)
	s.opts.Done = done
	s.policy.idle = time.Hour
	o := stat(t, s, srv.URL+"/f")
	srv.Fail(remotetest.Fault{Stall: megabyte / 2})
	f := s.Open(context.Background(), o)
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, megabyte/2)); err != nil {
		t.Fatal(err)
	}
	close(done)
	if n, err := f.Read(make([]byte, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := f.ReadAt(make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("at an offset: %d bytes, %v", n, err)
	}
	sent := len(srv.Requests())
	if _, _, err := s.Stat(context.Background(), srv.URL+"/f", make([]byte, 10)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := len(srv.Requests()) - sent; n > 0 {
		t.Errorf("%d requests after the end", n)
	}
}
