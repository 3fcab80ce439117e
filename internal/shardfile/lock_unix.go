//go:build unix && !solaris && !illumos && !aix

package shardfile

import (
	"errors"
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
func idOf(info fs.FileInfo) FileID {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return FileID{uint64(st.Dev), st.Ino, info.ModTime().UnixNano()}
}

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
			err = l.write(holder)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return l, nil
	}
}

// tryLock locks an open file, unless another process has locked it.
func tryLock(f *os.File) (taken bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EWOULDBLOCK:
			return false, nil
		}
		return err == nil, err
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

func (l *osLock) Close() error {
	var err error
	if l.Held() == nil { // otherwise the name belongs to another
		err = os.Remove(l.name)
	}
	return errors.Join(err, l.f.Close())
}
