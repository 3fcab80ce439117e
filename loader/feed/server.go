package feed

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dsload/dsload/loader/collate"
	"github.com/dsload/dsload/loader/internal/budget"
)

// Options configures a server. None of them changes a batch.
type Options struct {
	Backend Backend
	Ledger  *budget.Ledger // bytes for streams; the process's other needs are reserved in it before
	Log     *slog.Logger   // default: slog.Default

	// Token, where set, must come with every request over TCP but GET /healthz: as a bearer token or a Basic password.
	Token string
	// WriteTimeout ends a stream whose client takes nothing for so long. Trainers pause to evaluate and to save, so it is generous. Default 30 minutes.
	WriteTimeout time.Duration
	// IdleTimeout closes connections that ask nothing for so long. Default 2 minutes.
	IdleTimeout time.Duration
	// AdmitWait is how long a new stream waits for memory before it is refused. Default 5 seconds.
	AdmitWait time.Duration
	// MaxStreams is the largest number of streams at once. Default 1024.
	MaxStreams int
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&o.WriteTimeout, 30 * time.Minute}, {&o.IdleTimeout, 2 * time.Minute}, {&o.AdmitWait, 5 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 1024
	}
	return o
}

// errDraining ends streams that are still running when the time to drain is over.
var errDraining = errors.New("server is shutting down")

// Server serves one Backend on any number of listeners. Safe for concurrent use.
type Server struct {
	opts      Options
	http      *http.Server
	metrics   *metrics
	tokenHash [sha256.Size]byte
	started   time.Time
	draining  atomic.Bool
	fixed     int64 // of the ledger, what no stream gives back

	mu      sync.Mutex
	nextID  uint64
	streams map[uint64]*stream
	running sync.WaitGroup
}

// NewServer makes a server; it listens to nothing yet.
func NewServer(o Options) *Server {
	s := &Server{opts: o.withDefaults(), started: time.Now(), streams: map[uint64]*stream{}}
	s.tokenHash = sha256.Sum256([]byte(s.opts.Token))
	s.metrics = newMetrics(s)
	s.fixed = s.opts.Ledger.Used()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/batches", s.serveBatches)
	mux.HandleFunc("GET /v1/dataset", s.serveDataset)
	mux.HandleFunc("GET /v1/stats", s.serveStats)
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /{$}", s.serveDashboard)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		const known = "GET /v1/batches, /v1/dataset, /v1/stats, /healthz, /metrics, /"
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeError(w, &RequestError{405, "method " + r.Method + " is not served", known})
			return
		}
		writeError(w, &RequestError{404, "nothing is served at this path", known})
	})
	var protocols http.Protocols
	protocols.SetHTTP1(true) // streams take the connection over, which HTTP/2 does not allow
	s.http = &http.Server{
		Handler:           s.guard(mux),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    16 << 10,
		Protocols:         &protocols,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve answers on l until Shutdown; it closes l. Errors are those of l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown stops listening, lets streams end until ctx does, and cuts the rest, whose clients then see an error. It returns how many it cut.
func (s *Server) Shutdown(ctx context.Context) (cut int) {
	s.draining.Store(true)
	_ = s.http.Shutdown(ctx) // its error is ctx's: connections that do not end are closed below
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.mu.Lock()
		cut = len(s.streams)
		for _, st := range s.streams {
			st.cancel(errDraining)
		}
		s.mu.Unlock()
		_ = s.http.Close()
		<-done
	}
	return cut
}

// guard checks what holds for every request: the token, the protocol, and that nothing is uploaded.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.metrics.requests.WithLabelValues(pathLabel(r.URL.Path)).Inc()
		w.Header().Set("Server", "dsload")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(w, r.Body, 0)
		if r.ContentLength > 0 {
			w.Header().Set("Connection", "close")
			writeError(w, &RequestError{413, "requests have no body", "put parameters into the query"})
			return
		}
		if !s.authorized(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="dsload"`)
			writeError(w, &RequestError{401, "no valid token", "send Authorization: Bearer with the content of the server's --token-file"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorized compares the token in constant time: hashes of equal length, so that not even its length shows.
func (s *Server) authorized(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if s.opts.Token == "" || r.URL.Path == "/healthz" || local != nil && local.Network() == "unix" {
		return true // the unix socket is guarded by its mode
	}
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		_, given, _ = r.BasicAuth()
	}
	hash := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(hash[:], s.tokenHash[:]) == 1
}

func (s *Server) serveBatches(w http.ResponseWriter, r *http.Request) {
	if err := s.stream(w, r); err != nil {
		s.metrics.refused.Inc()
		s.opts.Log.Info("request refused", "query", r.URL.RawQuery, "error", err)
		writeError(w, err)
	}
}

// stream answers with batches. Errors before the first byte are returned; later ones can only cut the connection.
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
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context())) // net/http's own ends with the hijack
	defer cancel(nil)
	st := &stream{query: query, raw: r.URL.RawQuery, from: r.RemoteAddr, plan: plan, since: time.Now(), cancel: cancel}
	if err := s.register(st); err != nil {
		plan.Stream.Close()
		return err
	}
	defer s.unregister(st)
	enc, err := newEncoder(plan)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", contentType)
		return nil
	}
	if err := st.acquire(r.Context(), s.opts.Ledger, s.fixed, s.opts.AdmitWait); err != nil {
		return err
	}
	first := collate.New(plan.Collate)
	firstErr := st.next(ctx, first)
	if firstErr != nil && !errors.Is(firstErr, io.EOF) {
		return firstErr
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // a cut stream's write returns at once
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil
	}
	out := newWriter(&deadlineConn{conn, s.opts.WriteTimeout, &st.stats}, enc, st.piece)
	out.raw(responseHead)
	out.message(enc.schema)
	s.finish(st, st.run(ctx, out, first, firstErr), ctx)
	return nil
}

const contentType = "application/vnd.apache.arrow.stream"

// responseHead is the head of every stream. The connection closes after it, so that nothing but the body's own end can look like one.
var responseHead = []byte("HTTP/1.1 200 OK\r\nContent-Type: " + contentType +
	"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nCache-Control: no-store\r\nServer: dsload\r\n\r\n")

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
		log.Warn("stream cut: the client took nothing for too long", "timeout", s.opts.WriteTimeout)
	case isGone(err):
		s.metrics.ended.WithLabelValues("left").Inc()
		log.Info("client left")
	default:
		s.metrics.ended.WithLabelValues("failed").Inc()
		log.Error("stream cut: its data cannot be read", "error", err)
	}
}

// isGone tells errors of a connection whose other side went away.
func isGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

func (s *Server) register(st *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining.Load():
		return &RequestError{503, "the server is shutting down", "connect again when it is back"}
	case len(s.streams) >= s.opts.MaxStreams:
		return &RequestError{503, fmt.Sprintf("%d streams are running, which is the limit", len(s.streams)), "end one first, or serve with a larger --max-streams"}
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
	delete(s.streams, st.id)
	s.mu.Unlock()
	s.running.Done()
}

func (s *Server) serveDataset(w http.ResponseWriter, r *http.Request) {
	body, err := s.opts.Backend.Dataset(r.URL.Query().Get("name"))
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may be gone
}
