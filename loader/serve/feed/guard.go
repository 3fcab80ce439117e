package feed

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// SealHeader is the header that every response carries: Backend.Seal.
const SealHeader = "Dsload-Seal"

// DefaultsHeader is the header that responses carry where Options.Defaults is set.
const DefaultsHeader = "Dsload-Defaults"

// guard checks what holds for every request: who asks, under which name, the token, and that
// nothing is uploaded.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.metrics.requests.WithLabelValues(pathLabel(r.URL.Path)).Inc()
		w.Header().Set("Server", "dsload")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set(SealHeader, s.opts.Backend.Seal())
		if s.opts.Defaults != "" {
			w.Header().Set(DefaultsHeader, s.opts.Defaults)
		}
		err := s.checkRequest(w, r)
		r.Body = http.MaxBytesReader(w, r.Body, 0)
		if err != nil {
			writeError(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) checkRequest(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // net/http would read the body first
		return &RequestError{413, "requests have no body", "put parameters into the query"}
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && local.Network() == "unix" {
		return nil // guarded by its mode, and no browser reaches it
	}
	if r.Host == "" {
		return &RequestError{400, "the request has no Host", "send Host, as every HTTP/1.1 client does"}
	}
	if s.opts.Token == "" && !isLocalHost(r.Host, local) {
		return &RequestError{421, "without a token only requests for localhost are answered: another name may be a web page's that was pointed here",
			"ask for localhost or 127.0.0.1, or serve with a token"}
	}
	if foreignOrigin(r) {
		return &RequestError{403, "another site's page asks for this",
			"open the dashboard itself, or use a client that is not a web page"}
	}
	if !s.authorized(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="dsload"`)
		return &RequestError{401, "no valid token",
			"send Authorization: Bearer with the content of the server's token file"}
	}
	return nil
}

// isLocalHost reports whether a Host header names this machine's loopback, or the very address that
// the connection came to. Any other name could be an attacker's that resolves to this machine (DNS
// rebinding): the browser would take our answers for that site's own.
func isLocalHost(hostport string, local net.Addr) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = inner[:len(inner)-1]
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.Unmap().IsLoopback() {
		return true
	}
	tcp, ok := local.(*net.TCPAddr)
	return ok && tcp.AddrPort().Addr().Unmap() == ip.Unmap()
}

// foreignOrigin reports whether a web page of another origin sent the request. Browsers say so;
// other clients send neither header.
func foreignOrigin(r *http.Request) bool {
	switch strings.Join(r.Header.Values("Sec-Fetch-Site"), ",") { // more than one is no browser's
	case "", "same-origin", "none":
	case "same-site": // such as another port of localhost: a link may lead here, a script may not
		if r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return true
		}
	default:
		return true
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// authorized compares the token in constant time: hashes of equal length, so that not even its
// length shows.
func (s *Server) authorized(r *http.Request) bool {
	if s.opts.Token == "" || r.URL.Path == "/healthz" {
		return true
	}
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		_, given, _ = r.BasicAuth()
	}
	hash := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(hash[:], s.tokenHash[:]) == 1
}
