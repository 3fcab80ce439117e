package remote

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// A backend reads the objects of one kind of address.
type backend interface {
	// host names the server of an object, for messages.
	host(o *Object) string
	// get requests the bytes of an object from an offset to end, or to its own end if end is
	// negative. ctx lives as long as the body.
	get(ctx context.Context, o *Object, from, end int64) (*body, error)
}

// A lister is a backend whose objects can be listed.
type lister interface {
	backend
	// stat describes an object without reading it; fs.ErrNotExist where there is none of the name.
	stat(ctx context.Context, uri string) (Object, error)
	// list gives every object below a folder by its path from there, in any order.
	list(ctx context.Context, folder string, add func(path string, o Object) error) error
}

// backend returns what reads the addresses of a scheme.
func (s *Store) backend(uri string) (backend, error) {
	scheme, _ := Scheme(uri)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.backends[scheme]; ok {
		return b, nil
	}
	var b backend
	var err error
	switch scheme {
	case "http", "https":
		b = web{s}
	case "hf":
		b, err = newHub(s)
	case "s3":
		b, err = newS3(s)
	case "gs":
		b, err = newGS(s)
	case "az":
		b, err = newAzure(s)
	default:
		return nil, &Error{Kind: ErrUsage, Text: "addresses of kind " + scheme + ":// cannot be read"}
	}
	if err != nil {
		return nil, err
	}
	s.backends[scheme] = b
	return b, nil
}

// Listable reports whether what an address names can be a folder or a glob.
func Listable(address string) bool {
	scheme, ok := Scheme(address)
	return ok && scheme != "http" && scheme != "https"
}

// Describe returns the object of exactly that name; the error is fs.ErrNotExist where there is none.
func (s *Store) Describe(ctx context.Context, uri string) (o Object, err error) {
	ctx, cancel := s.context(ctx)
	defer cancel()
	l, err := s.lister(uri)
	if err != nil {
		return Object{}, err
	}
	return l.stat(ctx, uri)
}

// List calls add with every object below a folder, and its path from there, in no certain order.
func (s *Store) List(ctx context.Context, folder string, add func(path string, o Object) error) error {
	ctx, cancel := s.context(ctx)
	defer cancel()
	l, err := s.lister(folder)
	if err != nil {
		return err
	}
	return l.list(ctx, strings.TrimRight(folder, "/"), add)
}

func (s *Store) lister(uri string) (lister, error) {
	b, err := s.backend(uri)
	if err != nil {
		return nil, err
	}
	l, ok := b.(lister)
	if !ok {
		return nil, &Error{Kind: ErrUsage, Text: "a web server cannot be listed", Hint: "name each file"}
	}
	return l, nil
}

// Head reads the beginning of an object into head, and returns how much of it there is.
func (s *Store) Head(ctx context.Context, o Object, head []byte) (n int, err error) {
	ctx, cancel := s.context(ctx)
	defer cancel()
	f := &stream{store: s, object: &o, end: int64(len(head))}
	defer f.close()
	for n < len(head) {
		m, err := f.read(ctx, head[n:])
		if n += m; err != nil {
			if isEOF(err) {
				return n, nil
			}
			return n, err
		}
	}
	return n, nil
}

// ReadRange calls write with the bytes of an object from an offset to end, piece by piece. It returns
// io.ErrUnexpectedEOF where the object ends before. The pieces are valid until write returns; its
// error ends the reading.
func (s *Store) ReadRange(ctx context.Context, o Object, from, end int64, write func([]byte) error) error {
	ctx, cancel := s.context(ctx)
	defer cancel()
	f := &stream{store: s, object: &o, at: from, end: end}
	defer f.close()
	for buf := make([]byte, min(rangeBytes, end-from)); f.at < end; {
		n, err := f.read(ctx, buf)
		if isEOF(err) {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = write(buf[:n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rangeBytes is the buffer of ReadRange.
const rangeBytes = 64 << 10

// ask sends a request until an answer comes that is no passing failure. accept returns the error of
// an answer that is not wanted; the body of any other is the caller's to close.
func (s *Store) ask(ctx context.Context, host string, make func() (*http.Request, error),
	accept func(*http.Response) error) (*http.Response, error) {
	tries := attempts{store: s, host: host}
	for {
		req, err := make()
		if err != nil {
			return nil, err
		}
		resp, err := s.do(req)
		if err == nil {
			if err = accept(resp); err == nil {
				return resp, nil
			}
			resp.Body.Close()
		}
		if err := tries.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// readLimited reads a body that must be short.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &Error{Kind: ErrUnreachable, Text: "the answer is longer than any that makes sense"}
	}
	return data, err
}
