package shardfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// Opened returns what FS.OpenFile returned as FS.Open does: as a file that can be read from its beginning, too.
func Opened(f File, err error) (fs.File, error) {
	if err != nil {
		return nil, err
	}
	return &openedFile{File: f}, nil
}

type openedFile struct {
	File
	at int64
}

func (f *openedFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	return n, err
}

// ReadingOf returns a file system as one that datasets are read from.
func ReadingOf(fsys fs.FS) ReadFS {
	if f, ok := fsys.(ReadFS); ok {
		return f
	}
	return foreignFS{fsys}
}

// foreignFS is a file system that is not of this project. Its files must be read at any position.
type foreignFS struct{ fs.FS }

func (f foreignFS) OpenFile(name string, _ int) (File, error) {
	file, err := f.Open(filepath.ToSlash(name))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	at, ok := file.(io.ReaderAt)
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = NotRegular(name, info.Mode())
	case err == nil && !ok:
		err = fmt.Errorf("open %s: its file system reads files from their beginning only, and datasets are read at "+
			"any position: %w", name, errors.ErrUnsupported)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return foreignFile{file, at}, nil
}

func (f foreignFS) Stat(name string) (fs.FileInfo, error) {
	return fs.Stat(f.FS, filepath.ToSlash(name))
}

func (f foreignFS) ReadDir(name string) ([]string, error) {
	return namesOf(fs.ReadDir(f.FS, filepath.ToSlash(name)))
}

// foreignFile is a file that can only be read.
type foreignFile struct {
	fs.File
	io.ReaderAt
}

func (foreignFile) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (foreignFile) Truncate(int64) error               { return errors.ErrUnsupported }
func (foreignFile) Sync() error                        { return errors.ErrUnsupported }
