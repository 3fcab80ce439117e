package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
	"golang.org/x/sync/errgroup"
)

// merge is the policy of a merge, which reads the parts in the bucket. Its own files are uploaded from the
// scratch folder, the manifest last. Shards stay where they are. The manifests of the parts are read several
// times, so they are downloaded at the beginning.
type merge struct {
	*FS
	left []string // objects from which unfinished parts resume, which a merged dataset does not need
}

// Merge calls run with a folder of this machine that stands for a folder of parts in a bucket, and the file
// system that it is to be used with. Errors of run name the bucket.
func Merge(ctx context.Context, uri string, run func(fsys shardfile.FS, dir string) error) (err error) {
	if err := remote.CheckFolder(uri); err != nil {
		return fmt.Errorf("merge %s: %w", uri, err)
	}
	uri = strings.TrimRight(uri, "/")
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
	m := &merge{FS: &FS{FS: shardfile.OS(), ctx: ctx, dir: dir, home: &folder{store: store, uri: uri}}}
	m.policy = m
	if err := m.fetchManifests(); err != nil {
		return fmt.Errorf("merge %s: %w", uri, err)
	}
	if err = run(m.FS, dir); err == nil {
		for i := 0; i < len(m.left) && err == nil; i++ {
			err = m.home.remove(m.ctx, m.left[i])
		}
	}
	if err != nil {
		return &targetError{err, dir, uri}
	}
	return nil
}

// manifestDownloads is how many manifests of parts are downloaded at once.
const manifestDownloads = 16

// list calls visit with all objects below the folder. A folder that does not exist has none.
func (m *merge) list(visit func(name string, o remote.Object) error) error {
	err := m.home.store.List(m.ctx, m.home.uri, visit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (m *merge) fetchManifests() error {
	group, ctx := errgroup.WithContext(m.ctx)
	group.SetLimit(manifestDownloads)
	err := m.list(func(name string, o remote.Object) error {
		if shardfile.IsPartManifest(name) {
			group.Go(func() error { return m.home.download(ctx, o, filepath.Join(m.dir, name)) })
		}
		return ctx.Err()
	})
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}

func (m *merge) names(visit func(name string) error) error {
	m.left = nil
	return m.list(func(name string, _ remote.Object) error {
		switch {
		case !strings.Contains(name, "/"):
			return visit(name)
		case inState(name):
			m.left = append(m.left, name)
		}
		return nil
	})
}

func (m *merge) commit(path, name string) error { return m.upload(path, name) }
func (m *merge) removes(name string) bool       { return shardfile.RoleOf(name) == shardfile.RoleWhole }
