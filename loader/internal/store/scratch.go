package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/shard"
)

// scratch is a folder of this machine that a run works in.
type scratch struct {
	home    string     // with all that is in it
	lock    shard.Lock // nil for none
	passing bool       // nobody would find it again, so it is removed however the run ends
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

// openScratch makes or finds the scratch folder for a build into a folder of a bucket. That of a part is
// used by one process at a time; another one on this machine gets a folder of its own.
func openScratch(t *Target) (*scratch, error) {
	base := cacheFolder("out")
	if err := makeFolder(base); err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	key := t.URI
	if t.isPart() {
		key = fmt.Sprintf("%s %d", t.URI, t.Part.Number)
	}
	sum := sha256.Sum256([]byte(key))
	s := &scratch{home: filepath.Join(base, hex.EncodeToString(sum[:12]))}
	if t.isPart() {
		var held *shard.HeldError
		var err error
		s.lock, err = shard.OS().Lock(s.home+".lock", nil)
		if errors.As(err, &held) {
			t.notice("another process on this machine is at work on the part; building it a second time beside that")
			s.lock, s.passing = nil, true
			s.home, err = os.MkdirTemp(base, shard.TwinPrefix)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := makeFolder(s.dir()); err != nil {
		return nil, errors.Join(fmt.Errorf("make a scratch folder: %w", err), s.close(false))
	}
	return s, nil
}

const setCacheHome = "set XDG_CACHE_HOME to a folder that can be written to"

// cacheFolder returns the path of a folder of dsload's in the user's folder for caches, or in that for
// temporary files.
func cacheFolder(name string) string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "dsload", name)
}

func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w; %s", err, setCacheHome)
	}
	return nil
}
