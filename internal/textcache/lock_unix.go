//go:build unix && !solaris && !illumos && !aix

package textcache

import (
	"errors"
	"os"
	"syscall"
)

// tryLock opens a lock file and locks it. It returns nil if another process holds the lock.
func tryLock(path string, exclusive bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Eviction removes an entry's lock file before it unlocks.
	named, err := os.Stat(path)
	opened, err2 := f.Stat()
	if err != nil || err2 != nil || !os.SameFile(named, opened) {
		return nil, f.Close()
	}
	return f, nil
}
