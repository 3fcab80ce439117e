package bucket

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"
)

// file is an open object. It holds nothing.
type file struct {
	fs *FS
	v  *version
}

// ReadAt reads from the cache, and fetches what it lacks.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
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

func (f *file) WriteAt([]byte, int64) (int, error) { return 0, readOnly("write", f.v.URI) }
func (f *file) Truncate(int64) error               { return readOnly("truncate", f.v.URI) }
func (f *file) Sync() error                        { return nil }
func (f *file) Stat() (fs.FileInfo, error)         { return info{f.v}, nil }
func (f *file) Close() error                       { return nil }

// info describes a version of an object. It is a shard.Versioned.
type info struct{ v *version }

func (i info) Name() string       { return path.Base(i.v.URI) }
func (i info) Size() int64        { return i.v.Size }
func (i info) Mode() fs.FileMode  { return 0o444 }
func (i info) ModTime() time.Time { return i.v.Modified }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
func (i info) Version() uint64    { return i.v.number }
