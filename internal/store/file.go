package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/dsload/dsload/internal/remote"
)

// objectInfo describes an object as a file.
type objectInfo struct{ remote.Object }

func (i objectInfo) Name() string       { return path.Base(i.URI) }
func (i objectInfo) Size() int64        { return i.Object.Size }
func (i objectInfo) Mode() fs.FileMode  { return 0o444 }
func (i objectInfo) ModTime() time.Time { return i.Modified }
func (i objectInfo) IsDir() bool        { return false }
func (i objectInfo) Sys() any           { return nil }

// versionInfo describes one version of an object. It is a shardfile.Versioned.
type versionInfo struct {
	objectInfo
	number uint64
}

func (i versionInfo) Version() uint64 { return i.number }

// unwritable is the half of a shardfile.File that an object refuses.
type unwritable struct{ uri string }

func (f unwritable) WriteAt([]byte, int64) (int, error) { return 0, readOnly("write", f.uri) }
func (f unwritable) Truncate(int64) error               { return readOnly("truncate", f.uri) }
func (f unwritable) Sync() error                        { return nil }

// An object that a twin has written again is described again up to changedTries times, changedPause after
// it was found to differ.
const (
	changedTries = 10
	changedPause = 50 * time.Millisecond
)

// retryChanged calls read until it no longer fails because an object was replaced. again is false the
// first time.
func retryChanged(ctx context.Context, read func(again bool) error) error {
	for try := 1; ; try++ {
		err := read(try > 1)
		if !errors.As(err, new(*remote.ChangedError)) || try == changedTries {
			return err
		}
		select {
		case <-time.After(changedPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sharedFile is an object of a folder that several machines may write to. Twins write the same bytes under
// the same name, so reading continues if the object is replaced by one of the same size; the reader checks the
// bytes.
type sharedFile struct {
	unwritable
	*remote.File
	ctx    context.Context // the run's
	folder *folder
}

func (f *sharedFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = retryChanged(f.ctx, func(again bool) error {
		if again { // what has the name now, unless that is of another size: then reading fails again
			if o, err := f.folder.describe(f.ctx, path.Base(f.uri)); err == nil && o.Size == f.Size() {
				f.Close() // it was only read
				f.File = f.folder.store.Open(f.ctx, o)
			}
		}
		n, err = f.File.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *sharedFile) Stat() (fs.FileInfo, error) { return objectInfo{f.Object()}, nil }

// cachedFile is an object that is read through a Reader's cache. It holds nothing.
type cachedFile struct {
	unwritable
	fs *Reader
	v  *version
}

// ReadAt reads from the cache, and fetches what it lacks.
func (f *cachedFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s: negative offset", f.v.URI)
	}
	for n < len(p) {
		if off+int64(n) >= f.v.Size {
			return n, io.EOF
		}
		m, err := f.fs.cache.readAt(f.v, p[n:], off+int64(n))
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (f *cachedFile) Stat() (fs.FileInfo, error) { return f.v.info(), nil }
func (f *cachedFile) Close() error               { return nil }
