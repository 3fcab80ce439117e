package shardfile

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/zeebo/blake3"
)

// OpenSized opens a file for reading and returns its size.
func OpenSized(fsys ReadFS, path string) (File, int64, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	size, err := FileSize(f)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

// ReadFile reads a whole file of at most limit bytes.
func ReadFile(fsys ReadFS, path string, limit int64) ([]byte, error) {
	f, size, err := OpenSized(fsys, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, Wrong(path, fmt.Errorf("%w: %d bytes", ErrTooLarge, size))
	}
	data := make([]byte, size)
	return data, ReadFull(f, path, data, 0)
}

// ReadFull fills p from offset. If the file ends before, the error is ErrTruncated.
func ReadFull(f File, path string, p []byte, offset int64) error {
	n, err := f.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return Truncated(path, offset+int64(n), offset+int64(len(p)))
	}
	return fmt.Errorf("read %s at byte %d: %w", path, offset, WithoutPath(err))
}

// Rehash writes the first n bytes of an open shard to h.
func Rehash(f File, path string, n int64, h io.Writer, buf []byte) error {
	for pos := int64(0); pos < n; {
		p := buf[:min(n-pos, int64(len(buf)))]
		if err := ReadFull(f, path, p, pos); err != nil {
			return err
		}
		h.Write(p)
		pos += int64(len(p))
	}
	return nil
}

// HeadOf returns the first n bytes of a regular file, nil where there is none.
func HeadOf(fsys ReadFS, path string, n int64) []byte {
	if info, err := fsys.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.NewSectionReader(f, 0, n))
	if err != nil {
		return nil
	}
	return head
}

// OpenForReading opens a file that the manifest names.
func OpenForReading(fsys ReadFS, path string) (File, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, MissingFile(path)
	}
	return f, err
}

func MissingFile(path string) error {
	return Corrupt(path, -1, "the file is missing")
}

// CreateNew creates a file for reading and writing. It first removes whatever has the name, such as
// a temporary file that a crash left, so that nothing is written through a link that somebody put
// there.
func CreateNew(fsys FS, name string) (File, error) {
	const flag = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := fsys.OpenFile(name, flag)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := fsys.Remove(name); err != nil {
		return nil, err
	}
	return fsys.OpenFile(name, flag)
}

// RemoveAny removes a file, if there is one.
func RemoveAny(fsys FS, name string) error {
	if err := fsys.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// FileSize returns the size of an open file.
func FileSize(f File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// nameWalker is a file system that can walk a large folder without a list of its names.
type nameWalker interface {
	WalkNames(dir string, visit func(name string) error) error
}

// WalkNames calls visit for every name in a folder, which it may remove.
func WalkNames(fsys ReadFS, dir string, visit func(name string) error) error {
	if w, ok := fsys.(nameWalker); ok {
		return w.WalkNames(dir, visit)
	}
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes what a reader gives to a file under a temporary name, syncs it and renames it to path. After an error
// it removes the file.
func WriteFile(fsys FS, temp, path string, r io.Reader) (err error) {
	f, err := CreateNew(fsys, temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = fsys.Remove(temp)
		}
	}()
	if _, err = io.Copy(io.NewOffsetWriter(f, 0), r); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return fsys.Rename(temp, path)
}

// WriteAt is f.WriteAt with an error that names the file. A short write is an error.
func WriteAt(f File, path string, p []byte, at int64) error {
	n, err := f.WriteAt(p, at)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write %s at byte %d: %w", path, at, WithoutPath(err))
	}
	return nil
}

// Sync is f.Sync with an error that names the file.
func Sync(f File, path string) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, WithoutPath(err))
	}
	return nil
}

// ReadSeal reads the checksum at the end of a sealed file.
func ReadSeal(fsys ReadFS, path string) (string, error) {
	f, size, err := OpenSized(fsys, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if size < int64(SealBytes) {
		return "", Truncated(path, size, int64(SealBytes))
	}
	end := make([]byte, SealBytes)
	if err := ReadFull(f, path, end, size-int64(SealBytes)); err != nil {
		return "", err
	}
	return string(end[len(SealBefore) : len(SealBefore)+SealDigits]), nil
}

// HashFile returns the BLAKE3 of a file that must have the given size. It calls count with the size of each
// piece that it has read into buf.
func HashFile(ctx context.Context, fsys ReadFS, path string, size int64, buf []byte, count func(n int)) (string, error) {
	f, err := OpenForReading(fsys, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	have, err := FileSize(f)
	if err != nil {
		return "", err
	}
	if err := CheckSize(path, have, size); err != nil {
		return "", err
	}
	h := blake3.New()
	for pos := int64(0); pos < size; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		p := buf[:min(size-pos, int64(len(buf)))]
		if err := ReadFull(f, path, p, pos); err != nil {
			return "", err
		}
		h.Write(p)
		pos += int64(len(p))
		count(len(p))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
