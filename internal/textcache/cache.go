package textcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/shardfile"
)

const (
	// DefaultLimit is the default size limit of a cache in bytes.
	DefaultLimit = 20 << 30

	lockSuffix = ".lock"
	goneSuffix = ".gone" // a folder that is being removed has it

	// recent is how long an entry stays after its last use, even beyond the limit, so that a caller
	// who got its folder has time to open it.
	recent = time.Minute
	// pollEvery is how often a held lock is tried again.
	pollEvery = 50 * time.Millisecond
)

// Cache is a folder of entries. Its methods are safe for concurrent use, by any number of processes.
type Cache struct {
	Dir   string
	Limit int64 // bytes of all entries together
	// Damage, if set, returns why a folder that is ready cannot be served, or one that is not ready
	// cannot be built on, and nil if it can. Acquire removes damaged folders.
	Damage func(dir string, ready bool) error
}

// Key names an entry.
type Key struct {
	Name     string // what is served, for people
	Settings string // a digest of the build's settings and source names
	Content  string // a digest of the sources' current sizes and times
}

// keyDigits is how much of a digest is part of a name.
const keyDigits = 16

func (k Key) prefix() string {
	return plainName(k.Name) + "-" + k.Settings[:min(keyDigits, len(k.Settings))] + "-"
}

func (k Key) folder() string { return k.prefix() + k.Content[:min(keyDigits, len(k.Content))] }

// plainName returns a name as part of a file name.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(name))
	plain = strings.Trim(plain, "._")
	return plain[:min(len(plain), 40)]
}

// Dir returns the folder of this user's cache: DSLOAD_CACHE, else dsload in the system's cache
// folder, which XDG_CACHE_HOME sets.
func Dir() (string, error) {
	if dir := os.Getenv("DSLOAD_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the cache: %w; set DSLOAD_CACHE to one", err)
	}
	return filepath.Join(base, "dsload", "text"), nil
}

// Entry is an entry of a cache. It is held until it is closed.
type Entry struct {
	Dir string // the dataset's
	// Ready reports whether the dataset exists. If not, this process must build it.
	Ready bool
	// Changed reports whether there is a dataset with the same settings and other sources.
	Changed bool
	// Damage is why an earlier dataset of this key was removed, or nil if none was.
	Damage error

	lock *os.File
}

// Acquire returns the entry of a key. It returns at once if the dataset exists, or if no process is
// building it; then the caller must. While another process builds it, Acquire waits, and calls
// waiting once with that process's id, 0 if unknown.
func (c *Cache) Acquire(ctx context.Context, k Key, waiting func(pid int)) (*Entry, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	e := &Entry{Dir: filepath.Join(c.Dir, k.folder())}
	for waited := false; ; {
		taken, err := e.take()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", e.Dir+lockSuffix, err)
		}
		if taken {
			again, err := c.discardDamage(e)
			if err != nil {
				return nil, errors.Join(err, e.Close())
			}
			if again {
				continue
			}
			found, err := fs.Glob(os.DirFS(c.Dir), k.prefix()+"*/"+shardfile.ManifestName) // of these settings
			e.Changed = !e.Ready && e.Damage == nil && err == nil && len(found) > 0
			return e, nil
		}
		if !waited {
			waited = true
			pid := 0 // if it is unknown
			if data, err := os.ReadFile(e.Dir + lockSuffix); err == nil && len(data) < 32 {
				_, _ = fmt.Sscan(string(data), &pid)
			}
			waiting(pid)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

// isReady reports whether a folder is a dataset.
func isReady(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, shardfile.ManifestName))
	return err == nil
}

// take tries to lock the entry: shared if it is ready, else exclusively.
func (e *Entry) take() (bool, error) {
	ready := isReady(e.Dir)
	lock, err := tryLock(e.Dir+lockSuffix, !ready)
	if lock == nil || err != nil {
		return false, err
	}
	if isReady(e.Dir) != ready { // it was built or evicted meanwhile
		return false, lock.Close()
	}
	if e.lock, e.Ready = lock, ready; !ready {
		if err = lock.Truncate(0); err == nil {
			_, err = lock.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
		}
	}
	return true, errors.Join(err, touch(e.Dir+lockSuffix))
}

func touch(path string) error {
	now := time.Now()
	return os.Chtimes(path, now, now)
}

// Close releases the entry.
func (e *Entry) Close() error {
	if e == nil || e.lock == nil {
		return nil
	}
	lock := e.lock
	e.lock = nil
	return lock.Close()
}

// Hold keeps a folder from being evicted until the result is closed. The result is nil if the
// folder is not an entry of a cache.
func Hold(dir string) (*Entry, error) {
	lock := filepath.Clean(dir) + lockSuffix
	if _, err := os.Lstat(lock); err != nil || !isReady(dir) {
		return nil, nil
	}
	f, err := tryLock(lock, false)
	if f == nil || err != nil {
		return nil, err
	}
	return &Entry{Dir: dir, Ready: true, lock: f}, touch(lock)
}

// HoldAll is Hold for several folders. release closes all of them.
func HoldAll(dirs []string) (release func() error, err error) {
	var held []*Entry
	release = func() (err error) {
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
		return err
	}
	for _, dir := range dirs {
		entry, err := Hold(dir)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		held = append(held, entry)
	}
	return release, nil
}

// Evicted is an entry that was removed.
type Evicted struct {
	Dir   string
	Bytes int64
	Used  time.Time
}

// Evict removes entries, least recently used first, until the cache is within its limit. It keeps
// entries in use, those used within the last minute, and the one whose folder is keep.
func (c *Cache) Evict(keep string) (gone []Evicted, err error) {
	entries, total, err := c.entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if total <= c.Limit {
			break
		}
		if e.Dir == keep || time.Since(e.Used) < recent {
			continue
		}
		removed, err := remove(e.Dir)
		if err != nil {
			return gone, fmt.Errorf("evict %s: %w", e.Dir, err)
		}
		if removed {
			total -= e.Bytes
			gone = append(gone, e)
		}
	}
	return gone, nil
}

// entries lists the entries, least recently used first.
func (c *Cache) entries() (out []Evicted, total int64, err error) {
	found, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range found {
		dir := filepath.Join(c.Dir, f.Name())
		if !f.IsDir() {
			continue
		}
		if strings.HasSuffix(dir, goneSuffix) { // left by a process that ended during removal
			if err := os.RemoveAll(dir); err != nil {
				return nil, 0, err
			}
			continue
		}
		info, err := os.Stat(dir + lockSuffix)
		if err != nil {
			continue // not an entry
		}
		e := Evicted{Dir: dir, Bytes: sizeOf(dir), Used: info.ModTime()}
		total += e.Bytes
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Evicted) int { return a.Used.Compare(b.Used) })
	return out, total, nil
}

// sizeOf returns the total size of the files in a folder. Files that vanish meanwhile count 0.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// remove removes an entry unless a process holds it, and reports whether it did.
func remove(dir string) (bool, error) {
	lock, err := tryLock(dir+lockSuffix, true)
	if lock == nil || err != nil {
		return false, err
	}
	defer lock.Close()
	if err := os.Rename(dir, dir+goneSuffix); err != nil {
		return false, err
	}
	return true, errors.Join(os.RemoveAll(dir+goneSuffix), os.Remove(dir+lockSuffix))
}
