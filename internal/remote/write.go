package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// A writer is a backend that objects can be written to.
type writer interface {
	lister
	// put writes an object of a known size, completely or not at all. Each attempt reads data anew.
	put(ctx context.Context, uri string, data io.ReaderAt, size int64) error
	// remove removes an object. The error is fs.ErrNotExist if it does not exist.
	remove(ctx context.Context, uri string) error
}

func (s *Store) writer(uri string) (writer, error) {
	b, err := s.backend(uri)
	if err != nil {
		return nil, err
	}
	w, ok := b.(writer)
	if !ok {
		return nil, &Error{Kind: ErrUsage, Text: "nothing can be written there",
			Hint: "name an address of s3:// or gs://"}
	}
	return w, nil
}

// Put writes an object of a known size, completely or not at all. Each attempt reads data anew.
func (s *Store) Put(ctx context.Context, uri string, data io.ReaderAt, size int64) error {
	ctx, cancel := s.context(ctx)
	defer cancel()
	w, err := s.writer(uri)
	if err != nil {
		return err
	}
	return w.put(ctx, uri, data, size)
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
func (s *Store) ReadAll(ctx context.Context, uri string, limit int64) ([]byte, error) {
	o, err := s.Describe(ctx, uri)
	if err != nil {
		return nil, err
	}
	f := s.Open(ctx, o)
	defer f.Close()
	return readLimited(f, limit)
}

// CheckFolder returns an error if an address is not that of a folder in a bucket.
func CheckFolder(address string) error {
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
