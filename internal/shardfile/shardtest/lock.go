package shardtest

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
)

// Lock implements shardfile.FS.
func (f *FS) Lock(name string, holder []byte) (shardfile.Lock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if _, err := f.begin("lock", name); err != nil {
		return nil, err
	}
	if held := f.locks[name]; held != nil && held == f.names[name] {
		return nil, &shardfile.HeldError{Holder: slices.Clone(held.data)}
	}
	if !f.dirs[filepath.Dir(name)] {
		return nil, notExist("lock", name)
	}
	i := f.names[name]
	if i == nil {
		i = &inode{}
		f.names[name] = i
		f.queue = append(f.queue, nameOp{to: name, node: i})
	}
	f.change(i, change{off: 0})
	f.change(i, change{off: 0, data: slices.Clone(holder)})
	f.locks[name] = i
	return &lock{f, name, i}, nil
}

type lock struct {
	fs   *FS
	name string
	node *inode
}

func (l *lock) Held() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if _, err := l.fs.begin("lockheld", l.name); err != nil {
		return err
	}
	if l.fs.names[l.name] != l.node {
		return fmt.Errorf("%s: %w", l.name, shardfile.ErrLockLost)
	}
	return nil
}

func (l *lock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.fs.locks[l.name] == l.node {
		delete(l.fs.locks, l.name)
	}
	if _, err := l.fs.begin("unlock", l.name); err != nil || l.fs.names[l.name] != l.node {
		return err
	}
	return l.fs.remove(l.name)
}
