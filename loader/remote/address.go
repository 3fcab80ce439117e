package remote

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// secretParameters are query parameters that grant access, in lower case.
var secretParameters = map[string]bool{"signature": true, "sig": true, "awsaccesskeyid": true, "googleaccessid": true,
	"apikey": true, "api_key": true, "api-key": true, "key": true, "auth": true, "jwt": true, "pwd": true, "pass": true}

// signingParameters accompany a signature and change with it: those of S3's and Google's stores,
// CloudFront, and Azure's shared access signatures.
var signingParameters = map[string]bool{"expires": true, "policy": true, "key-pair-id": true, "se": true, "sp": true,
	"sv": true, "sr": true, "st": true, "spr": true, "skoid": true, "sktid": true, "skt": true, "ske": true,
	"sks": true, "skv": true, "sip": true, "sdd": true, "ss": true, "srt": true}

// secretWords are parts of the names of other parameters that grant access.
var secretWords = []string{"token", "secret", "passw", "credential", "signature", "x-amz-", "x-goog-", "x-ms-",
	"access_key", "accesskey"}

func isSecret(parameter string) bool {
	return secretParameters[parameter] ||
		slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(parameter, word) })
}

// Redact returns an address without its credentials: without name, password, fragment, and the
// query parameters that sign it. The result identifies the file, however often its address is
// signed anew. A parameter whose name cannot be decoded is removed too.
func Redact(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	out := scheme + "://" + host
	if hasPath {
		out += "/" + path
	}
	if !hasQuery {
		return out
	}
	type pair struct{ name, text string }
	var pairs []pair
	signed := false
	for _, text := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(text, "=")
		name, err := url.QueryUnescape(name)
		name = strings.ToLower(name)
		if err != nil || isSecret(name) {
			signed = true
			continue
		}
		pairs = append(pairs, pair{name, text})
	}
	separator := "?"
	for _, p := range pairs {
		if !signed || !signingParameters[p.name] {
			out += separator + p.text
			separator = "&"
		}
	}
	return out
}

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
