package feed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/page"
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
	saidShort sync.Once

	mu      sync.Mutex
	nextID  uint64
	streams map[uint64]*stream
	asked   map[string]map[string]float64 // what the latest stream of each split asked for
	running sync.WaitGroup
}

// NewServer returns a server that does not listen yet.
func NewServer(o Options) *Server {
	s := &Server{opts: o.withDefaults(), started: time.Now(), streams: map[uint64]*stream{},
		asked: map[string]map[string]float64{}}
	s.tokenHash = sha256.Sum256([]byte(s.opts.Token))
	s.metrics = newMetrics(s)
	ledger := s.opts.Ledger
	s.conns = newConnPool(numConns(ledger.Cap() - ledger.Used()))
	half := max(1, s.conns.size/2)
	s.waiting, s.answering = make(chan struct{}, half), make(chan struct{}, half)
	part := budget.Share{Name: "connections", Bytes: int64(s.conns.size) * connBytes,
		Why: "requests other than streams, their headers, TLS sessions"}
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
	mux.Handle("GET /metrics", s.metrics)
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET "+page.Prefix, s.servePageFile)
	mux.HandleFunc("GET /v1/live", s.serveLive)
	mux.HandleFunc("/", serveUnknown)
	var protocols http.Protocols
	protocols.SetHTTP1(true) // streams take the connection over, which HTTP/2 does not allow
	s.http = &http.Server{
		Handler:           s.guard(mux),
		ReadHeaderTimeout: headerTimeout, // bounds the TLS handshake, too
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
