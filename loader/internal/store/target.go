package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dsload/dsload/loader/remote"
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
	resumed, err := f.open(ctx, &t)
	if err != nil {
		return &targetError{fmt.Errorf("build %s: %w", t.URI, err), f.dir, t.URI}
	}
	err = run(f, f.dir)
	if resumed && t.isPart() && (errors.Is(err, shard.ErrTruncated) || errors.Is(err, shard.ErrCorrupt)) {
		// A twin that has committed removes the state of both.
		t.notice("the checkpoint in the bucket is not whole (%v); starting the partition afresh", err)
		if err = f.empty(); err == nil {
			err = run(f, f.dir)
		}
	}
	if err != nil {
		return &targetError{errors.Join(err, f.keep()), f.dir, t.URI}
	}
	return nil
}

// open sets the policy of a build and downloads what the scratch folder lacks.
func (f *FS) open(ctx context.Context, t *Target) (resumed bool, err error) {
	if t.isPart() {
		return openPart(ctx, f, t)
	}
	return openWhole(ctx, f, t)
}

// Merge calls run with a folder of this machine that stands for a folder of parts in a bucket, and the file
// system that it is to be used with. Errors of run name the bucket.
func Merge(ctx context.Context, uri string, run func(fsys shard.FS, dir string) error) (err error) {
	uri = strings.TrimRight(uri, "/")
	if err := remote.CheckFolder(uri); err != nil {
		return fmt.Errorf("merge %s: %w", uri, err)
	}
	scratch := scratch{passing: true}
	if scratch.home, err = os.MkdirTemp("", "dsload-merge-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.close(true)) }()
	dir := scratch.dir()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	store := remote.NewStore(remote.Options{})
	defer store.Close()
	m := &merge{FS: &FS{FS: shard.OS(), ctx: ctx, dir: dir, home: &folder{store: store, uri: uri}}}
	m.policy = m
	if err := m.fetchManifests(); err != nil {
		return fmt.Errorf("merge %s: %w", uri, err)
	}
	if err = run(m.FS, dir); err == nil {
		err = m.removeLeft()
	}
	if err != nil {
		return &targetError{err, dir, uri}
	}
	return nil
}
