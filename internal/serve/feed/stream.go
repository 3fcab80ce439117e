package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/units"
)

const (
	// streamOverhead is the memory of a stream apart from its batches and window: goroutine stack,
	// the plan's objects, the encoder, and sendCharge in the kernel.
	streamOverhead = 18<<10 + trackBytes + sendCharge
	// smallPiece is the size of every stream's piece: what Linux sends as one message from a buffer of
	// smallSendBytes.
	smallPiece = 8<<10 - 64
	// A stream gets extras while streams have taken less than one in comfortPart of the ledger's bytes
	// for them, the rest is for later streams, or where the extras are at most one in addedPart of what
	// the stream needs anyway. In either case the streams of all other ranks must fit, too. Ranks beside which as many
	// streams without extras fit do not count: a step takes as long as that of the slowest.
	comfortPart = 8
	addedPart   = 4
	// mostAhead is the maximum number of batches that a stream makes ahead, aheadBytes what they
	// may lease together.
	mostAhead  = 4
	aheadBytes = 1 << 20
)

// extras are what a stream can have besides what it needs, the best first. Without them each small piece of a
// large batch waits for the client: packed rows take ten times the time, with the last of them twice.
var extras = []struct {
	piece, send, charge int
	ahead               bool // batches are made ahead
}{
	{128 << 10, largeSendBytes, largeSendCharge, true},
	{128 << 10, largeSendBytes, largeSendCharge, false},
	{32 << 10, mediumSendBytes, mediumSendCharge, false},
}

// stream is one response to /v1/batches.
type stream struct {
	id      uint64
	query   Query
	raw     string // the query as received
	from    string
	opening *Opening
	enc     *encoder
	since   time.Time

	lease  *budget.Lease // everything the stream needs to continue
	extra  *budget.Lease // what extras take; nil if memory is short
	piece  int
	send   int          // bytes of the socket's buffer
	ahead  int          // batches that another goroutine makes ahead; 0 = the connection's goroutine makes them
	leased atomic.Int64 // bytes of both leases, for the dashboard

	leftOut func(rows, of int64) // is called once with the rows that an epoch leaves out; nil after that
	cancel  context.CancelCauseFunc
	stats   streamStats
	epoch   int64 // rows of an epoch, 0 if the plan does not say
}

// streamStats are read by the dashboard while the stream runs.
type streamStats struct {
	batches, rows, tokens, padded, bytes atomic.Int64
	next                                 atomic.Int64
	blockedSince                         atomic.Int64 // Unix nanoseconds, 0 while no write waits for the client
	blocked                              atomic.Int64 // nanoseconds that writes waited for the client
	lengths                              lengthCounts // batches by their padded length
}

// wireBytes returns the size of the largest batch on the wire in bytes.
func (s *stream) wireBytes() int64 {
	n := int64(s.opening.BatchRows) * 36
	for _, c := range s.enc.lists {
		n += s.opening.BatchTokens * int64(c.width)
	}
	return n
}

// acquire leases the stream's memory from the ledger, of which fixed bytes are never free. It waits
// up to admitWait for others to release theirs. The capacity of the channel waiting limits how many
// requests wait.
func (s *stream) acquire(ctx context.Context, ledger *budget.Ledger, fixed int64, admitWait time.Duration,
	waiting chan struct{}) error {
	batch := s.opening.Collate.Bytes(s.opening.BatchRows, s.opening.BatchTokens)
	least := streamOverhead + smallPiece + s.opening.WindowBytes + batch + int64(len(s.raw))
	lease, err := leaseOrWait(ctx, ledger, least, admitWait, waiting)
	var tooLarge *budget.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		// Asking again does not help, so it is not 503.
		return &RequestError{http.StatusRequestEntityTooLarge,
			fmt.Sprintf("this stream needs %v and the memory cap leaves %v", units.Size(least),
				units.Size(tooLarge.Limit)),
			"ask for a smaller batch_size, max_tokens, bucket or max_length, or serve with a larger memory cap"}
	case err != nil && ctx.Err() == nil:
		return &RequestError{503, "the running streams take all memory",
			"ask again later, for a smaller batch_size or bucket, or serve with a larger memory cap"}
	case err != nil:
		return err
	}
	s.lease, s.piece, s.send = lease, smallPiece, smallSendBytes
	s.leased.Store(least)
	s.acquireExtras(ledger, fixed, batch)
	return nil
}

// acquireExtras leases the best extras that there is memory for. A batch takes so many bytes.
func (s *stream) acquireExtras(ledger *budget.Ledger, fixed, batch int64) {
	for _, e := range extras {
		more, ahead := int64(e.piece-smallPiece+e.charge-sendCharge), 0
		if e.ahead {
			// Large batches exceed the socket's buffer, so only a goroutine that works ahead keeps both
			// sides busy. Waking it costs more than making a batch that takes no search.
			ahead = int(min(mostAhead, aheadBytes/max(batch, 1)))
			if !s.opening.Searched || s.wireBytes() <= 2*largeSendBytes || ahead == 0 {
				continue
			}
			more += int64(ahead) * batch
		}
		need, all := s.lease.Bytes(), ledger.Cap()-fixed
		world := int64(max(s.query.World, 1))
		comfort, together := all/comfortPart, (need+more)*world
		if world > 1 && together+need*world <= all {
			comfort += together
		}
		if ledger.Used()-fixed+more > comfort && more > need/addedPart || together > all {
			continue
		}
		if extra, ok := ledger.TryAcquire(more); ok {
			s.extra, s.piece, s.send, s.ahead = extra, e.piece, e.send, ahead
			s.leased.Add(more)
			return
		}
	}
}

// leaseOrWait leases n bytes. It waits for them unless too many others wait.
func leaseOrWait(ctx context.Context, ledger *budget.Ledger, n int64, admitWait time.Duration,
	waiting chan struct{}) (*budget.Lease, error) {
	if lease, ok := ledger.TryAcquire(n); ok {
		return lease, nil
	}
	select {
	case waiting <- struct{}{}:
		defer func() { <-waiting }()
	default: // too many wait already
		if free := ledger.Free(); n > free {
			return nil, &budget.TooLargeError{Wanted: n, Limit: free}
		}
		return nil, context.DeadlineExceeded
	}
	wait, cancel := context.WithTimeout(ctx, admitWait)
	defer cancel()
	return ledger.Acquire(wait, n)
}

func (s *stream) release() {
	s.opening.Stream.Close()
	s.lease.Release()
	s.extra.Release()
}

func (s *stream) next(ctx context.Context, b *collate.Batch) error {
	b.Reset()
	err := s.opening.Stream.Next(ctx, b)
	if s.leftOut != nil && s.opening.LeftOut != nil {
		if rows, of := s.opening.LeftOut(); rows > 0 {
			s.leftOut(rows, of)
			s.leftOut = nil
		}
	}
	return err
}

// run writes all batches. The first one is already made; err is the error of making it. It returns
// nil at the end of the stream.
func (s *stream) run(ctx context.Context, w *writer, first *collate.Batch, err error) error {
	if s.ahead > 0 && err == nil {
		return s.runAhead(ctx, w, first)
	}
	for n := 0; ; n++ {
		if err == io.EOF {
			return w.end()
		}
		if err != nil {
			_ = w.flush() // batches before the fault still arrive; the fault is the error to report
			return err
		}
		if err := s.write(w, first); err != nil {
			return err
		}
		// The trainer waits for its first batch; later ones leave when the piece is full.
		if n == 0 {
			if err := w.flush(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err = s.next(ctx, first)
	}
}

// made is a batch, or the error instead of one.
type made struct {
	b   *collate.Batch
	err error
}

// runAhead is run with another goroutine that makes up to s.ahead batches while the writer waits
// for the client.
func (s *stream) runAhead(ctx context.Context, w *writer, first *collate.Batch) error {
	ctx, stop := context.WithCancel(ctx)
	free, ready := make(chan *collate.Batch, s.ahead+1), make(chan made, s.ahead+1)
	for range s.ahead {
		free <- collate.New(s.opening.Collate)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case b := <-free:
				err := s.next(ctx, b)
				ready <- made{b, err} // never blocks: the channel has room for all batches
				if err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		stop()
		<-done
	}()
	if err := s.write(w, first); err != nil {
		return err
	}
	free <- first
	for {
		var m made
		select {
		case m = <-ready:
		default: // about to wait: send what there is
			if err := w.flush(); err != nil {
				return err
			}
			select {
			case m = <-ready:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if errors.Is(m.err, io.EOF) {
			return w.end()
		}
		if m.err != nil {
			_ = w.flush()
			return m.err
		}
		if err := s.write(w, m.b); err != nil {
			return err
		}
		free <- m.b
	}
}

func (s *stream) write(w *writer, b *collate.Batch) error {
	err := w.batch(b)
	st := &s.stats
	st.batches.Add(1)
	st.rows.Add(int64(b.Rows()))
	st.tokens.Add(b.Tokens())
	for i, c := range b.Counted() {
		if c.Tokens > 0 {
			s.opening.Counted[i].Rows.Add(c.Rows)
			s.opening.Counted[i].Tokens.Add(c.Tokens)
		}
	}
	st.padded.Add(int64(b.Rows()) * int64(b.Length(collate.InputIDs)))
	st.lengths.add(b.Length(collate.InputIDs))
	st.bytes.Store(w.bytes)
	st.next.Store(b.Next)
	return err
}

// leastBlocked is the time from which a write counts as blocked by the client: copying a piece to
// the kernel takes less.
const leastBlocked = 300 * time.Microsecond

// connError is an error of a client's connection: no fault of the data.
type connError struct{ err error }

func (e *connError) Error() string { return e.err.Error() }
func (e *connError) Unwrap() error { return e.err }

// deadlineConn gives each write its own deadline, and records since when a write has been waiting.
type deadlineConn struct {
	net.Conn
	timeout time.Duration
	stats   *streamStats
}

func (c *deadlineConn) Write(p []byte) (int, error) {
	now := time.Now()
	if c.timeout > 0 {
		if err := c.SetWriteDeadline(now.Add(c.timeout)); err != nil {
			return 0, &connError{err}
		}
	}
	c.stats.blockedSince.Store(now.UnixNano())
	n, err := c.Conn.Write(p)
	if err != nil {
		err = &connError{err}
	}
	c.stats.blockedSince.Store(0)
	if took := time.Since(now); took > leastBlocked {
		c.stats.blocked.Add(int64(took))
	}
	return n, err
}
