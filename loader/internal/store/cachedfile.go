package store

import (
	"fmt"
	"io"
	"io/fs"
)

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
