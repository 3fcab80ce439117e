package shardfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockHolder is the content of the lock file. It identifies the holder to others who want the
// folder.
type lockHolder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Start time.Time `json:"start"`
}

// LockFile takes the lock that a file stands for, and writes into it who has it. If another process has it, the
// error is a *LockedError for the file's folder.
func LockFile(fsys FS, path string) (Lock, error) {
	host, _ := os.Hostname() // "" if unknown
	me, err := json.Marshal(lockHolder{PID: os.Getpid(), Host: host, Start: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return nil, err
	}
	l, err := fsys.Lock(path, append(me, '\n'))
	var held *HeldError
	if errors.As(err, &held) {
		var h lockHolder
		if json.Unmarshal(held.Holder, &h) != nil {
			h = lockHolder{} // not written yet
		}
		return nil, &LockedError{Dir: filepath.Dir(path), PID: h.PID, Host: h.Host, Start: h.Start}
	}
	return l, err
}

// HeldError is the error of FS.Lock while another process holds the lock. Holder is what that
// process wrote into the file.
type HeldError struct{ Holder []byte }

func (e *HeldError) Error() string { return "lock is held by another process" }

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
