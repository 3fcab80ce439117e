package feed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/serve/collate"
)

// isGone reports whether an error means that the server closed the connection.
func isGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// leftBackend has streams that make their first batch only once the client has left.
type leftBackend struct {
	fakeBackend
	made bool // the batch is made all the same, as where the client leaves a moment later
}

func (b *leftBackend) Open(q Query) (*Opening, error) {
	p, err := b.fakeBackend.Open(q)
	if err == nil {
		p.Stream = &leftStream{p.Stream, b.made}
	}
	return p, err
}

type leftStream struct {
	Stream
	made bool
}

func (s *leftStream) Next(ctx context.Context, b *collate.Batch) error {
	<-ctx.Done()
	if s.made {
		return s.Stream.Next(ctx, b)
	}
	return context.Cause(ctx)
}

// lostConn is a connection whose other end does not answer any more.
type lostConn struct {
	net.Conn
}

func (c lostConn) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Err: syscall.ETIMEDOUT}
}

// TestClientsThatLeaveAreNoFaults: whenever a client leaves, no error is logged, and its stream does
// not count as one whose data failed.
func TestClientsThatLeaveAreNoFaults(t *testing.T) {
	for name, c := range map[string]struct {
		backend Backend
		lost    bool
	}{
		"before the first batch":        {&leftBackend{fakeBackend{rows: 9}, false}, false},
		"while the first batch is made": {&leftBackend{fakeBackend{rows: 9}, true}, false},
		"without a word":                {&fakeBackend{rows: 9}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := NewServer(Options{Backend: c.backend, Ledger: budget.New(16 << 20),
					Log: slog.New(slog.NewTextHandler(&log, nil))})
				ours, theirs := net.Pipe()
				l := &oneConn{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
				if l.conns <- theirs; c.lost {
					<-l.conns
					l.conns <- lostConn{theirs}
				}
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				if _, err := io.WriteString(ours, "GET /v1/batches HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				ours.Close()
				synctest.Wait()
				s.Shutdown(context.Background())
				if err := <-served; err != nil {
					t.Error(err)
				}
				counts := httptest.NewRecorder()
				s.metrics.ServeHTTP(counts, httptest.NewRequest("GET", "/metrics", nil))
				if !strings.Contains(counts.Body.String(), `streams_ended_total{how="left"} 1`) {
					t.Error("not counted as a client that left")
				}
				if text := log.String(); !strings.Contains(text, "client left") || strings.Contains(text, "ERROR") {
					t.Errorf("logged: %s", text)
				}
			})
		})
	}
}
