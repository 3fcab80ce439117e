package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/private"
	"github.com/dsload/dsload/internal/shardfile"
)

// scratch is a folder of this machine that a run works in.
type scratch struct {
	home    string         // with all that is in it
	lock    shardfile.Lock // nil for none
	passing bool           // nobody would find it again, so it is removed however the run ends
}

func (s *scratch) dir() string { return filepath.Join(s.home, "data") }

// close gives the folder back. It is removed if the run is done.
func (s *scratch) close(done bool) error {
	var errs []error
	if done || s.passing {
		errs = append(errs, os.RemoveAll(s.home))
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// openScratch makes or finds the scratch folder for a build into a folder of a bucket, which one process uses at a
// time. Another one that builds the same part gets a folder of its own.
func openScratch(t *Target) (*scratch, error) {
	base, err := ownFolder("out")
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	key := t.URI
	if t.isPart() {
		key = fmt.Sprintf("%s %d", t.URI, t.Part.Number)
	}
	sum := sha256.Sum256([]byte(key))
	s := &scratch{home: filepath.Join(base, hex.EncodeToString(sum[:12]))}
	s.lock, err = shardfile.LockFile(shardfile.OS(), s.home+".lock")
	switch held, ok := errors.AsType[*shardfile.LockedError](err); {
	case ok && t.isPart():
		t.notice("another process on this machine is building this partition; building a second copy")
		s.lock, s.passing = nil, true
		s.home, err = os.MkdirTemp(base, "twin-")
	case ok:
		held.Dir = t.URI
		err = fault.Advise(held, "wait for it, or use another {out}")
	}
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{s.home, s.dir()} {
		if err := makeOwn(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("make a scratch folder: %w", err), s.close(false))
		}
	}
	return s, nil
}

const (
	setCacheHome = "set XDG_CACHE_HOME to a folder that can be written to"
	setOwnCache  = "set XDG_CACHE_HOME to a folder of your own"
)

// cacheBase returns the user's folder for caches, or that for temporary files.
func cacheBase() string {
	base, err := os.UserCacheDir()
	if err != nil {
		return os.TempDir()
	}
	return base
}

// ownFolder makes a folder of dsload's in the user's folder for caches, or in that for temporary files, where no
// other user can plant or exchange anything.
func ownFolder(name string) (string, error) {
	base := cacheBase()
	if err := makeFolder(base); err != nil {
		return "", err
	}
	if err := private.Parent(base); err != nil {
		return "", fmt.Errorf("%w; %s", err, setOwnCache)
	}
	dir := base
	for _, name := range []string{"dsload", name} {
		dir = filepath.Join(dir, name)
		if err := makeOwn(dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// makeOwn makes a folder of this user alone, unless it is there and is one.
func makeOwn(dir string) error {
	if err := makeFolder(dir); err != nil {
		return err
	}
	if err := private.Folder(dir); err != nil {
		return fmt.Errorf("%w; remove it, or %s", err, setOwnCache)
	}
	return nil
}

func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w; %s", err, setCacheHome)
	}
	return nil
}
