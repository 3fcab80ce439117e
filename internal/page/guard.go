package page

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// IsLocalHost reports whether a Host header names the loopback interface, or the address that the
// connection came to. Any other name could be an attacker's that resolves to this machine (DNS
// rebinding): the browser would treat our answers as that site's own.
func IsLocalHost(hostport string, local net.Addr) bool {
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

// IsForeign reports whether a web page of another origin sent the request. Browsers say so; other
// clients send neither header.
func IsForeign(r *http.Request) bool {
	switch strings.Join(r.Header.Values("Sec-Fetch-Site"), ",") { // a browser sends only one
	case "", "same-origin", "none":
	case "same-site": // such as another port of localhost: links may lead here, scripts may not fetch
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
