package feed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/serve/collate"
)

// held is how many connections have a place.
func (p *connPool) held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.holding)
}

func TestNumberOfPlaces(t *testing.T) {
	for _, c := range []struct {
		free int64
		want int
	}{{0, 1}, {1 << 20, 8}, {16 << 20, 18}, {24 << 20, 27}, {10 << 30, 512}, {200 << 10, 1}} {
		if got := numConns(c.free); got != c.want {
			t.Errorf("%d bytes: %d places, want %d", c.free, got, c.want)
		}
	}
}

// Ten times as many connections as there are places, none of which ever ends its request: no more
// than the places are held at any time, and a client that asks properly is still answered, because
// the quiet ones make room.
func TestQuietConnectionsMakeRoom(t *testing.T) {
	t.Parallel() // most of it is waiting
	s, client, path := start(t, Options{Backend: &fakeBackend{rows: 10}})
	header := "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 6000)
	for range 10 * s.conns.size {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, header); err != nil && !isGone(err) {
			t.Fatal(err)
		}
		if n := s.conns.held(); n > s.conns.size {
			t.Fatalf("%d connections hold a place, there are %d", n, s.conns.size)
		}
	}
	if _, err := readAll(get(t, client, "").Body); err != nil {
		t.Error(err)
	}
}

// A client whose request is refused while it is still sending keeps its place for a while, so that it
// can read why, but only while half of the places are free. Time stands still: no place comes free by
// waiting.
func TestRefusedConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Backend: &fakeBackend{rows: 10}, Ledger: budget.New(16 << 20),
			Log: slog.New(slog.DiscardHandler)})
		l := &oneConn{conns: make(chan net.Conn), closed: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		began := time.Now()
		long := "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 2*maxHeaderBytes)
		for range 3 * s.conns.size {
			ours, theirs := net.Pipe()
			defer ours.Close()
			l.conns <- halfConn{theirs}
			go io.WriteString(ours, long)
			if answer, err := io.ReadAll(ours); err != nil || !strings.Contains(string(answer), " 431 ") {
				t.Fatalf("%q, %v", answer, err)
			}
		}
		synctest.Wait()
		if n := s.conns.held(); time.Since(began) > 0 || n == 0 || n > s.conns.size/2 {
			t.Errorf("after %v refused clients hold %d of %d places", time.Since(began), n, s.conns.size)
		}
		time.Sleep(time.Second) // until net/http has lingered
		s.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// halfConn is a pipe whose other end reads to the end once this one has closed its side.
type halfConn struct{ net.Conn }

func (c halfConn) CloseWrite() error { return c.Conn.Close() }

// Streams hold no places: as many as memory allows run at the same time, and other requests are answered meanwhile.
func TestStreamsHoldNoPlaces(t *testing.T) {
	s, client, _ := start(t, Options{Backend: &fakeBackend{rows: 1000}, Ledger: budget.New(16 << 20)})
	for range 3 * s.conns.size {
		if resp := get(t, client, "epochs=0"); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	if n := s.numStreams(); n != 3*s.conns.size {
		t.Errorf("%d streams", n)
	}
	resp, err := client.Get("http://dsload/healthz")
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}

// bigBackend has a manifest of the given size.
type bigBackend struct {
	fakeBackend
	manifest []byte
}

func (b *bigBackend) Dataset(string) ([][]byte, error) { return [][]byte{b.manifest}, nil }

// Clients that ask for a manifest and do not read it share its bytes; those that do read it get it whole.
func TestUnreadManifestsShareOneBuffer(t *testing.T) {
	const size = 8 << 20
	f := &bigBackend{fakeBackend{rows: 10}, bytes.Repeat([]byte("manifest"), size/8)}
	s, client, path := start(t, Options{Backend: f, AdmitWait: 50 * time.Millisecond})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	before := heap()
	var unread []net.Conn
	for range 200 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		unread = append(unread, conn)
		if _, err := io.WriteString(conn, "GET /v1/dataset HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil && !isGone(err) {
			t.Fatal(err)
		}
	}
	for began := time.Now(); len(s.answering) < cap(s.answering) && time.Since(began) < 30*time.Second; {
		runtime.Gosched()
	}
	if n := len(s.answering); n != cap(s.answering) {
		t.Fatalf("%d manifests are being sent, want %d", n, cap(s.answering))
	}
	if more := heap() - before; more > size/2 {
		t.Errorf("200 unread manifests of %d bytes take %d", size, more)
	}
	for _, conn := range unread {
		conn.Close()
	}
	for { // until those that left are noticed
		resp, err := client.Get("http://dsload/v1/dataset")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == 503 {
			continue
		}
		if !bytes.Equal(body, f.manifest) || resp.ContentLength != size {
			t.Errorf("%s: %d bytes, length %d", resp.Status, len(body), resp.ContentLength)
		}
		return
	}
}

// On every route there is a time after which a client that does nothing is gone. Time stands still but for timers.
func TestDeadlinesOnEveryRoute(t *testing.T) {
	const request = " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		send string
		read int // bytes that the client takes
		want time.Duration
	}{
		"nothing sent":          {"", 0, headerTimeout},
		"half a header":         {"GET / HTTP/1.1\r\nHost: loc", 0, headerTimeout},
		"unread dashboard":      {"GET /" + request, 0, answerTimeout},
		"unread metrics":        {"GET /metrics" + request, 0, answerTimeout},
		"unread error":          {"GET /nothing" + request, 0, answerTimeout},
		"unread manifest":       {"GET /v1/dataset" + request, 0, answerTimeout},
		"half a manifest":       {"GET /v1/dataset" + request, 1 << 20, answerTimeout},
		"unread refused stream": {"GET /v1/batches?batch_size=0" + request, 0, answerTimeout},
		"unread stream":         {"GET /v1/batches?epochs=0" + request, 0, 30 * time.Minute},
		"idle":                  {"GET /healthz" + request, 1 << 20, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &bigBackend{fakeBackend{rows: 10}, make([]byte, 4<<20)}
				s := NewServer(Options{Backend: f, Ledger: budget.New(16 << 20), Log: slog.New(slog.DiscardHandler)})
				ours, theirs := net.Pipe()
				l := &oneConn{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
				l.conns <- theirs
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				began := time.Now()
				if _, err := io.WriteString(ours, c.send); err != nil {
					t.Fatal(err)
				}
				if c.read > 0 {
					go io.CopyN(io.Discard, ours, int64(c.read))
				}
				synctest.Wait()
				for s.conns.held() > 0 || s.numStreams() > 0 {
					time.Sleep(time.Second)
				}
				if waited := time.Since(began); waited < c.want || waited > c.want+2*time.Second {
					t.Errorf("closed after %v, want %v", waited, c.want)
				}
				ours.Close()
				s.Shutdown(context.Background())
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// stuckBackend has streams whose second batch hangs, as a read from a file system that is gone does.
type stuckBackend struct {
	fakeBackend
	hang    chan struct{}
	reached chan struct{} // closed when a read hangs
}

func (b *stuckBackend) Open(q Query) (*Opening, error) {
	p, err := b.fakeBackend.Open(q)
	if err == nil {
		p.Stream = &stuckStream{Stream: p.Stream, of: b}
	}
	return p, err
}

type stuckStream struct {
	Stream
	of    *stuckBackend
	calls int
}

func (s *stuckStream) Next(ctx context.Context, b *collate.Batch) error {
	if s.calls++; s.calls == 2 {
		close(s.of.reached)
		<-s.of.hang
	}
	return s.Stream.Next(ctx, b)
}

// A stream whose read never returns does not keep the server: Shutdown says how many there are, and returns.
func TestShutdownGivesUpStuckStreams(t *testing.T) {
	f := &stuckBackend{fakeBackend{rows: 100}, make(chan struct{}), make(chan struct{})}
	s, client, _ := start(t, Options{Backend: f, CutWait: 10 * time.Millisecond})
	defer close(f.hang)
	resp := get(t, client, "epochs=0")
	<-f.reached
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if cut, stuck := s.Shutdown(ctx); cut != 1 || stuck != 1 {
		t.Errorf("%d cut, %d stuck", cut, stuck)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("a cut stream read as a whole one")
	}
}

// The lock next to a socket is gone as soon as the server listens, so that one that is killed leaves
// the socket alone, and the next one takes that over.
func TestNoLockIsLeft(t *testing.T) {
	path := t.TempDir() + "/s"
	absent := func(when string) {
		t.Helper()
		if _, err := os.Lstat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the lock is there: %v", when, err)
		}
	}
	// What a server leaves that is killed while it takes the socket over.
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	absent("listening")
	if _, err := ListenUnix(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a live socket: %v", err)
	}
	absent("after a second server")
	// Somebody removes the socket and serves there: closing the first listener leaves that one alone, however often.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the second server's socket: %v", err)
	}
	second.Close()
	absent("closed")
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	// A planted link is not followed.
	victim := path + ".victim"
	if err := os.Symlink(victim, path+".lock"); err != nil {
		t.Fatal(err)
	}
	if l, err := ListenUnix(path); err == nil {
		l.Close()
		t.Error("a link in the place of the lock was followed")
	}
	if _, err := os.Lstat(victim); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link's target was made: %v", err)
	}
}

// What a parameter's help says of its default is what it is when left out.
func TestParametersAreDescribed(t *testing.T) {
	plain, err := ParseQuery("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Parameters() {
		if p.Name == "" || p.Values == "" {
			t.Errorf("%+v", p)
		}
		if p.Default == "" {
			continue
		}
		if q, err := ParseQuery(p.Name + "=" + p.Default); err != nil || q.Labels != plain.Labels ||
			q.BatchSize != plain.BatchSize ||
			q.Shuffle != plain.Shuffle || q.Group != plain.Group || q.Epochs != plain.Epochs ||
			q.Split != plain.Split || q.World != plain.World {
			t.Errorf("%s=%s: %+v %v", p.Name, p.Default, q, err)
		}
	}
	for name, want := range map[string]string{"batchsize": "batch_size", "batch-size": "batch_size",
		"suffle": "shuffle", "Seed": "seed", "epoch": "epochs", "zebra": "", "pad_to_multiple": "pad_to_multiple_of"} {
		_, err := ParseQuery(name + "=1")
		if err == nil || strings.Contains(err.Error(), "did you mean") != (want != "") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseQuery("shuffle=blocks"); err == nil || !strings.Contains(err.Error(), "did you mean block?") {
		t.Errorf("shuffle=blocks: %v", err)
	}
}
