//go:build unix && !solaris && !illumos && !aix

package shard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Additional open flags: opening a pipe or device does not wait, and links are not followed.
const (
	noWait   = syscall.O_NONBLOCK
	noFollow = syscall.O_NOFOLLOW
)

// idOf is zero for a file that is not the operating system's.
func idOf(info fs.FileInfo) fileID {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(st.Dev), st.Ino, info.ModTime().UnixNano()}
}

// maxHolderBytes limits what is read from a lock file that another process wrote.
const maxHolderBytes = 4096

func (osFS) Lock(name string, holder []byte) (Lock, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|noFollow|noWait, 0o666)
		if err != nil {
			return nil, openError(name, os.O_RDWR, err)
		}
		l := &osLock{f: f, name: name}
		if err := l.take(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// The last holder removes the file before it unlocks, so a lock on a file that lost its
		// name is void: another process may already hold its successor.
		err = l.Held()
		if err == nil && l.shared() {
			// The file has other names, and writing here must not change it. A new file has none.
			if err = os.Remove(name); err == nil {
				err = ErrLockLost
			}
		}
		if errors.Is(err, ErrLockLost) {
			f.Close()
			continue
		}
		if err == nil {
			err = f.Truncate(0)
		}
		if err == nil {
			_, err = f.WriteAt(holder, 0)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return l, nil
	}
}

type osLock struct {
	f    *os.File
	name string
}

// take locks the open file, which must be a regular one.
func (l *osLock) take() error {
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(l.name, info.Mode())
	}
	err = flock(l.f)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		held, _ := io.ReadAll(io.LimitReader(l.f, maxHolderBytes)) // only for a message; it may be empty
		return &HeldError{Holder: held}
	case err != nil:
		return &os.PathError{Op: "lock", Path: l.name, Err: err}
	}
	return nil
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}

// shared reports whether the file has other names.
func (l *osLock) shared() bool {
	info, err := l.f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

func (l *osLock) Held() error {
	mine, err := l.f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(l.name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(mine, now) {
		return fmt.Errorf("%s: %w", l.name, ErrLockLost)
	}
	return nil
}

func (l *osLock) Close() error {
	var err error
	if l.Held() == nil { // otherwise the name belongs to another
		err = os.Remove(l.name)
	}
	return errors.Join(err, l.f.Close())
}
