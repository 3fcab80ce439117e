package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/shard"
)

// Target is a folder of a bucket that a build writes to, and what it builds there.
type Target struct {
	URI       string
	Adds      bool       // to the dataset that is there
	Part      shard.Part // if it builds one partition
	Plan      string     // the seal of its plan
	Overwrite bool       // whatever is there
	Clock     func() time.Time
	Notice    func(string) // may be nil
}

func (t *Target) isPart() bool { return t.Part.Of > 0 }

func (t *Target) notice(format string, args ...any) {
	if t.Notice != nil {
		t.Notice(fmt.Sprintf(format, args...))
	}
}

// Build calls run with a folder of this machine that stands for the target, and the file system that it is
// to be used with. run is called a second time if the checkpoint that the bucket had turns out to be
// damaged. Errors name the target.
//
// Once begun, uploads outlive ctx: a build that is interrupted still uploads its last checkpoint.
func Build(ctx context.Context, t Target, run func(fsys shard.FS, dir string) error) (err error) {
	t.URI = strings.TrimRight(t.URI, "/")
	store := remote.NewStore(remote.Options{Notice: t.Notice})
	defer store.Close()
	scratch, err := openScratch(&t)
	if err != nil {
		return fmt.Errorf("build %s: %w", t.URI, err)
	}
	defer func() {
		if left := scratch.close(err == nil); left != nil {
			t.notice("the scratch folder %s could not be removed: %v", scratch.home, left)
		}
	}()
	f := &FS{FS: shard.OS(), ctx: context.WithoutCancel(ctx), dir: scratch.dir(), clock: t.Clock, notice: t.notice,
		home: &folder{store: store, uri: t.URI}}
	resumed := false // a part, from the bucket
	if t.isPart() {
		resumed, err = openPart(ctx, f, &t)
	} else {
		err = openWhole(ctx, f, &t)
	}
	if err != nil {
		return &targetError{fmt.Errorf("build %s: %w", t.URI, err), f.dir, t.URI}
	}
	err = run(f, f.dir)
	if resumed && (errors.Is(err, shard.ErrTruncated) || errors.Is(err, shard.ErrCorrupt)) {
		// A twin that has committed removes the state of both.
		t.notice("the checkpoint in the bucket is not whole (%v); starting the partition afresh", err)
		if err = f.empty(); err == nil {
			err = run(f, f.dir)
		}
	}
	if err != nil && f.newer { // so that any machine can resume it
		err = errors.Join(err, f.save())
	}
	if err != nil {
		return &targetError{err, f.dir, t.URI}
	}
	return nil
}

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
			t.notice("another process on this machine is building this partition; building a second copy")
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
