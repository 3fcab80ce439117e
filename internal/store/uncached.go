package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/dsload/dsload/internal/remote"
)

// tailBytes is how much of a file's end is read at once: a shard's footer is there, and is read
// first.
const tailBytes = 64 << 10

// uncached is an open object that is read from the bucket each time, for a reader of each byte once.
type uncached struct {
	unwritable
	fs *Reader
	v  *version

	mu   sync.Mutex
	in   *remote.File // nil until needed
	tail []byte       // nil until needed
}

// ReadAt reads from the bucket.
func (f *uncached) ReadAt(p []byte, off int64) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begin := f.v.Size - tailBytes
	switch {
	case off < 0:
		return 0, &fs.PathError{Op: "read", Path: f.v.URI, Err: errors.New("negative offset")}
	case off >= f.v.Size:
		return 0, io.EOF
	case begin > 0 && off >= begin:
		if err := f.readTail(begin); err != nil {
			return 0, err
		}
		if n = copy(p, f.tail[off-begin:]); n < len(p) {
			err = io.EOF
		}
		return n, err
	}
	if f.in == nil {
		f.in = f.fs.store.Open(f.fs.ctx, f.v.Object)
	}
	n, err = f.in.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = f.fs.explainRead(f.v, err)
	}
	return n, err
}

func (f *uncached) readTail(begin int64) error {
	if f.tail != nil {
		return nil
	}
	tail := make([]byte, 0, tailBytes)
	err := f.fs.store.ReadRange(f.fs.ctx, f.v.Object, begin, f.v.Size, func(p []byte) error {
		tail = append(tail, p...)
		return nil
	})
	if err != nil {
		return f.fs.explainRead(f.v, err)
	}
	f.tail = tail
	return nil
}

func (f *uncached) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in == nil {
		return nil
	}
	err := f.in.Close()
	f.in = nil
	return err
}

func (f *uncached) Stat() (fs.FileInfo, error) { return f.v.info(), nil }

// lost reports, once, an error that means that the bucket no longer answers.
func (f *Reader) lost(err error) {
	if f.onLost != nil && errors.Is(err, remote.ErrUnreachable) && !errors.Is(err, context.Canceled) {
		f.onLost(err)
	}
}
