package shardtest

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// A file is an open file.
type file struct {
	fs       *FS
	name     string
	node     *inode
	writable bool
	closed   bool
}

// begin is FS.begin for an open file.
func (h *file) begin(what string) (fault, error) {
	ft, err := h.fs.begin(what, h.name)
	if err == nil && h.closed {
		err = &fs.PathError{Op: what, Path: h.name, Err: fs.ErrClosed}
	}
	return ft, err
}

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if _, err := h.begin("read"); err != nil {
		return 0, err
	}
	if off < 0 || off > int64(len(h.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, h.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *file) WriteAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	ft, err := h.begin("write")
	if err == nil && !h.writable {
		err = &fs.PathError{Op: "write", Path: h.name, Err: fs.ErrPermission}
	}
	switch {
	case err != nil && !ft.short:
		return 0, err
	case err != nil:
		p = p[:len(p)/2]
	case h.fs.capacity >= 0:
		grown := max(0, off+int64(len(p))-int64(len(h.node.data)))
		if over := h.fs.used + grown - h.fs.capacity; over > 0 {
			p = p[:max(0, int64(len(p))-over)]
			err = &fs.PathError{Op: "write", Path: h.name, Err: syscall.ENOSPC}
		}
	}
	if len(p) > 0 {
		h.fs.change(h.node, change{off: off, data: slices.Clone(p)})
	}
	return len(p), err
}

func (h *file) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if _, err := h.begin("truncate"); err != nil {
		return err
	}
	if size > int64(len(h.node.data)) {
		return fmt.Errorf("truncate %s: growing is not for this file system", h.name)
	}
	h.fs.change(h.node, change{off: size})
	return nil
}

func (h *file) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if _, err := h.begin("sync"); err != nil {
		return err
	}
	for _, c := range h.node.pending {
		h.node.synced = apply(h.node.synced, c)
	}
	h.node.pending = nil
	return nil
}

func (h *file) Stat() (fs.FileInfo, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	_, err := h.begin("size")
	return info{name: filepath.Base(h.name), size: int64(len(h.node.data))}, err
}

// Close releases the handle even if it fails, as close(2) does.
func (h *file) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	_, err := h.begin("close")
	if !h.closed {
		h.closed = true
		h.fs.open--
	}
	return err
}

// info is what Stat returns.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o777
	}
	return 0o666
}
