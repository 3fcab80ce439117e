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
	// stat describes an object without reading it. The error is fs.ErrNotExist if it does not exist.
	stat(ctx context.Context, uri string) (Object, error)
	// list calls add with every object below a folder and its key from there, in any order.
	list(ctx context.Context, folder string, add func(path string, o Object) error) error
}

// A driver makes the backend of one kind of address. What it lists is a lister, and what it writes a writer.
type driver struct {
	open          func(*Store) (backend, error)
	lists, writes bool
}

// drivers has each kind of address that is read, by its scheme.
var drivers = map[string]driver{
	"http":  {open: newWeb},
	"https": {open: newWeb},
	"hf":    {open: newHub, lists: true},
	"az":    {open: newAzure, lists: true, writes: true},
	"s3":    {open: newS3, lists: true, writes: true},
	"gs":    {open: newGS, lists: true, writes: true},
}

// backend returns the backend for the scheme of an address.
func (s *Store) backend(uri string) (backend, error) {
	scheme, _ := Scheme(uri)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.backends[scheme]; ok {
		return b, nil
	}
	d, ok := drivers[scheme]
	if !ok {
		return nil, &Error{Kind: ErrUsage, Text: "addresses of kind " + scheme + ":// cannot be read"}
	}
	b, err := d.open(s)
	if err != nil {
		return nil, err
	}
	s.backends[scheme] = b
	return b, nil
}

// Describe returns the object of exactly that name. If there is none, the error is fs.ErrNotExist.
func (s *Store) Describe(ctx context.Context, uri string) (o Object, err error) {
	ctx, cancel := s.context(ctx)
	defer cancel()
	l, err := s.lister(uri)
	if err != nil {
		return Object{}, err
	}
	return l.stat(ctx, uri)
}

// List calls add with every object below a folder and its key from there, in any order. Keys may
// have empty elements, also at their end. The empty objects that some tools write for folders are
// left out. One slash at the end of the folder's address may be missing.
func (s *Store) List(ctx context.Context, folder string, add func(path string, o Object) error) error {
	ctx, cancel := s.context(ctx)
	defer cancel()
	l, err := s.lister(folder)
	if err != nil {
		return err
	}
	return l.list(ctx, folder, func(key string, o Object) error {
		if o.Size == 0 && strings.HasSuffix(key, "/") {
			return nil
		}
		return add(key, o)
	})
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

// Head reads the beginning of an object into head, and returns the number of bytes read.
func (s *Store) Head(ctx context.Context, o Object, head []byte) (n int, err error) {
	ctx, cancel := s.context(ctx)
	defer cancel()
	return readHead(ctx, &transfer{store: s, object: &o, end: int64(len(head))}, head)
}

// readHead reads a transfer into head, and closes it.
func readHead(ctx context.Context, f *transfer, head []byte) (n int, err error) {
	defer f.close()
	for n < len(head) && err == nil {
		var m int
		m, err = f.read(ctx, head[n:])
		n += m
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadRange calls write with the bytes of an object from an offset to end, piece by piece. It
// returns io.ErrUnexpectedEOF if the object ends before that. A piece is valid until write returns.
// An error from write ends the reading.
func (s *Store) ReadRange(ctx context.Context, o Object, from, end int64, write func([]byte) error) error {
	ctx, cancel := s.context(ctx)
	defer cancel()
	f := &transfer{store: s, object: &o, at: from, end: end}
	defer f.close()
	for buf := make([]byte, max(0, min(rangeBytes, end-from))); f.at < end; { // a server may announce less than no bytes
		n, err := f.read(ctx, buf)
		if err == io.EOF {
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

// rangeBytes is the buffer size of ReadRange.
const rangeBytes = 64 << 10

// ask sends a request, and repeats it while it fails for a passing reason. accept returns an error
// for an unwanted answer. The caller must close the body of any other.
func (s *Store) ask(ctx context.Context, host string, request func() (*http.Request, error),
	accept func(*http.Response) error) (resp *http.Response, err error) {
	err = s.retry(ctx, host, func() error {
		req, err := request()
		if err != nil {
			return err
		}
		if resp, err = s.do(req); err != nil {
			return err
		}
		if err = accept(resp); err != nil {
			resp.Body.Close()
		}
		return err
	}, func(err error) error { return err })
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// readLimited reads a body that must be short.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &Error{Kind: ErrUnreachable, Text: "the response is too long"}
	}
	return data, err
}
