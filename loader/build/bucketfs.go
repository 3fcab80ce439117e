package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader/remote"
	"github.com/dsload/dsload/shard"
)

// scratchName returns the name of the scratch folder for a bucket's folder.
func scratchName(uri string) string {
	sum := sha256.Sum256([]byte(uri))
	return hex.EncodeToString(sum[:12])
}

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// isTemporary reports whether a file is not yet, or never will be, one of the dataset.
func isTemporary(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, shard.OriginsSuffix) || name == seenFile
}

// Rename renames a file of the scratch folder. One that becomes a file of the dataset is uploaded,
// and a checkpoint when it is due.
func (b *bucketFS) Rename(oldName, newName string) error {
	from, to := filepath.Base(oldName), filepath.Base(newName)
	if _, err := os.Lstat(oldName); errors.Is(err, fs.ErrNotExist) {
		if _, ok := b.objects[from]; ok { // a shard that was committed after the checkpoint
			return b.download(from, to)
		}
	}
	if err := b.FS.Rename(oldName, newName); err != nil {
		return err
	}
	switch {
	case to == b.checkpoint():
		b.newer = true
		if now := b.clock(); b.saved.IsZero() || now.Sub(b.saved) >= bucketInterval || now.Before(b.saved) {
			return b.save()
		}
		return nil
	case isTemporary(to):
		return nil
	case to == shard.ManifestName:
		if err := b.onlyManifest(newName); err != nil {
			return err
		}
	}
	return b.commit(newName)
}

// commit uploads a file of the dataset, and removes it here.
func (b *bucketFS) commit(path string) error {
	ctx, name := context.Background(), filepath.Base(path)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := b.put(ctx, name, path, 0, info.Size()); err != nil {
		return err
	}
	delete(b.grown, name+".tmp")
	return os.Remove(path)
}

// onlyManifest makes sure that no other build has finished there with another manifest.
func (b *bucketFS) onlyManifest(path string) error {
	there, err := b.store.ReadAll(context.Background(), b.object(shard.ManifestName), maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %s: %w", b.object(shard.ManifestName), err)
	}
	here, err := os.ReadFile(path)
	if err == nil && b.base != nil && bytes.Equal(there, b.base) {
		return nil
	}
	if err == nil && b.base != nil && !bytes.Equal(here, there) {
		return fmt.Errorf("write %s: another build has added to the dataset, or replaced it; "+
			"run the same command again",
			b.object(shard.ManifestName))
	}
	if err == nil && !bytes.Equal(here, there) {
		err = fault.Errorf("write %s: another build has finished there; choose another {out}, or {overwrite} it",
			b.object(shard.ManifestName))
	}
	return err
}

// save uploads the checkpoint of the scratch folder, after the files that it needs.
func (b *bucketFS) save() error {
	ctx := context.Background()
	held, err := b.owner(ctx)
	if err != nil {
		return err
	}
	if held.ID != "" && held.ID != b.id {
		return fmt.Errorf("build %s: %s has taken the build over, at %s; "+
			"let it finish there, or stop it and run the same command again", b.uri, held.Host,
			held.Time.Format(time.RFC3339))
	}
	names, err := b.FS.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case name == seenFile:
			err = b.upload(ctx, name, false)
		case strings.HasSuffix(name, ".arrow.tmp"), strings.HasSuffix(name, shard.OriginsSuffix):
			err = b.upload(ctx, name, true)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(b.upload(ctx, b.checkpoint(), false), b.own(ctx)); err != nil {
		return err
	}
	b.saved, b.newer = b.clock(), false
	return nil
}

// upload uploads a file of the scratch folder: whole, or what it has gained since the last upload.
func (b *bucketFS) upload(ctx context.Context, name string, grows bool) error {
	path := b.local(name)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !grows:
		return b.put(ctx, name, path, 0, info.Size())
	case info.Size() <= b.grown[name]:
		return nil
	}
	from, to := b.grown[name], info.Size()
	if err := b.put(ctx, fmt.Sprintf("%s.part-%016d-%016d", name, from, to), path, from, to); err != nil {
		return err
	}
	b.grown[name] = to
	return nil
}

// keep uploads the last checkpoint of a run that has ended without a dataset, so that any machine
// can go on.
func (b *bucketFS) keep() error {
	if _, err := os.Stat(b.local(b.checkpoint())); err != nil || !b.newer {
		return nil
	}
	return b.save()
}

// Remove removes a file here and in the bucket. The checkpoint is removed last of all.
func (b *bucketFS) Remove(name string) error {
	ctx, base := context.Background(), filepath.Base(name)
	if base == checkpointFile || base == additionFile {
		for _, object := range slices.Collect(maps.Keys(b.objects)) {
			if hidden(object) || object == seenFile {
				if err := b.removeObject(ctx, object); err != nil {
					return err
				}
			}
		}
		clear(b.grown)
	}
	err := b.FS.Remove(name)
	if _, ok := b.objects[base]; ok {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return b.removeObject(ctx, base)
	}
	return err
}

func (b *bucketFS) removeObject(ctx context.Context, name string) error {
	if err := b.store.Remove(ctx, b.object(name)); err != nil {
		return fmt.Errorf("remove %s: %w", b.object(name), err)
	}
	delete(b.objects, name)
	return nil
}

// Stat describes a file here or in the bucket.
func (b *bucketFS) Stat(name string) (fs.FileInfo, error) {
	info, err := b.FS.Stat(name)
	if o, ok := b.objects[filepath.Base(name)]; ok && errors.Is(err, fs.ErrNotExist) && filepath.Dir(name) == b.dir {
		return objectInfo{o}, nil
	}
	return info, err
}

// ReadDir lists the files here and in the bucket.
func (b *bucketFS) ReadDir(name string) ([]string, error) {
	names, err := b.FS.ReadDir(name)
	if name != b.dir || err != nil {
		return names, err
	}
	for object := range b.objects {
		if !hidden(object) {
			names = append(names, object)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// OpenFile opens a file here, or one of the bucket for reading.
func (b *bucketFS) OpenFile(name string, flag int) (shard.File, error) {
	f, err := b.FS.OpenFile(name, flag)
	base := filepath.Base(name)
	o, ok := b.objects[base]
	if !ok || !errors.Is(err, fs.ErrNotExist) || flag&os.O_RDWR != 0 {
		return f, err
	}
	if shard.IsHashes(base) {
		return b.openCopy(base)
	}
	return &objectFile{File: b.store.Open(o)}, nil
}

// openCopy downloads an object that is read at many places, and opens the copy, which is removed
// with the scratch folder.
func (b *bucketFS) openCopy(name string) (shard.File, error) {
	dir := filepath.Join(filepath.Dir(b.dir), "base")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if err := b.downloadTo(name, path); err != nil {
		return nil, err
	}
	return b.FS.OpenFile(path, os.O_RDONLY)
}

// objectInfo describes an object as a file.
type objectInfo struct{ o remote.Object }

func (i objectInfo) Name() string       { return filepath.Base(i.o.URI) }
func (i objectInfo) Size() int64        { return i.o.Size }
func (i objectInfo) Mode() fs.FileMode  { return 0o444 }
func (i objectInfo) ModTime() time.Time { return i.o.Modified }
func (i objectInfo) IsDir() bool        { return false }
func (i objectInfo) Sys() any           { return nil }

// objectFile is an object that is read as a file.
type objectFile struct{ *remote.File }

// An object that a twin has written once more is described again up to twinTries times, twinPause
// after it was found to differ.
const (
	twinTries = 10
	twinPause = 50 * time.Millisecond
)

// openShared opens an object of a folder that several machines write to. Twins write the same bytes
// under the same name, so reading goes on if the object is replaced by one of the same size; who
// reads checks the bytes.
func openShared(store *remote.Store, uri string) (shard.File, error) {
	f, err := newSharedFile(func() (*remote.File, error) {
		o, err := store.Describe(context.Background(), uri)
		if err != nil {
			return nil, err
		}
		return store.Open(o), nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// sharedFile is an object that twins may write again while it is read.
type sharedFile struct {
	objectFile
	open func() (*remote.File, error)
}

func newSharedFile(open func() (*remote.File, error)) (*sharedFile, error) {
	f, err := open()
	return &sharedFile{objectFile{f}, open}, err
}

func (f *sharedFile) ReadAt(p []byte, off int64) (n int, err error) {
	for try := 1; ; try++ {
		n, err = f.objectFile.ReadAt(p, off)
		if changed := (*remote.ChangedError)(nil); !errors.As(err, &changed) || try == twinTries {
			return n, err
		}
		time.Sleep(twinPause)
		again, openErr := f.open()
		if openErr != nil {
			continue
		}
		if again.Size() != f.Size() {
			return n, errors.Join(err, again.Close())
		}
		f.Close()
		f.File = again
	}
}

func (f *objectFile) WriteAt([]byte, int64) (int, error) { return 0, fs.ErrPermission }
func (f *objectFile) Truncate(int64) error               { return fs.ErrPermission }
func (f *objectFile) Sync() error                        { return nil }
func (f *objectFile) Stat() (fs.FileInfo, error)         { return objectInfo{f.Object()}, nil }
