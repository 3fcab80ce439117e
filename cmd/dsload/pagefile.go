package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/internal/remote"
)

// pageMark is at the beginning of each page that --html writes.
const pageMark = "dsload</title>"

// checkPage returns an error unless a page may be written as name: it replaces an earlier page, and never a
// file of another kind, such as the text that was meant to be measured.
func checkPage(name string) (err error) {
	info, err := os.Stat(name)
	switch {
	case name == "":
		return nil
	case err != nil:
		return checkWritable(name)
	case !info.Mode().IsRegular():
		return usagef("is not a regular file; name a file to write")
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head, err := io.ReadAll(io.LimitReader(f, 16<<10))
	if err == nil && len(head) > 0 && !bytes.Contains(head, []byte(pageMark)) {
		err = usagef("exists already and is not a page of dsload; name another file, or remove this one")
	}
	return err
}

// checkWritable returns an error unless writeAtomically can write the file, before the work whose result
// would be lost.
func checkWritable(name string) error {
	if err := checkLocal(name); err != nil {
		return err
	}
	folder := filepath.Dir(name)
	f, err := os.CreateTemp(folder, filepath.Base(name)+".*.tmp")
	switch path, ok := errors.AsType[*fs.PathError](err); {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("there is no folder %s; make it, or name another file", folder)
	case ok:
		return usagef("no file can be made in the folder %s (%v); name one elsewhere", folder, path.Err)
	case err != nil:
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkLocal returns an error for an address: a folder named "s3:" would be made here.
func checkLocal(name string) error {
	if _, isAddress := remote.AnyScheme(name); isAddress {
		return usagef("it is written on this machine; name a file or folder here, and copy it from there")
	}
	return nil
}

// madeIn returns the topmost of path and the folders above it that does not exist yet, the first that writing
// path would make.
func madeIn(path string) string {
	for {
		folder := filepath.Dir(path)
		if _, err := os.Stat(folder); folder == path || !errors.Is(err, fs.ErrNotExist) {
			return path
		}
		path = folder
	}
}

// writePage writes a page, unless there is something else.
func writePage(name string, data []byte) error {
	if err := checkPage(name); err != nil {
		return err
	}
	return writeAtomically(name, data)
}

// writeAtomically writes a file completely or not at all: a reader never sees half of one.
func writeAtomically(name string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, writeErr := f.Write(data)
	if err := errors.Join(writeErr, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
