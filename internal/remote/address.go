package remote

import (
	"net"
	"net/url"
	"strings"
)

// AnyScheme returns the scheme of an address as it is written, whether or not this package reads it. ok is
// false for a path.
func AnyScheme(arg string) (scheme string, ok bool) {
	scheme, _, found := strings.Cut(arg, "://")
	return scheme, found && !strings.ContainsAny(scheme, `/\`)
}

// Scheme returns the scheme of an address, and reports whether this package reads it.
func Scheme(address string) (scheme string, ok bool) {
	scheme, _, found := strings.Cut(address, "://")
	scheme = strings.ToLower(scheme)
	_, ok = drivers[scheme]
	return scheme, found && ok
}

// Listable reports whether an address may be that of a folder or a glob.
func Listable(address string) bool {
	scheme, ok := Scheme(address)
	return ok && drivers[scheme].lists
}

// Writable reports whether objects can be written below an address.
func Writable(address string) bool {
	scheme, ok := Scheme(address)
	return ok && drivers[scheme].writes
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
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// Insecure reports whether an address is read without encryption over a network.
func Insecure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !isLoopback(u.Hostname())
}
