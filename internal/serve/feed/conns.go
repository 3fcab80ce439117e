package feed

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// connBytes is the worst-case memory of a connection that is not a stream: goroutine stack,
	// net/http's buffers, a header of maxHeaderBytes as read and as parsed, a TLS session, and the
	// kernel's memory.
	connBytes = 56 << 10
	// One in connsPart of the ledger's free bytes is reserved for connections.
	connsPart          = 16
	minConns, maxConns = 8, 512

	// evictAfter is how long a connection may be quiet before its first request while others wait
	// for a slot.
	evictAfter = 250 * time.Millisecond

	// smallSendBytes is the size of sockets' send buffers. The kernel doubles it, and its memory
	// counts in a control group: at most sendCharge, with pieces of the size that the stream has. The
	// others are the same for streams that get extras.
	smallSendBytes   = 8 << 10
	sendCharge       = 18 << 10
	mediumSendBytes  = 64 << 10
	mediumSendCharge = 132 << 10
	largeSendBytes   = 208 << 10 // the most that Linux allows by default
	largeSendCharge  = 430 << 10
)

// connPool limits the connections that are not streams. Each has a slot, whose memory was reserved
// when the server was made. A connection that finds no free slot waits, and meanwhile the one that
// has been quiet longest loses its slot. It is safe for concurrent use.
type connPool struct {
	size int

	mu      sync.Mutex
	holding map[*conn]struct{}
	freed   chan struct{} // receives a value when a slot becomes free
	closing context.Context
	close   context.CancelFunc
}

func newConnPool(size int) *connPool {
	p := &connPool{size: size, holding: map[*conn]struct{}{}, freed: make(chan struct{}, 1)}
	p.closing, p.close = context.WithCancel(context.Background())
	return p
}

// numConns returns the number of connections for a ledger with the given number of free bytes.
func numConns(free int64) int {
	n := min(max(free/connsPart/connBytes, minConns), maxConns)
	return int(max(1, min(n, free/2/connBytes)))
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	pool *connPool

	// Guarded by pool.mu.
	state http.ConnState
	since time.Time // when the state began
}

// enter waits for a slot for c. It returns false if the server ends first.
func (p *connPool) enter(c *conn) bool {
	for {
		victim, wait := p.tryEnter(c)
		if victim == nil && wait == 0 {
			return true
		}
		if victim != nil {
			victim.Close()
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-p.freed:
		case <-timer.C:
		case <-p.closing.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// tryEnter gives c a slot if one is free. Otherwise it returns the connection that must give up its
// slot, or how long to wait before trying again.
func (p *connPool) tryEnter(c *conn) (victim *conn, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.holding) < p.size {
		c.state, c.since = http.StateNew, now
		p.holding[c] = struct{}{}
		return nil, 0
	}
	wait = evictAfter
	for h := range p.holding {
		quiet := now.Sub(h.since)
		switch {
		case h.state == http.StateActive:
			continue // its handler has deadlines
		case h.state == http.StateNew && quiet < evictAfter:
			wait = min(wait, evictAfter-quiet)
			continue
		}
		if victim == nil || h.since.Before(victim.since) {
			victim = h
		}
	}
	return victim, wait
}

// isCrowded reports whether more than half of the slots are taken: refused clients keep no more.
func (p *connPool) isCrowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.holding) > p.size/2
}

// leave frees the slot of c. A second call does nothing.
func (p *connPool) leave(c *conn) {
	p.mu.Lock()
	_, hasSlot := p.holding[c]
	delete(p.holding, c)
	p.mu.Unlock()
	if hasSlot {
		select {
		case p.freed <- struct{}{}:
		default:
		}
	}
}

// note is http.Server.ConnState.
func (p *connPool) note(nc net.Conn, state http.ConnState) {
	c := tracked(nc)
	if c == nil || state == http.StateClosed || state == http.StateHijacked {
		return // Close and the stream free the slot
	}
	p.mu.Lock()
	c.state, c.since = state, time.Now()
	p.mu.Unlock()
}

// Close closes the connection and frees its slot.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.pool.leave(c)
	return err
}

// CloseWrite lets net/http close its side first, so that a client that is still sending can read
// why it was refused. net/http then lingers for half a second, in which the connection would keep its
// slot. Where slots are scarce it does not: net/http ends a connection without a word for this panic,
// from wherever it comes.
func (c *conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	err := half.CloseWrite()
	if c.pool.isCrowded() {
		panic(http.ErrAbortHandler)
	}
	return err
}

// setSendBuffer sets the kernel's send buffer, if the connection has one.
func (c *conn) setSendBuffer(bytes int) {
	if b, ok := c.Conn.(interface{ SetWriteBuffer(int) error }); ok {
		_ = b.SetWriteBuffer(bytes) // any size works
	}
}

// tracked returns the conn beneath nc, or nil.
func tracked(nc net.Conn) *conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

// connKey is the context key of a request's *conn.
type connKey struct{}

func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, tracked(nc))
}

func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// poolListener accepts connections and waits for a slot for each.
type poolListener struct {
	net.Listener
	pool *connPool
}

func (l *poolListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, pool: l.pool}
	if !l.pool.enter(c) {
		nc.Close()
		return nil, net.ErrClosed
	}
	c.setSendBuffer(smallSendBytes)
	return c, nil
}

// Transport returns the transport of a client whose every connection goes to the server on a unix socket.
func Transport(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
}
