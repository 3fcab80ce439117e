package remote

import (
	"net"
	"net/url"
	"strings"
)

var schemes = map[string]bool{"http": true, "https": true, "hf": true, "s3": true, "gs": true, "az": true}

// Scheme returns the scheme of an address, and reports whether this package reads it.
func Scheme(address string) (scheme string, ok bool) {
	scheme, _, found := strings.Cut(address, "://")
	scheme = strings.ToLower(scheme)
	return scheme, found && schemes[scheme]
}

// parseHTTP parses an http or https address.
func parseHTTP(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		// its error quotes the address
		return nil, &Error{Kind: ErrUsage, Text: "the address cannot be parsed",
			Hint: "write https://HOST/PATH, with spaces as %20"}
	case u.Hostname() == "":
		return nil, &Error{Kind: ErrUsage, Text: "the address has no host", Hint: "write https://HOST/PATH"}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Insecure reports whether an address is read without encryption over a network.
func Insecure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !isLoopback(u.Hostname())
}
