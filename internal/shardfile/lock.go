package shardfile

import (
	"errors"
	"fmt"
	"os"
)

// osLock is a lock that a file of the operating system stands for.
type osLock struct {
	f    *os.File
	name string
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
