package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a Store. The zero value of a field is its default.
type Options struct {
	// Done, if not nil, ends all waiting and reading with context.Canceled once it is closed.
	Done <-chan struct{}
	// Notice, if not nil, is called with messages for the user while a request waits.
	Notice func(string)
	// Revision, if not nil, returns the commit that an earlier run of the same build found for a
	// repository, given as "hf://datasets/OWNER/NAME@REVISION", or "" if it found none.
	Revision func(repository string) string
}

// StoreBytes is the maximum memory of a Store besides its open files: connections, TLS,
// certificates. It was measured; see docs/sources.md.
const StoreBytes = 7 << 20

// A Store reads remote files.
type Store struct {
	opts   Options
	policy policy
	client *http.Client
	direct *http.Client // the same, without following redirects

	unconditional atomic.Bool // the store that is written to does not know conditions

	mu        sync.Mutex
	answered  map[string]bool    // hosts that have answered
	addresses map[string]string  // keys are URIs, with credentials
	backends  map[string]backend // keys are schemes
}

// NewStore returns a Store. It makes no request.
func NewStore(o Options) *Store {
	s := &Store{opts: o, policy: newPolicy(), answered: map[string]bool{}, addresses: map[string]string{},
		backends: map[string]backend{}}
	s.client = &http.Client{Transport: newTransport(), CheckRedirect: checkRedirect}
	s.direct = &http.Client{Transport: s.client.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// newTransport returns a transport for a few long downloads. HTTP/2 would not help them, and would
// buffer megabytes per stream.
func newTransport() *http.Transport {
	onlyHTTP1 := new(http.Protocols)
	onlyHTTP1.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  60 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConnsPerHost:    16,
		MaxIdleConns:           16,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
		Protocols:              onlyHTTP1,
	}
}

const maxRedirects = 10

// checkRedirect keeps credentials and addresses from other hosts, and requests over TLS from redirects out of
// TLS.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	switch {
	case len(via) >= maxRedirects:
		return &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s redirects %d times", first.Host, len(via))}
	case last.Scheme == "https" && req.URL.Scheme != "https":
		return &Error{Kind: ErrUnreachable,
			Text: fmt.Sprintf("%s redirects to %s without TLS", last.Host, req.URL.Host),
			Hint: "name the http:// address itself if that is wanted"}
	case req.URL.Scheme != "https" && req.URL.Scheme != "http":
		return &Error{Kind: ErrUnreachable, Text: fmt.Sprintf("%s redirects to another kind of address", last.Host)}
	}
	if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		req.Header.Del("Authorization")
	}
	req.Header.Del("Referer") // net/http set it to the whole address before, with its signature
	return nil
}

// Close closes idle connections.
func (s *Store) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *Store) notice(format string, args ...any) {
	if s.opts.Notice != nil {
		s.opts.Notice(fmt.Sprintf(format, args...))
	}
}

func (s *Store) hasAnswered(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[host]
}

func (s *Store) noteAnswer(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered[host] = true
}

// context returns a context that ends with Options.Done, and its cancel function, which must be
// called. If Done is closed already, so is the context: the goroutine below may be late, and a
// request would be sent after the end of a build.
func (s *Store) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	switch {
	case s.opts.Done == nil:
	case s.isDone():
		cancel()
	default:
		go func() {
			select {
			case <-s.opts.Done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// isDone reports whether Options.Done is closed.
func (s *Store) isDone() bool {
	select {
	case <-s.opts.Done: // never, if it is nil
		return true
	default:
		return false
	}
}

// Stat describes the file at an address, and reads its beginning into head. n is less than
// len(head) only if the file is shorter.
func (s *Store) Stat(ctx context.Context, address string, head []byte) (o Object, n int, err error) {
	o = Object{URI: Redact(address), Size: -1}
	if err := s.remember(o.URI, address); err != nil {
		return o, 0, err
	}
	ctx, cancel := s.context(ctx)
	defer cancel()
	n, err = readHead(ctx, &transfer{store: s, object: &o, end: int64(len(head)), learn: true}, head)
	return o, n, err
}

// remember keeps the address of a URI. It returns an error if another address of that URI is known,
// which can differ only in its credentials.
func (s *Store) remember(uri, address string) error {
	if _, err := parseHTTP(address); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.addresses[uri]; ok && known != address {
		return &Error{Kind: ErrUsage, Text: "it is given twice with different credentials",
			Hint: "give each file once"}
	}
	s.addresses[uri] = address
	return nil
}

// url returns the URL for requests about an object.
func (s *Store) url(o *Object) (*url.URL, error) {
	s.mu.Lock()
	address, ok := s.addresses[o.URI]
	s.mu.Unlock()
	if !ok {
		address = o.URI
	}
	return parseHTTP(address)
}
