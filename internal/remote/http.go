package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// userAgent names the program to servers.
const userAgent = "dsload"

// A body is the answer to a request for the bytes of an object from an offset on.
type body struct {
	io.ReadCloser
	from   int64 // where it begins: 0 if the server sends the whole object regardless
	object Object
}

// web is the backend of https:// and http:// addresses.
type web struct{ store *Store }

func newWeb(s *Store) (backend, error) { return web{s}, nil }

func (w web) host(o *Object) string {
	u, err := w.store.url(o)
	if err != nil {
		return ""
	}
	return u.Host
}

func (w web) get(ctx context.Context, o *Object, from, end int64) (*body, error) {
	u, err := w.store.url(o)
	if err != nil {
		return nil, err
	}
	req := newRequest(ctx, u)
	setRange(req.Header, from, end)
	if req.Header.Get("Range") != "" && o.ETag != "" && strongETag(o.ETag) == o.ETag {
		req.Header.Set("If-Range", o.ETag) // then another version comes whole
	}
	resp, err := w.store.do(req)
	if err != nil {
		return nil, err
	}
	b, err := answer(resp, o.URI, from)
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if to := Redact(resp.Request.URL.String()); resp.Request != req && to != o.URI {
		b.object.Answer.MovedTo = to
	}
	return b, nil
}

// setRange asks for the bytes from an offset to end, or to the file's own end if end is negative.
func setRange(header interface{ Set(key, value string) }, from, end int64) {
	if end >= 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, end-1))
	} else if from > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
}

// newRequest returns a GET without the name and password in the URL itself, so that no error quotes
// them.
func newRequest(ctx context.Context, u *url.URL) *http.Request {
	plain := *u
	plain.User = nil
	req := (&http.Request{Method: http.MethodGet, URL: &plain, Header: http.Header{},
		Host: plain.Host}).WithContext(ctx)
	if u.User != nil {
		password, _ := u.User.Password()
		req.SetBasicAuth(u.User.Username(), password)
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept-Encoding", "identity")
	return req
}

// do sends a request, and explains why if no answer comes.
func (s *Store) do(req *http.Request) (*http.Response, error) { return s.send(s.client, req) }

func (s *Store) send(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req)
	if err == nil {
		s.noteAnswer(req.URL.Host)
		return resp, nil
	}
	if req.Context().Err() != nil {
		return nil, context.Canceled
	}
	if own, ok := errors.AsType[*Error](err); ok { // checkRedirect's
		return nil, own
	}
	return nil, transportError(err, req.URL.Host)
}

// How much of an error's page is read, and for how long, so that its connection can be used again.
const (
	maxErrorBody = 64 << 10
	maxErrorTime = 5 * time.Second
)

// answer makes a body from the answer to a request for the bytes from an offset on.
func answer(resp *http.Response, uri string, from int64) (*body, error) {
	b := &body{ReadCloser: resp.Body, object: describe(resp, uri)}
	switch resp.StatusCode {
	case http.StatusOK:
		b.object.Size = resp.ContentLength
		b.object.Answer.Unframed = resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
		return b, nil
	case http.StatusPartialContent:
		if err := b.begin(resp.Request.URL.Host, resp.Header.Get("Content-Range"), from); err != nil {
			return nil, err
		}
		return b, nil
	case http.StatusRequestedRangeNotSatisfiable:
		// The file ends at or before the offset.
		_, size, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok && from == 0 {
			size, ok = 0, true // only an empty file has no first byte
		}
		if ok {
			b.from, b.object.Size, b.ReadCloser = from, size, http.NoBody
			resp.Body.Close()
			return b, nil
		}
	}
	late := time.AfterFunc(maxErrorTime, func() { resp.Body.Close() })
	io.CopyN(io.Discard, resp.Body, maxErrorBody) // only so that the connection can be reused
	late.Stop()
	return nil, statusError(resp, resp.Request.URL.Host)
}

// describe returns what an answer says about the whole object, except its size.
func describe(resp *http.Response, uri string) Object {
	o := Object{URI: uri, Size: -1, ETag: resp.Header.Get("ETag")}
	if at, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		o.Modified = at.UTC().Truncate(time.Second)
	}
	if len(o.ETag) > 1024 {
		o.ETag = "" // too long to be an ETag: an attack on memory
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // "" if it cannot be parsed
	o.Answer.Page = kind == "text/html" || kind == "application/xhtml+xml"
	return o
}

// begin takes from a Content-Range the size of the object, of which the body must begin at from.
func (b *body) begin(host, text string, from int64) error {
	start, size, ok := contentRange(text)
	if !ok || start != from {
		return &Error{Kind: ErrUnreachable, Status: http.StatusPartialContent, Text: fmt.Sprintf(
			"%s was asked for the bytes from %d on and sent others (%s)", host, from, oneLine(text))}
	}
	b.from, b.object.Size = from, size
	return nil
}

// contentRange reads "bytes 5-9/20" or "bytes */20"; size is -1 for "bytes 5-9/*".
func contentRange(text string) (start, size int64, ok bool) {
	text, ok = strings.CutPrefix(strings.TrimSpace(text), "bytes")
	place, whole, cut := strings.Cut(strings.TrimLeft(text, " ="), "/")
	if !ok || !cut {
		return 0, -1, false
	}
	if size = -1; whole != "*" {
		n, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || n < 0 {
			return 0, -1, false
		}
		size = n
	}
	if place == "*" {
		return 0, size, size >= 0
	}
	first, _, cut := strings.Cut(place, "-")
	start, err := strconv.ParseInt(first, 10, 64)
	return start, size, cut && err == nil && start >= 0
}
