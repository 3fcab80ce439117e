package export

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/shardfile"
)

// file is an output that gets its name once it is complete. What fails to be written is an error of its
// commit.
type file struct {
	*bufio.Writer
	f    *os.File
	path string // without the temporary suffix
}

const fileBufferBytes = 256 << 10

// create opens path under its temporary name. It replaces a file that an interrupted export left
// there. It follows no link: O_EXCL fails where the name exists, whatever it is.
func create(path string) (*file, error) {
	tmp := path + tmpSuffix
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &file{bufio.NewWriterSize(f, fileBufferBytes), f, path}, nil
}

// number writes the low bytes of a number, little-endian.
func (f *file) number(v uint64, size int) {
	f.Write(binary.LittleEndian.AppendUint64(f.AvailableBuffer(), v)[:size])
}

// commit makes the content durable and renames the file.
func (f *file) commit() error { return f.commitAs(f.path) }

func (f *file) commitAs(path string) error {
	if err := errors.Join(f.Flush(), f.f.Sync(), f.f.Close()); err != nil {
		return err
	}
	return os.Rename(f.path+tmpSuffix, path)
}

// discard removes an uncommitted file. After commit it does nothing.
func (f *file) discard() {
	f.f.Close()
	os.Remove(f.path + tmpSuffix)
}

// link gives the committed file from another name: by a hard link, or by a copy if the file system
// has no links.
func link(from, to string) error {
	tmp := to + tmpSuffix
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(from, tmp); err == nil {
		return os.Rename(tmp, to)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return writeFrom(to, in)
}

// writeFile writes a small file.
func writeFile(path string, data []byte) error {
	return writeFrom(path, bytes.NewReader(data))
}

// writeFrom writes a file with all that a reader has.
func writeFrom(path string, in io.Reader) error {
	f, err := create(path)
	if err != nil {
		return err
	}
	defer f.discard()
	if _, err := f.ReadFrom(in); err != nil {
		return err
	}
	return f.commit()
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(data, '\n'))
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error { return shardfile.OS().SyncDir(dir) }

// makeFolders creates nested folders in out. It does not follow a link with the name of one, since
// its target is not ours to change.
func makeFolders(out string, names ...string) error {
	dir := out
	for _, name := range names {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fault.BadOption("out", dir,
				"is not a folder, and links are not followed there; remove it, or export to another folder")
		}
	}
	return nil
}

// removeMatching removes the files in dir that match a pattern with slashes, and the folder in which they were if nothing
// else is there. It follows no link to a folder.
func removeMatching(dir, pattern string) error {
	folder := path.Dir(pattern)
	for below := folder; below != "."; below = path.Dir(below) {
		if info, err := os.Lstat(filepath.Join(dir, below)); err != nil || !info.IsDir() {
			return nil
		}
	}
	names, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if folder != "." {
		os.Remove(filepath.Join(dir, folder)) // fails where it holds more
	}
	return nil
}
