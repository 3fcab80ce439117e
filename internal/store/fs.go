package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
)

// checkpointInterval is the shortest time between two uploads of a checkpoint: another machine loses at
// most that much work.
const checkpointInterval = 30 * time.Second

// FS is the file system of a run that writes into a folder of a bucket: a scratch folder, whose whole
// files are in the bucket. It belongs to one goroutine at a time, except for Stat and OpenFile in a
// merge.
type FS struct {
	shardfile.FS                 // the operating system's
	ctx          context.Context // for the requests of this one run: the methods of a file system have none
	dir          string          // the scratch folder
	home         *folder         // holds whole files
	state        *folder         // holds what another machine needs to resume; nil for a merge
	policy       policy
	clock        func() time.Time
	notice       func(format string, args ...any)
	saved        time.Time // when a checkpoint was last uploaded
	newer        bool      // the scratch folder has a newer one
}

// A policy is what sets one kind of run apart: a whole build or an addition, a part, and a merge.
type policy interface {
	// names calls visit with the names in the bucket's folder that the run sees.
	names(visit func(name string) error) error
	// commit brings a whole file of this machine into the bucket, and removes it here.
	commit(path, name string) error
	// removes reports whether an object is removed with its file.
	removes(name string) bool
}

func (f *FS) local(name string) string { return filepath.Join(f.dir, name) }

// Rename renames a file of the scratch folder, and uploads a checkpoint when it is due. A file of the dataset
// gets its name in the bucket, and never here: what the bucket does not have is not there.
func (f *FS) Rename(oldName, newName string) error {
	from, to := filepath.Base(oldName), filepath.Base(newName)
	if _, err := os.Lstat(oldName); errors.Is(err, fs.ErrNotExist) && shardfile.RoleOf(from) == shardfile.RoleWhole {
		// A shard that was committed after the checkpoint.
		if err := f.fetch(from, newName); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	role := shardfile.RoleOf(to)
	if role == shardfile.RoleWhole {
		return f.policy.commit(oldName, to)
	}
	if err := f.FS.Rename(oldName, newName); err != nil || role != shardfile.RoleCheckpoint {
		return err
	}
	f.newer = true
	if now := f.clock(); !f.saved.IsZero() && now.Sub(f.saved) < checkpointInterval && !now.Before(f.saved) {
		return nil
	}
	err := f.save()
	f.newer = false // what could not be saved now is not tried again at the end
	return err
}

// fetch downloads a whole file, which a twin may be writing again.
func (f *FS) fetch(name, path string) error {
	return retryChanged(f.ctx, func(bool) error {
		o, err := f.home.describe(f.ctx, name)
		if err != nil {
			return err
		}
		return f.home.download(f.ctx, o, path)
	})
}

// upload uploads a whole file, and removes it here.
func (f *FS) upload(path, name string) error {
	if err := f.home.upload(f.ctx, path, name); err != nil {
		return err
	}
	delete(f.home.grown, shardfile.TempName(name))
	return os.Remove(path)
}

// save uploads the checkpoint of the scratch folder, after the files that it needs.
func (f *FS) save() error {
	names, err := f.FS.ReadDir(f.dir)
	if err != nil {
		return err
	}
	checkpoint := ""
	for _, name := range names {
		switch shardfile.RoleOf(name) {
		case shardfile.RoleGrowing:
			err = f.state.grow(f.ctx, f.local(name))
		case shardfile.RoleChanging:
			err = f.state.upload(f.ctx, f.local(name), name)
		case shardfile.RoleCheckpoint:
			checkpoint = name
		}
		if err != nil {
			return err
		}
	}
	if checkpoint == "" {
		return nil
	}
	if err := f.state.upload(f.ctx, f.local(checkpoint), checkpoint); err != nil {
		return err
	}
	rows, err := dataset.HasRows(f.FS, f.local(checkpoint))
	if err == nil && !rows && len(f.state.stretches()) > 0 { // a build is there, which this one overwrites
		err = f.forget()
	}
	if err != nil {
		return err
	}
	f.saved, f.newer = f.clock(), false
	return nil
}

// resume downloads the bucket's checkpoint and the files that it needs.
func (f *FS) resume(ctx context.Context) error {
	for name, o := range f.state.known {
		if role := shardfile.RoleOf(name); role == shardfile.RoleCheckpoint || role == shardfile.RoleChanging {
			if err := f.state.download(ctx, o, f.local(name)); err != nil {
				return err
			}
		}
	}
	return f.state.join(ctx, f.dir)
}

// empty removes what is in the scratch folder.
func (f *FS) empty() error { return errors.Join(os.RemoveAll(f.dir), os.Mkdir(f.dir, 0o700)) }

// dropWhole removes files of the dataset from the scratch folder, which no run leaves there.
func (f *FS) dropWhole() error {
	names, err := f.FS.ReadDir(f.dir)
	for _, name := range names {
		if shardfile.RoleOf(name) == shardfile.RoleWhole {
			err = errors.Join(err, os.RemoveAll(f.local(name)))
		}
	}
	return err
}

// forget removes from the bucket what serves resuming, also a twin's, except for the checkpoint.
func (f *FS) forget() error {
	if err := f.state.list(f.ctx); err != nil {
		return err
	}
	for name := range f.state.known {
		if _, stretch := parseStretch(name); stretch || shardfile.RoleOf(name) == shardfile.RoleChanging {
			if err := f.state.remove(f.ctx, name); err != nil {
				return err
			}
		}
	}
	clear(f.state.grown)
	f.newer = false
	return nil
}

// Remove removes a file here, and its object if the policy says so. What another machine needs to resume
// is removed with the checkpoint, and the checkpoint's object last.
func (f *FS) Remove(name string) error {
	base := filepath.Base(name)
	checkpoint := shardfile.RoleOf(base) == shardfile.RoleCheckpoint && f.state != nil
	if checkpoint {
		if err := f.forget(); err != nil {
			return err
		}
	}
	err := f.FS.Remove(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if checkpoint {
		if _, saved := f.state.known[base]; saved {
			return f.state.remove(f.ctx, base)
		}
		return err
	}
	if f.policy.removes(base) {
		return f.home.remove(f.ctx, base)
	}
	return err
}

// find returns the object that stands for a file which could not be found here, or the error of that.
func (f *FS) find(name string, err error) (o remote.Object, _ error) {
	base := filepath.Base(name)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(name) != f.dir ||
		f.home.known == nil && shardfile.RoleOf(base) != shardfile.RoleWhole {
		return o, err
	}
	o, farErr := f.home.describe(f.ctx, base)
	if errors.Is(farErr, fs.ErrNotExist) {
		return o, err
	}
	return o, farErr
}

// Stat describes a file here or in the bucket.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	info, err := f.FS.Stat(name)
	if err == nil {
		return info, nil
	}
	o, err := f.find(name, err)
	if err != nil {
		return nil, err
	}
	return objectInfo{o}, nil
}

// OpenFile opens a file here, or one of the bucket for reading.
func (f *FS) OpenFile(name string, flag int) (shardfile.File, error) {
	file, err := f.FS.OpenFile(name, flag)
	if err == nil || flag&os.O_RDWR != 0 {
		return file, err
	}
	o, err := f.find(name, err)
	if err != nil {
		return nil, err
	}
	if base := filepath.Base(name); shardfile.IsHashes(base) {
		return f.openCopy(base)
	}
	return &sharedFile{unwritable{o.URI}, f.home.store.Open(f.ctx, o), f.ctx, f.home}, nil
}

// Open opens a file for reading.
func (f *FS) Open(name string) (fs.File, error) {
	return shardfile.Opened(f.OpenFile(name, os.O_RDONLY))
}

// openCopy downloads an object that is read at many places, and opens the copy, which is removed with the
// scratch folder.
func (f *FS) openCopy(name string) (shardfile.File, error) {
	path := filepath.Join(filepath.Dir(f.dir), "base", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := f.fetch(name, path); err != nil {
		return nil, err
	}
	return f.FS.OpenFile(path, os.O_RDONLY)
}

// WalkNames calls visit with the names of the files here, and then with those in the bucket that are not
// here.
func (f *FS) WalkNames(dir string, visit func(name string) error) error {
	here, err := f.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range here {
		if err := visit(name); err != nil {
			return err
		}
	}
	if dir != f.dir {
		return nil
	}
	return f.policy.names(func(name string) error {
		if _, found := slices.BinarySearch(here, name); found {
			return nil
		}
		return visit(name)
	})
}

// ReadDir lists the files here and in the bucket.
func (f *FS) ReadDir(dir string) (names []string, err error) {
	err = f.WalkNames(dir, func(name string) error {
		names = append(names, name)
		return nil
	})
	slices.Sort(names)
	return names, err
}

// targetError names the bucket where an error names the scratch folder.
type targetError struct {
	err      error
	dir, uri string
}

func (e *targetError) Error() string { return strings.ReplaceAll(e.err.Error(), e.dir, e.uri) }

// In returns the error's text, with options written by names.
func (e *targetError) In(names fault.Names) string {
	return strings.ReplaceAll(fault.Show(e.err, names), e.dir, e.uri)
}

func (e *targetError) Unwrap() error { return e.err }
