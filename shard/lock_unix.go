//go:build unix && !solaris && !illumos && !aix

package shard

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// maxHolderBytes bounds what is read from a lock file that another wrote.
const maxHolderBytes = 4096

func (osFS) Lock(name string, holder []byte) (io.Closer, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			if errors.Is(err, syscall.EWOULDBLOCK) {
				held, _ := io.ReadAll(io.LimitReader(f, maxHolderBytes))
				err = &HeldError{Holder: held}
			} else {
				err = &os.PathError{Op: "lock", Path: name, Err: err}
			}
			return nil, errors.Join(err, f.Close())
		}
		// The last holder removes the file before it lets go, so a lock on a file that no longer has the name is worth
		// nothing: another may already hold its successor.
		mine, err1 := f.Stat()
		now, err2 := os.Stat(name)
		if err1 != nil || err2 != nil || !os.SameFile(mine, now) {
			f.Close()
			if err2 != nil && !errors.Is(err2, os.ErrNotExist) {
				return nil, err2
			}
			continue
		}
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt(holder, 0)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &osLock{f: f, name: name}, nil
	}
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}

type osLock struct {
	f    *os.File
	name string
}

func (l *osLock) Close() error {
	err := os.Remove(l.name)
	return errors.Join(err, l.f.Close())
}
