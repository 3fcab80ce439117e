package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

// A writer is a backend that objects can be written to.
type writer interface {
	lister
	// put writes an object of a known size, completely or not at all, and returns its ETag. Each attempt
	// reads data anew.
	put(ctx context.Context, uri string, data io.ReaderAt, size int64, when Condition) (etag string, err error)
	// remove removes an object. The error is fs.ErrNotExist if it does not exist.
	remove(ctx context.Context, uri string) error
}

// A Condition is what must be true of the object that has a name now, for another to replace it. The zero
// Condition is none.
type Condition struct {
	Absent bool   // there is no object
	ETag   string // it has this ETag
}

// ErrConflict means that the condition of a Put is not met: somebody else has written there, or an earlier
// attempt of the same Put was stored and its answer was lost.
var ErrConflict = errors.New("another process wrote there meanwhile; run the same command again")

// explain returns ErrConflict for an answer that says that the condition is not met, and other errors as they
// are.
func (when Condition) explain(err error) error {
	status := 0
	if e, ok := errors.AsType[*Error](err); ok {
		status = e.Status
	}
	switch {
	case when.ETag != "" && errors.Is(err, fs.ErrNotExist), when.Absent && status == http.StatusConflict,
		when != Condition{} && status == http.StatusPreconditionFailed:
		return ErrConflict
	}
	return err
}

// unknown reports whether an answer may mean that the server does not take conditions.
func (when Condition) unknown(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return when != Condition{} && ok &&
		(e.Status == http.StatusNotImplemented || e.Status == http.StatusBadRequest)
}

func (s *Store) writer(uri string) (writer, error) {
	b, err := s.backend(uri)
	if err != nil {
		return nil, err
	}
	w, ok := b.(writer)
	if !ok {
		return nil, &Error{Kind: ErrUsage, Text: "nothing can be written there",
			Hint: "name an address of s3://, gs:// or az://"}
	}
	return w, nil
}

// Put writes an object of a known size, completely or not at all, and returns its ETag. Each attempt reads
// data anew. If the condition is not met the error is ErrConflict; but some stores do not know conditions, and
// write in any case.
func (s *Store) Put(ctx context.Context, uri string, data io.ReaderAt, size int64, when Condition) (etag string,
	err error) {
	ctx, cancel := s.context(ctx)
	defer cancel()
	w, err := s.writer(uri)
	if err != nil {
		return "", err
	}
	if !s.unconditional.Load() {
		etag, err := w.put(ctx, uri, data, size, when)
		if !when.unknown(err) {
			return etag, when.explain(err)
		}
	}
	etag, err = w.put(ctx, uri, data, size, Condition{})
	if err == nil {
		s.unconditional.Store(true)
	}
	return etag, err
}

// Remove removes an object if it exists.
func (s *Store) Remove(ctx context.Context, uri string) error {
	ctx, cancel := s.context(ctx)
	defer cancel()
	w, err := s.writer(uri)
	if err != nil {
		return err
	}
	if err = w.remove(ctx, uri); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadAll reads a short object.
func (s *Store) ReadAll(ctx context.Context, o Object, limit int64) ([]byte, error) {
	f := s.Open(ctx, o)
	defer f.Close()
	return readLimited(f, limit)
}

// CheckFolder returns an error if an address is not that of a folder in a bucket.
func CheckFolder(address string) error {
	if err := CheckSigned(address); err != nil {
		return err
	}
	bucket, key, err := parseBucket(address)
	if err != nil {
		return err
	}
	if strings.Trim(key, "/") == "" || strings.ContainsAny(key, "*?[") || strings.Contains(key, "//") {
		scheme, _ := Scheme(address)
		return &Error{Kind: ErrUsage, Text: "it is not the address of a folder in the bucket",
			Hint: fmt.Sprintf("write %s://%s/FOLDER", scheme, bucket)}
	}
	return nil
}
