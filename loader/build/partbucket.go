package build

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

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader/remote"
	"github.com/dsload/dsload/shard"
)

// A partition that is built into a bucket works in a scratch folder, like a whole build, but with no
// owner: a second machine may build the same partition at the same time, and both write the same
// bytes under the same names. Whole files go to the folder that all parts share. What another
// machine needs to go on goes to the part's own folder, removed when the part is done. Nothing else
// in the shared folder is listed or removed, so the cost does not depend on the number of parts.

// stateSuffix ends the name of a part's own folder.
const stateSuffix = ".state"

// partBucket is the file system of a partition that is built into a bucket.
type partBucket struct {
	*bucketFS            // of the part's own folder
	home      *bucketFS  // of the shared folder
	part      shard.Part // that is built
	plan      string     // its seal
	fetched   bool       // the scratch folder holds the bucket's checkpoint
}

// runPartInto is Run for a partition whose folder lies in a bucket.
func runPartInto(ctx context.Context, o Options) (_ *Summary, err error) {
	uri := strings.TrimRight(o.Out, "/")
	notice := func(format string, args ...any) {
		if o.Notice != nil {
			o.Notice(fault.Textf(format, args...))
		}
	}
	store := remote.NewStore(remote.Options{Notice: func(text string) { notice("%s", text) }}) // uploads outlive ctx
	defer store.Close()
	part := shard.Part{Number: o.Partition.Number, Of: o.Partition.Plan.Partitions}
	dir, release, err := partScratch(uri, part, notice)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release(err == nil)) }()
	p := newPartBucket(store, uri, dir, part, o.Partition.Plan.Seal(), o.clock, notice)
	if err := p.open(ctx, o.Overwrite); err != nil {
		return nil, &bucketError{fmt.Errorf("build %s: %w", uri, err), dir, uri}
	}
	inner := o
	inner.FS, inner.Out, inner.bucket = p, dir, true
	s, err := Run(ctx, inner)
	if p.fetched && (errors.Is(err, shard.ErrTruncated) || errors.Is(err, shard.ErrCorrupt)) {
		// A twin that has committed removes the state of both.
		notice("the checkpoint in the bucket is not whole (%v); starting the partition afresh", err)
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			return nil, err
		}
		p.fetched = false
		s, err = Run(ctx, inner)
	}
	if err != nil {
		return nil, &bucketError{errors.Join(err, p.keep()), dir, uri}
	}
	s.Out = uri
	return s, nil
}

// partScratch returns an empty or known folder for the part that no other process uses. release
// gives it back; done removes it.
func partScratch(uri string, part shard.Part, notice func(string, ...any)) (dir string,
	release func(done bool) error, err error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	base = filepath.Join(base, "dsload", "out")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", nil, fmt.Errorf("make a scratch folder: %w; set XDG_CACHE_HOME to a folder that can be written to",
			err)
	}
	home := filepath.Join(base, scratchName(fmt.Sprintf("%s %d", uri, part.Number)))
	lock, err := shard.OS().Lock(home+".lock", nil)
	var held *shard.HeldError
	if errors.As(err, &held) {
		if home, err = os.MkdirTemp(base, shard.TwinPrefix); err != nil {
			return "", nil, err
		}
		notice("another process on this machine is at work on the part; building it a second time beside that")
	} else if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(home, "data")
	release = func(done bool) error {
		var errs []error
		if done || lock == nil { // nobody would find a twin's folder again
			errs = append(errs, os.RemoveAll(home))
		}
		if lock != nil {
			errs = append(errs, lock.Close())
		}
		return errors.Join(errs...)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, errors.Join(err, release(false))
	}
	return dir, release, nil
}

func newPartBucket(store *remote.Store, uri, dir string, part shard.Part, plan string, clock func() time.Time,
	notice func(string, ...any)) *partBucket {
	in := func(uri string) *bucketFS {
		return &bucketFS{FS: shard.OS(), store: store, uri: uri, dir: dir, objects: map[string]remote.Object{},
			grown: map[string]int64{}, notice: notice, clock: clock}
	}
	return &partBucket{bucketFS: in(uri + "/" + strings.TrimSuffix(part.ManifestName(), ".json") + stateSuffix),
		home: in(uri), part: part, plan: plan}
}

func (p *partBucket) checkpointName() string {
	return strings.TrimSuffix(p.part.ManifestName(), ".json") + ".checkpoint"
}

// open downloads the bucket's checkpoint into the scratch folder if that has none.
func (p *partBucket) open(ctx context.Context, overwrite bool) error {
	if err := p.list(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(p.local(p.checkpointName())); err == nil || overwrite {
		return nil
	}
	if _, ok := p.objects[p.checkpointName()]; !ok {
		return nil
	}
	if s, err := p.exists(p.part.ManifestName()); err != nil || s {
		return err // of a part that is whole
	}
	p.notice("going on from the checkpoint in the bucket, of %s",
		p.objects[p.checkpointName()].Modified.Format(time.RFC3339))
	err := p.fetch()
	if changed := (*remote.ChangedError)(nil); errors.As(err, &changed) || errors.Is(err, fs.ErrNotExist) {
		p.notice("a twin on another machine has replaced that checkpoint meanwhile; starting the partition afresh")
		return errors.Join(os.RemoveAll(p.dir), os.Mkdir(p.dir, 0o700), ctx.Err())
	}
	p.fetched = err == nil
	return errors.Join(err, ctx.Err())
}

// fetch downloads the files of the part's own folder.
func (p *partBucket) fetch() error {
	for name := range p.objects {
		if !hidden(name) {
			if err := p.download(name, name); err != nil {
				return err
			}
		}
	}
	for name := range p.grown {
		if err := p.join(name); err != nil {
			return err
		}
	}
	return nil
}

// shared reports whether a file belongs in the folder of all parts once it is whole.
func (p *partBucket) shared(name string) bool {
	return !isTemporary(name) && name != p.checkpointName() && !strings.HasSuffix(name, ".lock")
}

// describe returns an object of the shared folder; the error is fs.ErrNotExist where there is none.
func (p *partBucket) describe(name string) (remote.Object, error) {
	return p.store.Describe(context.Background(), p.home.object(name))
}

func (p *partBucket) exists(name string) (bool, error) {
	_, err := p.describe(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Rename renames a file of the scratch folder. One that becomes a file of the dataset is uploaded,
// and a checkpoint when it is due.
func (p *partBucket) Rename(oldName, newName string) error {
	from, to := filepath.Base(oldName), filepath.Base(newName)
	if _, err := os.Lstat(oldName); errors.Is(err, fs.ErrNotExist) && p.shared(from) {
		// A shard that was committed after the checkpoint.
		return p.fetchShard(from, to)
	}
	if err := p.FS.Rename(oldName, newName); err != nil {
		return err
	}
	switch {
	case to == p.checkpointName():
		p.newer = true
		if now := p.clock(); p.saved.IsZero() || now.Sub(p.saved) >= bucketInterval || now.Before(p.saved) {
			return p.save()
		}
		return nil
	case !p.shared(to):
		return nil
	case to == p.part.ManifestName():
		return p.commitPart(newName)
	case to == shard.PlanName:
		if there, err := p.exists(to); err != nil || there {
			return errors.Join(err, os.Remove(newName)) // another part has written it
		}
	}
	return p.commitShared(newName, to)
}

// fetchShard downloads a shard of the shared folder, once more if a twin writes the same bytes again
// meanwhile.
func (p *partBucket) fetchShard(name, local string) error {
	for try := 1; ; try++ {
		o, err := p.describe(name)
		if err != nil {
			return err
		}
		p.home.objects[name] = o
		err = p.home.download(name, local)
		if changed := (*remote.ChangedError)(nil); !errors.As(err, &changed) || try == twinTries {
			return err
		}
		time.Sleep(twinPause)
	}
}

// commitPart uploads the manifest of the part, after removing shards of the part that it does not
// list. If a twin has uploaded a manifest meanwhile, both list the same shards.
func (p *partBucket) commitPart(path string) error {
	m, err := shard.ReadPartManifest(p.FS, p.dir, p.part.Number)
	if err != nil {
		return err
	}
	for _, split := range []string{splitTrain, splitVal} {
		n := 0
		if s := m.Split(split); s != nil {
			n = len(s.Shards)
		}
		for ; ; n++ {
			name := p.part.ShardName(split, n)
			if more, err := p.exists(name); err != nil {
				return err
			} else if !more {
				break
			}
			if err := p.home.removeObject(context.Background(), name); err != nil {
				return err
			}
		}
	}
	return p.commitShared(path, p.part.ManifestName())
}

// save uploads the checkpoint of the scratch folder, after the files that it needs.
func (p *partBucket) save() error {
	ctx := context.Background()
	names, err := p.FS.ReadDir(p.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".arrow.tmp") || strings.HasSuffix(name, shard.OriginsSuffix) {
			if err := p.upload(ctx, name, true); err != nil {
				return err
			}
		}
	}
	if err := p.upload(ctx, p.checkpointName(), false); err != nil {
		return err
	}
	p.saved, p.newer = p.clock(), false
	return nil
}

// keep uploads the last checkpoint of a run that has ended without a part.
func (p *partBucket) keep() error {
	if _, err := os.Stat(p.local(p.checkpointName())); err != nil || !p.newer {
		return nil
	}
	return p.save()
}

// Remove removes a file of the scratch folder. For the checkpoint it also empties the part's own
// folder, and it removes the part's manifest from the shared folder too. Shards there stay: a twin
// may have committed them, and building them again writes the same bytes.
func (p *partBucket) Remove(name string) error {
	ctx, base := context.Background(), filepath.Base(name)
	err := p.FS.Remove(name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case base == p.checkpointName():
		if err := p.list(ctx); err != nil { // a twin's, too
			return err
		}
		for object := range p.objects {
			if err := p.removeObject(ctx, object); err != nil {
				return err
			}
		}
		clear(p.grown)
		return nil
	case base == p.part.ManifestName():
		return p.home.removeObject(ctx, base)
	}
	return err
}

// Stat describes a file of the scratch folder, or of the shared one.
func (p *partBucket) Stat(name string) (fs.FileInfo, error) {
	info, err := p.FS.Stat(name)
	if base := filepath.Base(name); errors.Is(err, fs.ErrNotExist) && filepath.Dir(name) == p.dir && p.shared(base) {
		o, err := p.describe(base)
		if err != nil {
			return nil, err
		}
		return objectInfo{o}, nil
	}
	return info, err
}

// ReadDir lists the scratch folder, and the manifests that the part and a merge have in the shared
// one.
func (p *partBucket) ReadDir(name string) ([]string, error) {
	names, err := p.FS.ReadDir(name)
	if name != p.dir || err != nil {
		return names, err
	}
	for _, shared := range []string{shard.ManifestName, p.part.ManifestName()} {
		there, err := p.exists(shared)
		if err != nil {
			return nil, err
		}
		if there && !slices.Contains(names, shared) {
			names = append(names, shared)
		}
	}
	slices.Sort(names)
	return names, nil
}

// OpenFile opens a file of the scratch folder, or one of the shared folder for reading.
func (p *partBucket) OpenFile(name string, flag int) (shard.File, error) {
	f, err := p.FS.OpenFile(name, flag)
	base := filepath.Base(name)
	if !errors.Is(err, fs.ErrNotExist) || flag&os.O_RDWR != 0 || !p.shared(base) {
		return f, err
	}
	return openShared(p.store, p.home.object(base))
}
