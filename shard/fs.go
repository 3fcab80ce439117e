package shard

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// FS is the part of a file system that this package needs. Names are paths as package path/filepath makes them; errors are
// *fs.PathError or anything that errors.Is can compare with fs.ErrNotExist.
//
// What survives a power cut: the bytes of a file up to its last Sync, and names up to the last SyncDir of their folder.
type FS interface {
	// OpenFile takes os.O_RDONLY, or os.O_RDWR with os.O_CREATE and os.O_TRUNC.
	OpenFile(name string, flag int) (File, error)
	Rename(oldName, newName string) error
	Remove(name string) error
	Stat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]string, error) // sorted names
	MkdirAll(name string) error
	SyncDir(name string) error
	// Lock takes the exclusive lock that the file stands for, without waiting, creates the file where it is missing and
	// puts holder into it. The lock dies with the process; Close removes the file and gives the lock back. While another
	// holds it, the error is a *HeldError.
	Lock(name string, holder []byte) (io.Closer, error)
}

// File is an open file; positions are explicit. WriteAt past the end grows the file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Size() (int64, error)
}

// HeldError is what FS.Lock returns while another holds the lock; Holder is what that one wrote into the file.
type HeldError struct{ Holder []byte }

func (e *HeldError) Error() string { return "lock is held by another process" }

// OS is the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o666)
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

func (osFS) Rename(oldName, newName string) error  { return os.Rename(oldName, newName) }
func (osFS) Remove(name string) error              { return os.Remove(name) }
func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }
func (osFS) MkdirAll(name string) error            { return os.MkdirAll(name, 0o777) }

func (osFS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	// Some network and FUSE file systems know no sync of a folder; there is nothing better to ask them for.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

type osFile struct{ *os.File }

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// lockHolder is the content of the lock file: who to name to the next one who wants the folder.
type lockHolder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Start time.Time `json:"start"`
}

// lockDir takes the folder's lock; a *LockedError says who has it.
func lockDir(fsys FS, dir string) (io.Closer, error) {
	host, _ := os.Hostname() // "" is as good a name as any
	me, err := json.Marshal(lockHolder{PID: os.Getpid(), Host: host, Start: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return nil, err
	}
	l, err := fsys.Lock(filepath.Join(dir, lockName), append(me, '\n'))
	var held *HeldError
	if errors.As(err, &held) {
		var h lockHolder
		if json.Unmarshal(held.Holder, &h) != nil {
			h = lockHolder{} // the holder has not written its name yet
		}
		return nil, &LockedError{Dir: dir, PID: h.PID, Host: h.Host, Start: h.Start}
	}
	return l, err
}
