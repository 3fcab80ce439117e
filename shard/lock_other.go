//go:build !unix || solaris || illumos || aix

package shard

import (
	"errors"
	"io"
	"os"
)

// Lock without flock: the file's existence is the lock. It does not die with the process; the message names the file's
// holder, and the file has to be removed by hand after a crash.
func (osFS) Lock(name string, holder []byte) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		held, _ := os.ReadFile(name)
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

type osLock struct {
	f    *os.File
	name string
}

func (l *osLock) Close() error { return errors.Join(l.f.Close(), os.Remove(l.name)) }
