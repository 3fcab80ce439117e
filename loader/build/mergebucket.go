package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/dsload/dsload/loader/remote"
	"github.com/dsload/dsload/shard"
	"golang.org/x/sync/errgroup"
)

// A merge in a bucket reads the parts there. It writes into a scratch folder first and uploads from
// it, the manifest last. Shards stay where they are. The manifests of the parts are read several
// times, so they are downloaded at the beginning.

// mergeBucket is the file system of a merge in a bucket. It may be used by several goroutines.
type mergeBucket struct {
	shard.FS // the operating system's
	store    *remote.Store
	uri, dir string

	mu   sync.Mutex
	left []string // objects from which unfinished parts resume, which a merged dataset does not need
}

// partFetches is how many manifests of parts are downloaded at once.
const partFetches = 16

var (
	partManifestName = regexp.MustCompile(`^part-p\d{5}\.json$`)
	partStateName    = regexp.MustCompile(`^part-p\d{5}\.state/[^/]+$`)
)

// mergeInto is Merge for a folder of a bucket.
func mergeInto(ctx context.Context, o MergeOptions) (_ *MergeSummary, err error) {
	uri := strings.TrimRight(o.Dir, "/")
	if err := remote.CheckFolder(uri); err != nil {
		return nil, fmt.Errorf("merge %s: %w", uri, err)
	}
	store := remote.NewStore(remote.Options{Done: ctx.Done()})
	defer store.Close()
	dir, err := os.MkdirTemp("", "dsload-merge-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &mergeBucket{FS: shard.OS(), store: store, uri: uri, dir: dir}
	if err := b.fetchManifests(ctx); err != nil {
		return nil, fmt.Errorf("merge %s: %w", uri, err)
	}
	inner := o
	inner.FS, inner.Dir = b, dir
	s, err := Merge(ctx, inner)
	if err == nil {
		err = b.removeLeft(ctx)
	}
	if err != nil {
		return nil, &bucketError{err, dir, uri}
	}
	s.Out = uri
	return s, nil
}

func (b *mergeBucket) object(name string) string { return b.uri + "/" + name }

// fetchManifests downloads the manifests of the parts.
func (b *mergeBucket) fetchManifests(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partFetches)
	err := b.store.List(ctx, b.uri, func(name string, o remote.Object) error {
		if partManifestName.MatchString(name) {
			group.Go(func() error { return b.download(o, name) })
		}
		return ctx.Err()
	})
	if failed := group.Wait(); failed != nil {
		return failed
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is there
	}
	return err
}

func (b *mergeBucket) download(o remote.Object, name string) error {
	fetch := &bucketFS{store: b.store, uri: b.uri, dir: b.dir, objects: map[string]remote.Object{name: o}}
	return fetch.download(name, name)
}

func (b *mergeBucket) removeLeft(ctx context.Context) error {
	for _, name := range b.left {
		if err := b.store.Remove(ctx, b.object(name)); err != nil {
			return fmt.Errorf("remove %s: %w", b.object(name), err)
		}
	}
	return nil
}

// WalkNames calls visit for every name of the folder in the bucket.
func (b *mergeBucket) WalkNames(_ string, visit func(name string) error) error {
	b.mu.Lock()
	b.left = nil
	b.mu.Unlock()
	err := b.store.List(context.Background(), b.uri, func(name string, _ remote.Object) error {
		if strings.Contains(name, "/") {
			if partStateName.MatchString(name) {
				b.mu.Lock()
				b.left = append(b.left, name)
				b.mu.Unlock()
			}
			return nil
		}
		return visit(name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadDir lists the folder in the bucket.
func (b *mergeBucket) ReadDir(dir string) (names []string, err error) {
	err = b.WalkNames(dir, func(name string) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// Rename renames a file of the scratch folder, and uploads what becomes a file of the dataset.
func (b *mergeBucket) Rename(oldName, newName string) error {
	if err := b.FS.Rename(oldName, newName); err != nil || isTemporary(newName) {
		return err
	}
	up := &bucketFS{store: b.store, uri: b.uri, dir: b.dir, objects: map[string]remote.Object{},
		grown: map[string]int64{}, clock: time.Now}
	return up.commit(newName)
}

// Remove removes a file here and in the bucket.
func (b *mergeBucket) Remove(name string) error {
	if err := b.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if base := filepath.Base(name); !isTemporary(base) {
		if err := b.store.Remove(context.Background(), b.object(base)); err != nil {
			return fmt.Errorf("remove %s: %w", b.object(base), err)
		}
	}
	return nil
}

// Stat describes a file here or in the bucket.
func (b *mergeBucket) Stat(name string) (fs.FileInfo, error) {
	info, err := b.FS.Stat(name)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(name) != b.dir {
		return info, err
	}
	o, err := b.store.Describe(context.Background(), b.object(filepath.Base(name)))
	if err != nil {
		return nil, err
	}
	return objectInfo{o}, nil
}

// OpenFile opens a file here, or one of the bucket for reading.
func (b *mergeBucket) OpenFile(name string, flag int) (shard.File, error) {
	f, err := b.FS.OpenFile(name, flag)
	if !errors.Is(err, fs.ErrNotExist) || flag&os.O_RDWR != 0 || filepath.Dir(name) != b.dir {
		return f, err
	}
	return openShared(b.store, b.object(filepath.Base(name)))
}
