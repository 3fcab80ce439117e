package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/dsload/dsload/internal/fault"
)

var (
	// ErrUnreachable means that no answer came, or no usable one, after all attempts.
	ErrUnreachable = fault.New(fault.Unreachable, "unreachable")
	// ErrDenied means that the server wants credentials, or other ones.
	ErrDenied = errors.New("access denied")
	// ErrNoBucket means that what the objects of an address would be in does not exist: the bucket,
	// the container, or the repository and its revision or folder. Of an object that does not exist
	// in a bucket the error is fs.ErrNotExist.
	ErrNoBucket = errors.New("no such bucket")
	// ErrUsage means that an address cannot be right.
	ErrUsage = fault.New(fault.Usage, "wrong usage")
	// ErrMismatch means that the bytes of a file are not those that its server announced.
	ErrMismatch = fault.New(fault.Corrupt, "content differs from what was announced")
)

// Error is the failure of a request. Its text contains neither the address, which the caller knows,
// nor credentials, which nobody may see.
type Error struct {
	Kind   error  // a sentinel of this package, or fs.ErrNotExist
	Text   string // what the server or the network said
	Hint   string // what to do about it
	Status int    // HTTP's, 0 if no answer came

	retry bool          // another attempt may succeed
	wait  time.Duration // the pause that the server asked for
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Text
	}
	return e.Text + "; " + e.Hint
}

func (e *Error) Unwrap() error { return e.Kind }

// ChangedError means that an object is not the one that was listed or read before.
type ChangedError struct {
	What    string // "ETag", "size", "modification time"
	Was, Is string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("its %s changed while it was read (was %s, is %s)", e.What, e.Was, e.Is)
}

// statusError explains an unwanted answer. body is the beginning of its body.
func statusError(resp *http.Response, host string) *Error {
	e := &Error{Status: resp.StatusCode, Kind: ErrUnreachable,
		Text: fmt.Sprintf("%s answers %s", host, statusText(resp.StatusCode))}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound, code == http.StatusGone:
		e.Kind, e.Text = fs.ErrNotExist, fmt.Sprintf("not found: %s answers %s", host, statusText(resp.StatusCode))
		e.Hint = "check the address"
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		e.Kind, e.Text = ErrDenied, fmt.Sprintf("access denied: %s answers %s", host, statusText(resp.StatusCode))
	case passes(code):
		e.retry, e.wait = true, retryAfter(resp.Header, time.Now())
	}
	return e
}

// passes reports whether a status is that of a fault which may have passed by the next attempt.
func passes(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return code >= 500
}

// statusText returns a status as its number and its words.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code)))
}

// transportError explains why no answer came. The errors of net/http quote the address, so only
// their causes are reported.
func transportError(err error, host string) *Error {
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	e := &Error{Kind: ErrUnreachable, retry: true}
	dns, _ := errors.AsType[*net.DNSError](err)
	cert, _ := errors.AsType[*tls.CertificateVerificationError](err)
	timeout, _ := errors.AsType[net.Error](err)
	operation, _ := errors.AsType[*net.OpError](err)
	if operation != nil && operation.Op == "proxyconnect" {
		proxied := transportError(operation.Err, "the proxy")
		e.Text, e.Hint = fmt.Sprintf("the proxy before %s does not answer: %s", host, proxied.Text),
			"check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
		return e
	}
	switch {
	case dns != nil:
		e.Text, e.Hint = fmt.Sprintf("the name %s cannot be resolved", dns.Name), "check the network and the address"
		if dns.IsTimeout {
			e.Text += " in time"
		}
	case cert != nil:
		e.retry = false
		e.Text = fmt.Sprintf("the certificate of %s is not trusted: %v", host, cert.Err)
		e.Hint = "add its authority to those of the system, or name a file of certificates in SSL_CERT_FILE"
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, http.ErrSchemeMismatch):
		e.retry, e.Text, e.Hint = false, host+" does not speak TLS", "use http:// if the address has it"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Text, e.Hint = "connection to "+host+" refused", "check the network and the address"
	case timeout != nil && timeout.Timeout():
		e.Text, e.Hint = "no answer from "+host+" in time", "check the network"
	case operation != nil:
		e.Text, e.Hint = fmt.Sprintf("connection to %s: %v", host, operation.Err), "check the network"
	default:
		e.Text = fmt.Sprintf("connection to %s: %v", host, err)
	}
	return e
}

// oneLine makes a server's message printable: one line of at most 200 characters.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return text
}
