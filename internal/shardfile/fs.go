package shardfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ReadFS is what reading a dataset needs of a file system. Names are paths of package
// path/filepath. Errors are *fs.PathError, or anything that errors.Is can compare with
// fs.ErrNotExist.
type ReadFS interface {
	// Open is OpenFile for reading, for functions that accept any fs.FS.
	fs.FS
	// OpenFile accepts os.O_RDONLY here. It opens regular files only, and does not wait for pipes or devices.
	OpenFile(name string, flag int) (File, error)
	Stat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]string, error) // sorted names
}

// FS is the part of a file system that datasets are written to. OpenFile also accepts os.O_RDWR for an existing file,
// and os.O_RDWR, os.O_CREATE and os.O_EXCL for a new one. If it opens for writing, the last element of name must not
// be a symbolic link.
//
// A power cut leaves the bytes of a file up to its last Sync, and names up to the last SyncDir of
// their folder.
type FS interface {
	ReadFS
	Rename(oldName, newName string) error
	Remove(name string) error
	MkdirAll(name string) error
	SyncDir(name string) error
	// Lock takes the exclusive lock on a file without waiting. It creates the file if it is missing
	// and writes holder into it. The lock ends with the process. While another process holds it,
	// the error is a *HeldError. The name must not be a symbolic link.
	Lock(name string, holder []byte) (Lock, error)
}

// Versioned is an fs.FileInfo of a file system whose files never change once opened, such as
// objects in a bucket. Equal numbers of one FS mean equal bytes.
type Versioned interface{ Version() uint64 }

// A Claimer is an FS of folders that several machines may write to, where Lock keeps only the processes of one
// machine apart.
type Claimer interface {
	// Claim makes a folder that of a build with these settings. A Builder of a whole dataset, or of an addition,
	// calls it before it changes anything there. If another machine has claimed the folder, mayContinue returns
	// why this build may not continue that one, which has other settings; nil accepts any.
	Claim(settings json.RawMessage, mayContinue func(have json.RawMessage) error) error
}

// Join returns the path of a file in a folder, which may be an address such as s3://bucket/folder.
func Join(dir, name string) string {
	if strings.Contains(dir, "://") {
		return strings.TrimRight(dir, "/") + "/" + name
	}
	return filepath.Join(dir, name)
}

// Lock is a held lock.
type Lock interface {
	// Held returns an error, usually ErrLockLost, once the name no longer refers to this lock.
	Held() error
	// Close releases the lock, and removes the file if it still has its name.
	io.Closer
}

// File is an open file; positions are explicit. WriteAt past the end grows the file. Sync may run at the same
// time as other calls of the file and of its FS.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
}

// OS returns the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(name string, flag int) (File, error) {
	if flag&os.O_RDWR != 0 {
		flag |= noFollow
	}
	f, err := os.OpenFile(name, flag|noWait, 0o666)
	if err != nil {
		return nil, openError(name, flag, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = NotRegular(name, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openError explains why a file could not be opened if something else has its name.
func openError(name string, flag int, err error) error {
	info, statErr := os.Lstat(name)
	if statErr == nil && flag&os.O_RDWR == 0 && info.Mode()&fs.ModeSymlink != 0 {
		info, statErr = os.Stat(name)
	}
	if statErr != nil || info.Mode().IsRegular() || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return NotRegular(name, info.Mode())
}

// NotRegular returns the error for a name that is not a regular file's.
func NotRegular(name string, mode fs.FileMode) error {
	what := "something that is not a file"
	switch {
	case mode&fs.ModeSymlink != 0:
		what = "a symbolic link"
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return Wrong(name, fmt.Errorf("%w: there is %s in its place; remove it", ErrNotRegular, what))
}

// Open opens a file for reading.
func (f osFS) Open(name string) (fs.File, error) { return Opened(f.OpenFile(name, os.O_RDONLY)) }

func (osFS) Rename(oldName, newName string) error  { return os.Rename(oldName, newName) }
func (osFS) Remove(name string) error              { return os.Remove(name) }
func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }
func (osFS) MkdirAll(name string) error            { return os.MkdirAll(name, 0o777) }

func (osFS) ReadDir(name string) ([]string, error) { return namesOf(os.ReadDir(name)) }

func namesOf(entries []fs.DirEntry, err error) ([]string, error) {
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// WalkNames calls visit for every name in a folder, in no order.
func (osFS) WalkNames(dir string, visit func(name string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if err := visit(name); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// SyncDir does nothing on Windows, which has no call for it: the journal of NTFS keeps names in the
// order of their changes, so that a power cut may lose the last ones but mixes none.
func (osFS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	// Some network and FUSE file systems cannot sync a folder, and offer nothing better.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
