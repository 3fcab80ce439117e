//go:build (!unix && !windows) || solaris || illumos || aix

package shardfile

import (
	"errors"
	"io/fs"
	"os"
)

// These systems have no flag to open a file without waiting or to refuse links.
const noWait, noFollow = 0, 0

// idOf returns zero: a file that is opened again is checked again.
func idOf(fs.FileInfo) FileID { return FileID{} }

// Lock works without flock: the existence of the file is the lock. It does not end with the
// process, so the file must be removed by hand after a crash. The error names the holder.
func (osFS) Lock(name string, holder []byte) (Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		held, _ := os.ReadFile(name) // only for a message; it may be empty
		return nil, &HeldError{Holder: held}
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(holder); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(name))
	}
	return &osLock{f: f, name: name}, nil
}

func (l *osLock) Close() error {
	held := l.Held() == nil
	err := l.f.Close()
	if held {
		err = errors.Join(err, os.Remove(l.name))
	}
	return err
}
