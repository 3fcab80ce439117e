//go:build (unix && !solaris && !illumos && !aix) || windows

package shardfile

import (
	"io"
	"os"
)

// maxHolderBytes limits what is read from a lock file that another process wrote.
const maxHolderBytes = 4096

// take locks the open file, which must be a regular one.
func (l *osLock) take() error {
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return NotRegular(l.name, info.Mode())
	}
	taken, err := tryLock(l.f)
	switch {
	case err == nil && !taken:
		held, _ := io.ReadAll(io.LimitReader(l.f, maxHolderBytes)) // only for a message; it may be empty
		return &HeldError{Holder: held}
	case err != nil:
		return &os.PathError{Op: "lock", Path: l.name, Err: err}
	}
	return nil
}

// write makes the holder all that the file says.
func (l *osLock) write(holder []byte) error {
	err := l.f.Truncate(0)
	if err == nil {
		_, err = l.f.WriteAt(holder, 0)
	}
	return err
}
