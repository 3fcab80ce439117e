package shardtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/shardfile"
)

// ErrCut is the error of every operation from the cut on.
var ErrCut = errors.New("file system was cut")

// FS is a shardfile.FS in memory.
type FS struct {
	mu    sync.Mutex
	dirs  map[string]bool
	names map[string]*inode // as the process sees them
	disk  map[string]*inode // as they are on disk
	queue []nameOp          // name operations that are not on disk yet
	locks map[string]*inode
	open  int
	used  int64

	ops      int
	log      func(op int, what string)
	cutAt    int // 0: never
	failAt   map[int]fault
	capacity int64 // -1: without limit
}

type fault struct {
	err   error
	short bool
}

// inode is a file's content; pending are the changes since the last sync, on top of synced.
type inode struct {
	data    []byte
	synced  []byte
	pending []change
}

// change is a write of data at off, or a truncation to off if data is nil.
type change struct {
	off  int64
	data []byte
}

// nameOp gives node the name to (a nil node removes the name), and removes the name from unless
// that is empty.
type nameOp struct {
	from, to string
	node     *inode
}

// New returns an empty file system with a root folder.
func New() *FS {
	return &FS{dirs: map[string]bool{"/": true, ".": true}, names: map[string]*inode{}, disk: map[string]*inode{},
		locks:  map[string]*inode{},
		failAt: map[int]fault{}, capacity: -1}
}

// Ops returns the number of operations so far. The first one is number 1.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// CutAt makes operation k and all later ones return ErrCut. If operation k is a write, a part of it
// may still happen.
func (f *FS) CutAt(k int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutAt = k
}

// FailAt makes only operation k return err, without effect; with short, the first half of a write
// happens.
func (f *FS) FailAt(k int, err error, short bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt[k] = fault{err, short}
}

// Limit limits the bytes of all files to n: a write beyond it writes what fits and fails with
// ENOSPC. -1 removes the limit.
func (f *FS) Limit(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = n
}

// Log calls fn for every operation.
func (f *FS) Log(fn func(op int, what string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = fn
}

// OpenFiles returns the number of files and locks that were not closed.
func (f *FS) OpenFiles() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open + len(f.locks)
}

// Files returns the content of all files.
func (f *FS) Files() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]byte{}
	for n, i := range f.names {
		out[n] = append([]byte{}, i.data...)
	}
	return out
}

// Put creates a file with this content durably, without counting as an operation. nil removes the
// file.
func (f *FS) Put(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	delete(f.names, name)
	delete(f.disk, name)
	if data != nil {
		i := &inode{data: slices.Clone(data), synced: slices.Clone(data)}
		f.names[name], f.disk[name] = i, i
		for d := filepath.Dir(name); !f.dirs[d]; d = filepath.Dir(d) {
			f.dirs[d] = true
		}
	}
}

// Flip changes one byte of a file by xor, in place; calling it again undoes it.
func (f *FS) Flip(name string, offset int64, xor byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[filepath.Clean(name)].data[offset] ^= xor
}

// begin counts an operation. f.mu is held. The fault is for writes.
func (f *FS) begin(what, name string) (fault, error) {
	f.ops++
	if f.log != nil {
		f.log(f.ops, what+" "+name)
	}
	if f.cutAt > 0 && f.ops >= f.cutAt {
		return fault{short: f.ops == f.cutAt}, &fs.PathError{Op: what, Path: name, Err: ErrCut}
	}
	if ft, ok := f.failAt[f.ops]; ok {
		return ft, &fs.PathError{Op: what, Path: name, Err: ft.err}
	}
	return fault{}, nil
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// OpenFile implements shardfile.FS.
func (f *FS) OpenFile(name string, flag int) (shardfile.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if _, err := f.begin("open", name); err != nil {
		return nil, err
	}
	i, found := f.names[name]
	switch {
	case !found && flag&os.O_CREATE == 0, !f.dirs[filepath.Dir(name)]:
		return nil, notExist("open", name)
	case !found:
		i = &inode{}
		f.names[name] = i
		f.queue = append(f.queue, nameOp{to: name, node: i})
	case flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	}
	f.open++
	return &file{fs: f, name: name, node: i, writable: flag&os.O_RDWR != 0}, nil
}

// change applies c to the content that the process sees.
func (f *FS) change(i *inode, c change) {
	before := len(i.data)
	i.data = apply(i.data, c)
	i.pending = append(i.pending, c)
	f.used += int64(len(i.data) - before)
}

func apply(data []byte, c change) []byte {
	end := c.off + int64(len(c.data))
	if n := end - int64(len(data)); n > 0 {
		data = append(data, make([]byte, n)...)
	}
	if c.data == nil {
		return data[:c.off]
	}
	copy(data[c.off:], c.data)
	return data
}

// Open implements shardfile.FS.
func (f *FS) Open(name string) (fs.File, error) {
	return shardfile.Opened(f.OpenFile(name, os.O_RDONLY))
}

// Rename implements shardfile.FS.
func (f *FS) Rename(oldName, newName string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldName, newName = filepath.Clean(oldName), filepath.Clean(newName)
	if _, err := f.begin("rename", oldName); err != nil {
		return err
	}
	i, ok := f.names[oldName]
	if !ok {
		return notExist("rename", oldName)
	}
	delete(f.names, oldName)
	if over := f.names[newName]; over != nil {
		f.used -= int64(len(over.data))
	}
	f.names[newName] = i
	f.queue = append(f.queue, nameOp{from: oldName, to: newName, node: i})
	return nil
}

// Remove implements shardfile.FS.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if _, err := f.begin("remove", name); err != nil {
		return err
	}
	return f.remove(name)
}

func (f *FS) remove(name string) error {
	i, ok := f.names[name]
	if !ok {
		return notExist("remove", name)
	}
	delete(f.names, name)
	f.used -= int64(len(i.data))
	f.queue = append(f.queue, nameOp{from: name, node: i})
	return nil
}

// Stat implements shardfile.FS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if _, err := f.begin("stat", name); err != nil {
		return nil, err
	}
	if f.dirs[name] {
		return info{name: filepath.Base(name), dir: true}, nil
	}
	i, ok := f.names[name]
	if !ok {
		return nil, notExist("stat", name)
	}
	return info{name: filepath.Base(name), size: int64(len(i.data))}, nil
}

// ReadDir implements shardfile.FS.
func (f *FS) ReadDir(name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if _, err := f.begin("readdir", name); err != nil {
		return nil, err
	}
	if !f.dirs[name] {
		return nil, notExist("readdir", name)
	}
	var out []string
	for n := range f.names {
		if filepath.Dir(n) == name {
			out = append(out, filepath.Base(n))
		}
	}
	for d := range f.dirs {
		if d != name && filepath.Dir(d) == name {
			out = append(out, filepath.Base(d))
		}
	}
	slices.Sort(out)
	return out, nil
}

// MkdirAll implements shardfile.FS. Folders are durable at once.
func (f *FS) MkdirAll(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if _, err := f.begin("mkdir", name); err != nil {
		return err
	}
	for d := name; !f.dirs[d]; d = filepath.Dir(d) {
		f.dirs[d] = true
	}
	return nil
}

// SyncDir implements shardfile.FS.
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if _, err := f.begin("syncdir", name); err != nil {
		return err
	}
	if !f.dirs[name] {
		return notExist("syncdir", name)
	}
	var later []nameOp
	for _, op := range f.queue {
		if filepath.Dir(op.from+op.to) == name || filepath.Dir(op.to) == name {
			settle(f.disk, op)
		} else {
			later = append(later, op)
		}
	}
	f.queue = later
	return nil
}

func settle(disk map[string]*inode, op nameOp) {
	if op.from != "" && disk[op.from] == op.node {
		delete(disk, op.from)
	}
	if op.to != "" {
		disk[op.to] = op.node
	}
}
