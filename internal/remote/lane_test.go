package remote

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

// TestExpect reads columns of a file in turns, or one after another, as announced, and counts requests
// and connections.
func TestExpect(t *testing.T) {
	data := content(6 * megabyte)
	for _, c := range []expected{
		{"one after another, close", 8, 600_000, 1000, false, 1, 1},
		{"one after another, far apart", 3, 600_000, megabyte + 1, false, 3, 1},
		{"one after another, with much between", 8, 100_000, 300_000, false, 8, 1},
		{"in turns", 4, megabyte, 0, true, 4, 4},
		{"short ones in turns", 4, 60_000, 100, true, 1, 1},
		{"short ones and one that is long", 5, 60_000, 9_000, true, 2, 2},
		{"many in turns", 12, 400_000, 5, true, 48, 1},
		{"more than can be kept", 20, 280_000, 5, true, 60, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := remotetest.New()
			srv.Put("/f", remotetest.File{Data: data})
			synctest.Test(t, func(t *testing.T) { c.check(t, srv, data) })
		})
	}
}

// expected is what the reading of columns may take.
type expected struct {
	name                  string
	columns, size, gap    int64
	inTurns               bool
	requests, connections int
}

func (c *expected) check(t *testing.T, srv *remotetest.Server, data []byte) {
	s := newStore(t, srv)
	connections := throughPipes(t, s, srv)
	f := s.Open(context.Background(), stat(t, s, srv.URL+"/f"))
	defer f.Close()
	var spans [][2]int64
	for i := range c.columns {
		spans = append(spans, [2]int64{100 + i*(c.size+c.gap), 100 + i*(c.size+c.gap) + c.size})
	}
	f.Expect(spans, c.inTurns)
	before, sent := len(srv.Requests()), int64(srv.Sent())
	p := make([]byte, 100_000)
	read := func(span [2]int64, at int64) {
		p := p[:min(int64(len(p)), span[1]-at)]
		if n, err := f.ReadAt(p, at); err != nil || !bytes.Equal(p[:n], data[at:][:len(p)]) {
			t.Fatalf("%d bytes at %d of %d: %v", n, at, len(p), err)
		}
	}
	if c.inTurns {
		for at := int64(0); at < c.size; at += int64(len(p)) {
			for _, span := range spans {
				read(span, span[0]+at)
			}
		}
	} else {
		for _, span := range spans {
			for at := span[0]; at < span[1]; at += int64(len(p)) {
				read(span, at)
			}
		}
	}
	if n := len(srv.Requests()) - before; n > c.requests {
		t.Errorf("%d requests, want at most %d", n, c.requests)
	}
	if n := int(connections.Load()); n > c.connections {
		t.Errorf("%d connections, want at most %d", n, c.connections)
	}
	if sent, most := int64(srv.Sent())-sent, c.columns*max(c.size*3/2, c.size+100_000); sent > most {
		t.Errorf("%d bytes were sent for %d, want at most %d", sent, c.columns*c.size, most)
	}
	var held int64
	for _, l := range f.lanes {
		held += int64(cap(l.buf))
	}
	if held > lanes*laneBytes {
		t.Errorf("the lanes hold %d bytes", held)
	}
	read([2]int64{0, int64(len(data))}, 5*megabyte) // what was not announced
	read([2]int64{0, int64(len(data))}, 0)
}

// throughPipes connects a store with a server by pipes, and counts the connections. In a bubble of synctest no time
// passes on them: net/http gives a connection up that is not ready for the next request within 50 ms, however busy
// the machine is.
func throughPipes(t *testing.T, s *Store, srv *remotetest.Server) *atomic.Int32 {
	var n atomic.Int32
	network := pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		n.Add(1)
		client, server := net.Pipe()
		network.conns <- server
		return client, nil
	}
	server := &http.Server{Handler: srv}
	go func() { _ = server.Serve(network) }()
	t.Cleanup(func() { _ = server.Close() })
	return &n
}

// pipes is a listener for what is sent to conns.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// TestReadTail reads the end of a file, then what it tells of, with one request.
func TestReadTail(t *testing.T) {
	for _, size := range []int{10, 1000, tailBytes, tailBytes + 1, 3 * megabyte} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			data := content(size)
			srv := remotetest.New()
			srv.Put("/f", remotetest.File{Data: data})
			s := newStore(t, srv)
			f := s.Open(context.Background(), stat(t, s, srv.URL+"/f"))
			defer f.Close()
			before := len(srv.Requests())
			for _, n := range []int{8, min(size, 5000), min(size, tailBytes)} {
				p := make([]byte, n)
				if _, err := f.ReadAt(p, int64(size-n)); err != nil || !bytes.Equal(p, data[size-n:]) {
					t.Fatalf("the last %d bytes: %v", n, err)
				}
			}
			if n := len(srv.Requests()) - before; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
