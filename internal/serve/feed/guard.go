package feed

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/dsload/dsload/internal/page"
)

// SealHeader is the header with Backend.Seal that every response carries.
const SealHeader = "Dsload-Seal"

// DefaultsHeader is the header that responses carry if Options.Defaults is set.
const DefaultsHeader = "Dsload-Defaults"

// WiresHeader names the values of the parameter wire besides its default, for clients that also talk
// to servers without it.
const WiresHeader = "Dsload-Wires"

// guard makes the checks that apply to every request: the client, the host name, the token, and
// that nothing is uploaded.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.metrics.countRequest(r.URL.Path)
		w.Header().Set("Server", "dsload")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set(SealHeader, s.opts.Backend.Seal())
		w.Header().Set(WiresHeader, "narrow")
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
		return nil // its mode protects it, and no browser can reach it
	}
	if r.Host == "" {
		return &RequestError{400, "the request has no Host", "send Host, as every HTTP/1.1 client does"}
	}
	if s.opts.Token == "" && !page.IsLocalHost(r.Host, local) {
		return &RequestError{421, "without a token only requests for localhost are answered: " +
			"another name may be a web page's that was pointed here",
			"ask for localhost or 127.0.0.1, or serve with a token"}
	}
	if page.IsForeign(r) {
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

// authorized compares the token in constant time. It compares hashes, so that not even the token's
// length leaks.
func (s *Server) authorized(r *http.Request) bool {
	if s.opts.Token == "" || r.URL.Path == "/healthz" {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") { // RFC 9110 takes it in any case
		_, given, _ = r.BasicAuth()
	}
	hash := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(hash[:], s.tokenHash[:]) == 1
}
