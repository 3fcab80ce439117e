package page

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// A Server serves one live page to browsers on this machine. It serves nothing else: all content is
// embedded in the program.
type Server struct {
	http     *http.Server
	listener net.Listener
	done     chan struct{}
}

// The limits of a request.
const (
	maxHeaderBytes = 8 << 10
	requestTimeout = 10 * time.Second
	idleTimeout    = 30 * time.Second
)

// NewServer serves a page and its Live on l until Close, to at most conns connections at once.
func NewServer(l net.Listener, name string, live *Live, conns int) *Server {
	s := &Server{listener: l, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { Serve(w, name) })
	mux.HandleFunc("GET /v1/live", func(w http.ResponseWriter, r *http.Request) {
		if err := live.ServeEvents(w, r); err != nil {
			Refuse(w, http.StatusServiceUnavailable, err.Error(), "close one of them")
		}
	})
	mux.HandleFunc("GET "+Prefix, func(w http.ResponseWriter, r *http.Request) {
		if !ServeFile(w, r) {
			Refuse(w, http.StatusNotFound, "nothing is served at this path", "open /")
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		Refuse(w, http.StatusNotFound, "nothing is served at this path", "open /")
	})
	s.http = &http.Server{
		Handler: guard(mux), ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: idleTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(netutil.LimitListener(l, conns))
	}()
	return s
}

// Addr returns where the page is served.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends the server after current requests have ended or ctx has.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.done
	return err
}

// guard answers only requests from our own pages, under a name of this machine.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		switch {
		case r.ContentLength != 0:
			w.Header().Set("Connection", "close") // net/http would read the body first
			Refuse(w, http.StatusRequestEntityTooLarge, "requests have no body", "leave it out")
		case !IsLocalHost(r.Host, local):
			Refuse(w, http.StatusMisdirectedRequest,
				"only requests for localhost are answered: another name may be a web page's that was pointed here",
				"ask for localhost or 127.0.0.1")
		case IsForeign(r):
			Refuse(w, http.StatusForbidden, "another site's page asks for this", "open the page itself")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Refuse answers with {"error", "hint"}.
func Refuse(w http.ResponseWriter, status int, reason, hint string) {
	body, _ := json.Marshal(map[string]string{"error": reason, "hint": hint}) // strings always marshal
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
