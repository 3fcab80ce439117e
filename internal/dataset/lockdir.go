package dataset

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dsload/dsload/internal/shardfile"
)

// lockMark begins a lock file.
const lockMark = `{"pid":`

// ourLock reports whether a lock file may be of a build, by its first bytes. After a power cut those may be
// zeros, or not there.
func ourLock(head []byte) bool {
	for i, c := range head {
		if c != 0 && c != lockMark[i] {
			return false
		}
	}
	return true
}

// lockDir takes the folder's lock. If another process has it, the error is a *LockedError; if another program
// has a file of that name, ErrForeign.
func lockDir(fsys shardfile.FS, dir, name string) (shardfile.Lock, error) {
	path := filepath.Join(dir, name)
	if head := shardfile.HeadOf(fsys, path, int64(len(lockMark))); !ourLock(head) {
		return nil, fmt.Errorf("%s: %w, such as %s", dir, ErrForeign, name)
	}
	l, err := shardfile.LockFile(fsys, path)
	var held *shardfile.LockedError
	if errors.As(err, &held) {
		held.Dir = dir // the name that was given
	}
	return l, err
}
