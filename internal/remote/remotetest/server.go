// Package remotetest is an HTTP server for tests that behaves as badly as networks do: it breaks
// connections, stalls, answers with errors, ignores ranges, and changes files while they are read.
package remotetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A File is what the server has under a path.
type File struct {
	Data     []byte
	ETag     string    // "" makes one of the data, "-" sends none
	Modified time.Time // zero sends none
}

// A Fault happens to one request, or to one body. The zero Fault is none.
type Fault struct {
	Status int         // answered in place of the file
	Header http.Header // sent with Status
	// Drop, if above 0, breaks the connection after that many bytes of the body.
	Drop int
	// Stall, if above 0, sends nothing after that many bytes until the client goes away, or, with Drip,
	// some more after each such time.
	Stall int
	Drip  time.Duration
	// Then is called once when the fault happens, before the client can notice.
	Then func()
}

// Server serves files. Set its fields before the first request, or between requests with Change.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	files    map[string]File
	faults   []Fault
	requests []Request
	writes   int64 // counts those to buckets

	NoRanges bool // always sends the whole file
	// Beyond sends all that follows a range, not only what was asked for.
	Beyond  bool
	Chunked bool   // does not say how long it is
	User    string // name:password that every request must have; "" for any
	// Conditions is what a memory bucket does with conditions of writes.
	Conditions Conditions
	// OnWrite, if set, decides what becomes of each write and removal in a memory bucket.
	OnWrite func(method, path string) WriteFault
	// Serve, if set, is called first, and reports whether it has answered.
	Serve func(w http.ResponseWriter, r *http.Request) bool
}

// Request is what a client asked for.
type Request struct {
	Method, Path, Range, Authorization, Host string
	Query, Referer, IfRange                  string
	Sent                                     int // bytes of the body
}

// New starts a server without TLS, NewTLS one with it. Close it.
func New() *Server {
	s := &Server{files: map[string]File{}}
	s.Server = httptest.NewServer(s)
	return s
}

// NewTLS starts a server with a certificate that only its own Client trusts.
func NewTLS() *Server {
	s := &Server{files: map[string]File{}}
	s.Server = httptest.NewTLSServer(s)
	return s
}

// Put sets a file.
func (s *Server) Put(path string, f File) {
	f.ETag = f.tag() // once, not at each request
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = f
}

// Fail queues faults, one for each request that follows.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Sent returns how many bytes of bodies have been sent.
func (s *Server) Sent() (n int) {
	for _, r := range s.Requests() {
		n += r.Sent
	}
	return n
}

// Left returns how many faults have not happened yet.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if text := r.Header.Get("x-ms-range"); text != "" { // blobs have it
		r.Header.Set("Range", text)
	}
	s.mu.Lock()
	at := len(s.requests)
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Range: r.Header.Get("Range"),
		Authorization: r.Header.Get("Authorization"), Host: r.Host, Query: r.URL.RawQuery,
		Referer: r.Referer(), IfRange: r.Header.Get("If-Range")})
	s.mu.Unlock()
	if s.Serve != nil && s.Serve(w, r) {
		return
	}
	s.mu.Lock()
	f, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	user, password, _ := r.BasicAuth()
	switch {
	case s.User != "" && user+":"+password != s.User:
		http.Error(w, "who are you?", http.StatusUnauthorized)
	case !ok:
		http.Error(w, "no such file", http.StatusNotFound)
	default:
		s.Send(w, r, f, func(n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.requests[at].Sent += n
		})
	}
}

// nextFault takes the next fault.
func (s *Server) nextFault() (f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	return f
}

// Send answers a request with a file, or the part asked for, unless a fault comes first.
func (s *Server) Send(w http.ResponseWriter, r *http.Request, f File, sent func(int)) {
	fault := s.nextFault()
	h := w.Header()
	if fault.Status != 0 {
		for k, v := range fault.Header {
			h[k] = v
		}
		http.Error(w, "try again", fault.Status)
		if fault.Then != nil {
			fault.Then()
		}
		return
	}
	if tag := f.tag(); tag != "-" {
		h.Set("ETag", tag)
	}
	if !f.Modified.IsZero() {
		h.Set("Last-Modified", f.Modified.UTC().Format(http.TimeFormat))
	}
	from, to, status := 0, len(f.Data), http.StatusOK
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !s.NoRanges {
		first, last, _ := strings.Cut(text, "-")
		from, _ = strconv.Atoi(first)
		if n, err := strconv.Atoi(last); err == nil && !s.Beyond {
			to = min(to, n+1)
		}
		status = http.StatusPartialContent
		if from >= len(f.Data) {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", len(f.Data)))
			http.Error(w, "", http.StatusRequestedRangeNotSatisfiable)
			return
		}
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(f.Data)))
	}
	if !s.Chunked || status == http.StatusPartialContent {
		h.Set("Content-Length", strconv.Itoa(to-from))
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		write(w, r, f.Data[from:to], fault, sent)
	}
}

func write(w http.ResponseWriter, r *http.Request, data []byte, fault Fault, sent func(int)) {
	until := max(fault.Drop, fault.Stall)
	if until == 0 || until > len(data) {
		until = len(data)
	}
	for at := 0; at < until; {
		n, err := w.Write(data[at:min(at+16<<10, until)])
		if at += n; sent != nil {
			sent(n)
		}
		if err != nil {
			return
		}
	}
	w.(http.Flusher).Flush()
	switch {
	case fault.Stall > 0:
		if fault.Then != nil {
			fault.Then()
		}
		for fault.Drip > 0 && until < len(data) {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(fault.Drip):
			}
			next := min(until+16<<10, len(data))
			if _, err := w.Write(data[until:next]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			until = next
		}
		<-r.Context().Done()
	case fault.Drop > 0:
		if fault.Then != nil {
			fault.Then() // before the client can ask again
		}
		panic(http.ErrAbortHandler) // breaks the connection
	}
}
