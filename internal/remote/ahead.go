package remote

import (
	"context"
	"sync"
)

// ahead is a ring of bytes that a goroutine fills from a transfer while another one takes from it.
type ahead struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed sync.Cond // signals changes to the fields below
	buf     []byte
	r, n    int   // the bytes are buf[r:r+n], modulo its length
	err     error // the one that ended the transfer
	stopped bool
}

// readAhead starts reading. The transfer belongs to it until stop returns.
func readAhead(ctx context.Context, in *transfer) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{cancel: cancel, done: make(chan struct{}), buf: make([]byte, aheadBytes)}
	a.changed.L = &a.mu
	go func() {
		defer close(a.done)
		for {
			free := a.room()
			if free == nil {
				return
			}
			n, err := in.read(ctx, free)
			if !a.add(n, err) {
				return
			}
		}
	}()
	return a
}

// room waits for free space and returns a stretch of it, or nil once nobody reads any more.
func (a *ahead) room() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.n == len(a.buf) && !a.stopped {
		a.changed.Wait()
	}
	if a.stopped {
		return nil
	}
	from := (a.r + a.n) % len(a.buf)
	to := len(a.buf)
	if from < a.r {
		to = a.r
	}
	return a.buf[from:to]
}

// add hands over n bytes that were read, and reports whether to continue.
func (a *ahead) add(n int, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n += n
	a.err = err
	a.changed.Broadcast()
	return err == nil && !a.stopped
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.n == 0 && a.err == nil {
		a.changed.Wait()
	}
	if a.n == 0 {
		return 0, a.err
	}
	n := copy(p, a.buf[a.r:min(a.r+a.n, len(a.buf))])
	a.r = (a.r + n) % len(a.buf)
	a.n -= n
	a.changed.Broadcast()
	return n, nil
}

// stop ends the reading and waits for it.
func (a *ahead) stop() {
	a.mu.Lock()
	a.stopped = true
	a.changed.Broadcast()
	a.mu.Unlock()
	a.cancel()
	<-a.done
}
