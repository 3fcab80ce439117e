package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/dsload/dsload/internal/serve/collate"
)

func (s *Server) serveBatches(w http.ResponseWriter, r *http.Request) {
	err := s.stream(w, r)
	switch {
	case err == nil:
	case r.Context().Err() != nil && errors.Is(err, context.Cause(r.Context())):
		s.metrics.ended["left"].Add(1)
		s.opts.Log.Info("client left before its first batch", "query", r.URL.RawQuery)
	default:
		s.metrics.refused.Add(1)
		s.opts.Log.Info("request refused", "query", r.URL.RawQuery, "error", err)
		writeError(w, err)
	}
}

// stream answers with batches. Errors before the first byte are returned; later ones can only cut
// the connection.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	if !r.ProtoAtLeast(1, 1) {
		return &RequestError{505, "HTTP/1.0 cannot tell a stream that was cut", "use HTTP/1.1"}
	}
	query, err := ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	plan, err := s.opts.Backend.Open(query)
	if err != nil {
		return err
	}
	// net/http's context ends with the hijack.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	st := &stream{query: query, raw: r.URL.RawQuery, from: r.RemoteAddr, opening: plan, since: time.Now(),
		cancel: cancel}
	st.epoch, _ = strconv.ParseInt(plan.Metadata["dsload.rows"], 10, 64)
	if query.Rank == 0 { // all ranks leave out the same rows
		st.leftOut = func(rows, of int64) { s.sayLeftOut(st, rows, of) }
	}
	if err := s.register(st); err != nil {
		cancel(nil)
		plan.Stream.Close()
		return err
	}
	taken := false // the stream's own goroutine has it
	defer func() {
		if !taken {
			cancel(nil)
			s.unregister(st)
		}
	}()
	st.enc = newEncoder(plan, query.Narrow)
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", contentType)
		return nil
	}
	if err := s.admit(r, st); err != nil {
		return err
	}
	if query.Rank == 0 && plan.Dropped > 0 {
		s.sayDropped(st)
	}
	first := collate.New(plan.Collate)
	stop := context.AfterFunc(r.Context(), func() { cancel(context.Cause(r.Context())) })
	firstErr := st.next(ctx, first)
	stop()
	if firstErr != nil && !errors.Is(firstErr, io.EOF) {
		return firstErr
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	// Use another goroutine: net/http's keeps its buffers and the request while the handler runs.
	taken = true
	go s.run(ctx, st, conn, first, firstErr)
	return nil
}

// admit leases what the stream may hold, and frees its slot in the connection pool.
func (s *Server) admit(r *http.Request, st *stream) error {
	if err := st.acquire(r.Context(), s.opts.Ledger, s.fixed, s.opts.AdmitWait, s.waiting); err != nil {
		return err
	}
	if st.extra == nil && st.wireBytes() > largeSendBytes {
		s.saidShort.Do(func() {
			s.opts.Log.Warn("the streams have taken so much of the memory cap that this one sends its large batches in "+
				"small pieces, which takes a multiple of the time; serve with a larger memory cap", "stream", st.id,
				"query", st.raw)
		})
	}
	if c := connOf(r); c != nil {
		if st.extra != nil {
			c.setSendBuffer(st.send)
		}
		s.conns.leave(c)
	}
	return nil
}

// run writes the stream to its connection. The first batch is made already; firstErr is the error
// of making it.
func (s *Server) run(ctx context.Context, st *stream, conn net.Conn, first *collate.Batch, firstErr error) {
	defer s.unregister(st)
	defer st.cancel(nil)
	defer conn.Close()
	defer func() {
		if broken := recover(); broken != nil { // a panic ends one stream, as in net/http; the others continue
			s.opts.Log.Error("stream cut: the server has a fault", "stream", st.id, "query", st.raw, "panic",
				broken, "stack", string(debug.Stack()))
		}
	}()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // a cut stream's write returns at once
	if err := conn.SetDeadline(time.Time{}); err != nil {
		s.finish(st, &connError{err}, ctx)
		return
	}
	out := newWriter(&deadlineConn{conn, s.opts.WriteTimeout, &st.stats}, st.enc, st.piece)
	// The connection closes after the stream, so that only the body's own end marker looks like one.
	out.raw([]byte("HTTP/1.1 200 OK\r\nContent-Type: " + contentType +
		"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nCache-Control: no-store" +
		"\r\nServer: dsload\r\n" + SealHeader + ": " + s.opts.Backend.Seal() + "\r\n\r\n"))
	out.message(st.enc.schema)
	s.finish(st, st.run(ctx, out, first, firstErr), ctx)
}

const contentType = "application/vnd.apache.arrow.stream"

// sayLeftOut logs that an epoch of a stream leaves rows out.
func (s *Server) sayLeftOut(st *stream, rows, of int64) {
	part := fmt.Sprintf("%d of %d rows", rows, of)
	if of == 0 {
		part = fmt.Sprintf("the last %d rows", rows)
	}
	s.opts.Log.Warn(part+" of the epoch are left out: with tail=drop, the rows after the last whole step of "+
		"all ranks are; tail=once serves every row", "stream", st.id, "query", st.raw)
}

// sayDropped logs that packing cuts rows.
func (s *Server) sayDropped(st *stream) {
	s.opts.Log.Warn(fmt.Sprintf("at least %d tokens of an epoch are dropped: some rows are longer than packed ones, and "+
		"pack=bfd cuts them; pack=bfd_split keeps every token", st.opening.Dropped), "stream", st.id, "query", st.raw)
}

// finish counts and logs how a stream ended.
func (s *Server) finish(st *stream, err error, ctx context.Context) {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	log := s.opts.Log.With("stream", st.id, "query", st.raw, "rows", st.stats.rows.Load(), "next", st.stats.next.Load(),
		"seconds", time.Since(st.since).Round(time.Millisecond).Seconds())
	switch {
	case err == nil:
		s.metrics.ended["complete"].Add(1)
		log.Info("stream complete")
	case errors.Is(err, errDraining):
		s.metrics.ended["shutdown"].Add(1)
		log.Warn("stream cut: the server is shutting down")
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.metrics.ended["timeout"].Add(1)
		log.Warn("stream cut: the client read nothing for too long", "timeout", s.opts.WriteTimeout)
	case errors.As(err, new(*RequestError)):
		s.metrics.ended["failed"].Add(1)
		log.Error("stream cut", "error", err)
	case errors.As(err, new(*connError)), errors.Is(err, context.Canceled): // the latter before the stream began
		s.metrics.ended["left"].Add(1)
		log.Info("client left")
	default:
		s.metrics.ended["failed"].Add(1)
		log.Error("stream cut: its data cannot be read", "error", err)
	}
}

func (s *Server) register(st *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining.Load():
		return &RequestError{503, "the server is shutting down", "connect again when it is back"}
	case len(s.streams) >= s.opts.MaxStreams:
		return &RequestError{503, fmt.Sprintf("%d streams are running, which is the limit", len(s.streams)),
			"end one first, or serve with a higher limit of streams"}
	}
	s.nextID++
	st.id = s.nextID
	s.streams[st.id], s.asked[st.query.Split] = st, st.opening.Asked
	s.running.Add(1)
	return nil
}

func (s *Server) unregister(st *stream) {
	st.release()
	s.mu.Lock()
	s.metrics.retired.add(&st.stats)
	st.stats.lengths.addTo(&s.live.retired)
	delete(s.streams, st.id)
	s.mu.Unlock()
	s.running.Done()
}
