package feed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/page"
	"github.com/dsload/dsload/internal/serve/collate"
)

// Options configures a server. None of them changes a batch.
type Options struct {
	Backend Backend
	// Defaults holds, as a query, the parameters that the Backend applies to requests without pack;
	// "" for none.
	Defaults string
	Ledger   *budget.Ledger // bytes for streams; the process's other needs are already reserved in it
	Log      *slog.Logger   // default: slog.Default

	// Token, if set, must come with every request over TCP except GET /healthz, as a bearer token
	// or a Basic password.
	Token string
	// WriteTimeout ends a stream whose client reads nothing for this long. Trainers pause to
	// evaluate and to save, so it is long. Default 30 minutes.
	WriteTimeout time.Duration
	// IdleTimeout closes connections without a request for this long. Default 2 minutes.
	IdleTimeout time.Duration
	// AdmitWait bounds how long a new stream waits for memory. Default 5 seconds.
	AdmitWait time.Duration
	// MaxStreams is the maximum number of concurrent streams. Default 1024.
	MaxStreams int
	// CutWait bounds how long Shutdown waits for streams that it cut, since a read may never
	// return. Default 2 seconds.
	CutWait time.Duration
}

// Defaults returns the default options; Backend and Ledger have none.
func Defaults() Options {
	return Options{
		Log: slog.Default(), WriteTimeout: 30 * time.Minute, IdleTimeout: 2 * time.Minute,
		AdmitWait: 5 * time.Second, MaxStreams: 1024, CutWait: 2 * time.Second,
	}
}

func (o Options) withDefaults() Options {
	d := Defaults()
	o.Log = cmp.Or(o.Log, d.Log)
	o.WriteTimeout, o.IdleTimeout = cmp.Or(o.WriteTimeout, d.WriteTimeout), cmp.Or(o.IdleTimeout, d.IdleTimeout)
	o.AdmitWait, o.CutWait = cmp.Or(o.AdmitWait, d.AdmitWait), cmp.Or(o.CutWait, d.CutWait)
	o.MaxStreams = cmp.Or(o.MaxStreams, d.MaxStreams)
	return o
}

// errDraining ends streams that still run when the time to drain is over.
var errDraining = errors.New("server is shutting down")

// Server serves one Backend on any number of listeners. It is safe for concurrent use.
type Server struct {
	opts      Options
	http      *http.Server
	metrics   *metrics
	tokenHash [sha256.Size]byte
	started   time.Time
	draining  atomic.Bool
	fixed     int64 // bytes of the ledger that no stream releases
	conns     *connPool
	waiting   chan struct{} // has an element for each request that waits for memory
	answering chan struct{} // has an element for each manifest that is being sent
	live      *live

	mu      sync.Mutex
	nextID  uint64
	streams map[uint64]*stream
	running sync.WaitGroup
}

// NewServer returns a server that does not listen yet.
func NewServer(o Options) *Server {
	s := &Server{opts: o.withDefaults(), started: time.Now(), streams: map[uint64]*stream{}}
	s.tokenHash = sha256.Sum256([]byte(s.opts.Token))
	s.metrics = newMetrics(s)
	ledger := s.opts.Ledger
	s.conns = newConnPool(numConns(ledger.Cap() - ledger.Used()))
	half := max(1, s.conns.size/2)
	s.waiting, s.answering = make(chan struct{}, half), make(chan struct{}, half)
	part := budget.Part{Name: "connections", Bytes: int64(s.conns.size) * connBytes,
		Why: "requests that are no streams, their headers, TLS sessions"}
	if err := ledger.Reserve(part); err != nil {
		panic("feed: " + err.Error()) // numConns takes at most half of the free bytes
	}
	s.live = newLive(s)
	s.fixed = ledger.Used()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/batches", s.serveBatches)
	mux.HandleFunc("GET /v1/dataset", s.serveDataset)
	mux.HandleFunc("GET /v1/stats", s.serveStats)
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET "+page.Prefix, s.servePageFile)
	mux.HandleFunc("GET /v1/live", s.serveLive)
	mux.HandleFunc("/", serveUnknown)
	var protocols http.Protocols
	protocols.SetHTTP1(true) // streams take the connection over, which HTTP/2 does not allow
	s.http = &http.Server{
		Handler:           s.guard(mux),
		ReadHeaderTimeout: headerTimeout, // and of the TLS handshake
		ReadTimeout:       answerTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         &protocols,
		ConnState:         s.conns.note,
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// serveUnknown refuses unknown paths and methods.
func serveUnknown(w http.ResponseWriter, r *http.Request) {
	const known = "GET /v1/batches, /v1/dataset, /v1/stats, /v1/live, /healthz, /metrics, /"
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeError(w, &RequestError{405, "method " + r.Method + " is not served", known})
		return
	}
	writeError(w, &RequestError{404, "nothing is served at this path", known})
}

// The limits of requests, and of answers that are not streams.
const (
	maxHeaderBytes = 8 << 10 // net/http reads 4 KiB more before it refuses
	headerTimeout  = 10 * time.Second
	answerTimeout  = 30 * time.Second
)

// Serve serves on l until Shutdown and closes l. Errors are those of l.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, &poolListener{l, s.conns}) }

// ServeTLS is Serve over TLS.
func (s *Server) ServeTLS(l net.Listener, config *tls.Config) error {
	return s.serve(l, tls.NewListener(&poolListener{l, s.conns}, config))
}

func (s *Server) serve(l, pooled net.Listener) error {
	s.live.start()
	err := s.http.Serve(pooled)
	if s.draining.Load() || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve on %s: %w", l.Addr(), err)
}

// Shutdown stops listening, waits for streams until ctx ends, and cuts the rest, whose clients then
// see an error. It returns how many it cut, and how many of those did not end within CutWait
// because their reads are stuck in the file system.
func (s *Server) Shutdown(ctx context.Context) (cut, stuck int) {
	s.draining.Store(true)
	s.live.stop()
	s.conns.close()
	_ = s.http.Shutdown(ctx) // its error is ctx's: the remaining connections are closed below
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return 0, 0
	case <-ctx.Done():
	}
	s.mu.Lock()
	cut = len(s.streams)
	for _, st := range s.streams {
		st.cancel(errDraining)
	}
	s.mu.Unlock()
	_ = s.http.Close()
	timer := time.NewTimer(s.opts.CutWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		stuck = s.numStreams()
		s.opts.Log.Error("streams cannot be ended: their reads do not return", "streams", stuck)
	}
	return cut, stuck
}

func (s *Server) serveBatches(w http.ResponseWriter, r *http.Request) {
	err := s.stream(w, r)
	switch {
	case err == nil:
	case r.Context().Err() != nil && errors.Is(err, context.Cause(r.Context())):
		s.metrics.ended.WithLabelValues("left").Inc()
		s.opts.Log.Info("client left before its first batch", "query", r.URL.RawQuery)
	default:
		s.metrics.refused.Inc()
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
	if err := s.await(w, r, &query); err != nil {
		return err
	}
	plan, err := s.opts.Backend.Open(query)
	if err != nil {
		return err
	}
	// net/http's context ends with the hijack.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	st := &stream{query: query, raw: r.URL.RawQuery, from: r.RemoteAddr, plan: plan, since: time.Now(), cancel: cancel}
	st.epoch, _ = strconv.ParseInt(plan.Metadata["dsload.rows"], 10, 64)
	if query.Rank == 0 { // all ranks leave out the same rows
		st.leftOut = func(rows, of int64) { s.sayLeftOut(st, rows, of) }
	}
	if err := s.register(st); err != nil {
		cancel(nil)
		plan.Stream.Close()
		return err
	}
	taken := false // by the stream's own goroutine
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

// await waits while what is served is still being built and the request needs more of it than there
// is. The wait has no deadline.
func (s *Server) await(w http.ResponseWriter, r *http.Request, q *Query) error {
	unfinished, ok := s.opts.Backend.(Unfinished)
	if !ok || unfinished.Progress() == nil {
		return nil
	}
	control := http.NewResponseController(w)
	if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	if err := unfinished.Await(r.Context(), q); err != nil {
		return err
	}
	return control.SetWriteDeadline(time.Now().Add(answerTimeout))
}

// admit leases what the stream may hold, and frees its slot in the connection pool.
func (s *Server) admit(r *http.Request, st *stream) error {
	if err := st.acquire(r.Context(), s.opts.Ledger, s.fixed, s.opts.AdmitWait, s.waiting); err != nil {
		return err
	}
	if c := connOf(r); c != nil {
		if st.extra != nil {
			c.setSendBuffer(largeSendBytes)
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
	out.raw(responseHead(s.opts.Backend.Seal()))
	out.message(st.enc.schema)
	s.finish(st, st.run(ctx, out, first, firstErr), ctx)
}

const contentType = "application/vnd.apache.arrow.stream"

// responseHead returns the head of every stream. The connection closes after the stream, so that
// only the body's own end marker looks like one.
func responseHead(seal string) []byte {
	return []byte("HTTP/1.1 200 OK\r\nContent-Type: " + contentType +
		"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nCache-Control: no-store" +
		"\r\nServer: dsload\r\n" + SealHeader + ": " + seal + "\r\n\r\n")
}

// sayLeftOut logs that an epoch of a stream leaves rows out.
func (s *Server) sayLeftOut(st *stream, rows, of int64) {
	part := fmt.Sprintf("%d of %d rows", rows, of)
	if of == 0 {
		part = fmt.Sprintf("the last %d rows", rows)
	}
	s.opts.Log.Warn(part+" of the epoch are left out: with tail=drop, the rows after the last whole step of "+
		"all ranks are; tail=once serves every row", "stream", st.id, "query", st.raw)
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
		s.metrics.ended.WithLabelValues("complete").Inc()
		log.Info("stream complete")
	case errors.Is(err, errDraining):
		s.metrics.ended.WithLabelValues("shutdown").Inc()
		log.Warn("stream cut: the server is shutting down")
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.metrics.ended.WithLabelValues("timeout").Inc()
		log.Warn("stream cut: the client read nothing for too long", "timeout", s.opts.WriteTimeout)
	case errors.As(err, new(*RequestError)):
		s.metrics.ended.WithLabelValues("failed").Inc()
		log.Error("stream cut", "error", err)
	case errors.As(err, new(*connError)), errors.Is(err, context.Canceled): // the latter before the stream began
		s.metrics.ended.WithLabelValues("left").Inc()
		log.Info("client left")
	default:
		s.metrics.ended.WithLabelValues("failed").Inc()
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
	s.streams[st.id] = st
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
