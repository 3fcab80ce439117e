package shardfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// Additional open flags. A link is opened itself, and refused since it is not a regular file. No
// name here makes an open wait.
const (
	noWait   = 0
	noFollow = windows.FILE_FLAG_OPEN_REPARSE_POINT
)

// idOf returns zero: a file that is opened again is checked again.
func idOf(fs.FileInfo) FileID { return FileID{} }

// lockedByte is the position of the byte that is locked, far past the holder's name: locks are
// mandatory here, and others read the name.
const lockedByte = 1 << 30

// Lock locks a byte of the file, until the process ends. A file that anybody has open cannot lose its
// name, so the locked file is the named one.
func (osFS) Lock(name string, holder []byte) (Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|noFollow, 0o666)
	if err != nil {
		return nil, openError(name, os.O_RDWR, err)
	}
	l := &osLock{f: f, name: name}
	err = l.take()
	if err == nil {
		err = l.write(holder)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// tryLock locks the byte of an open file, unless another process has locked it.
func tryLock(f *os.File) (taken bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Close unlocks the file and then removes it, which fails, as it should, if another process has it
// open by then.
func (l *osLock) Close() error {
	held := l.Held() == nil // otherwise the name belongs to another
	err := l.f.Close()
	if !held {
		return err
	}
	removed := os.Remove(l.name)
	if errors.Is(removed, windows.ERROR_SHARING_VIOLATION) || errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	return errors.Join(err, removed)
}
