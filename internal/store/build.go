package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
)

// Target is a folder of a bucket that a build writes to, and what it builds there.
type Target struct {
	URI       string
	Adds      bool           // it goes to the dataset that is there
	Part      shardfile.Part // if it builds one partition
	Plan      string         // the seal of its plan
	Overwrite bool           // whatever is there
	Clock     func() time.Time
	Notice    func(string) // may be nil

	disk shardfile.FS // for tests; nil for the operating system's
}

func (t *Target) isPart() bool { return t.Part.Of > 0 }

func (t *Target) notice(format string, args ...any) {
	if t.Notice != nil {
		t.Notice(fmt.Sprintf(format, args...))
	}
}

// Build calls run with a folder of this machine that stands for the target, and the file system that it is
// to be used with. run is called again if another machine had the folder, or if the checkpoint of a part turns out
// to be damaged. Errors name the target.
//
// Once begun, uploads outlive ctx: a build that is interrupted still uploads its last checkpoint.
func Build(ctx context.Context, t Target, run func(fsys shardfile.FS, dir string) error) (err error) {
	t.URI = strings.TrimRight(t.URI, "/")
	store := remote.NewStore(remote.Options{Notice: t.Notice})
	defer store.Close()
	scratch, err := openScratch(&t)
	if err != nil {
		return fault.Errorf("build %s: %w", t.URI, err)
	}
	defer func() {
		if left := scratch.close(err == nil); left != nil {
			t.notice("the scratch folder %s could not be removed: %v", scratch.home, left)
		}
	}()
	if t.disk == nil {
		t.disk = shardfile.OS()
	}
	newFS := func(c *claim) *FS {
		home := &folder{store: store, uri: t.URI, claim: c}
		return &FS{FS: t.disk, ctx: context.WithoutCancel(ctx), dir: scratch.dir(), clock: t.Clock, notice: t.notice,
			home: home}
	}
	if t.isPart() {
		err = buildPart(ctx, newFS(nil), &t, run)
	} else {
		c := &claim{idFile: filepath.Join(scratch.home, "id")}
		for again := true; again; again = errors.Is(err, errClaimed) {
			err = buildWhole(ctx, newFS(c), &t, run)
		}
	}
	if err != nil {
		return &targetError{err, scratch.dir(), t.URI}
	}
	return nil
}
