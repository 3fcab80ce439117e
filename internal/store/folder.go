package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
)

// folder is a folder of a bucket that a run writes to.
type folder struct {
	store *remote.Store
	uri   string // without a slash at its end
	// known holds the objects, by name, and grown the bytes of unfinished files that are there in
	// stretches, if no other run writes to the folder. Otherwise they are nil, and the bucket is asked.
	known map[string]remote.Object
	grown map[string]int64
	// claim is what objects are written and removed under; nil where several runs write the same.
	claim *claim
}

func (d *folder) object(name string) string { return d.uri + "/" + name }

// list sets known and grown.
func (d *folder) list(ctx context.Context) error {
	d.known, d.grown = map[string]remote.Object{}, map[string]int64{}
	err := d.store.List(ctx, d.uri, func(name string, o remote.Object) error {
		if !strings.Contains(name, "/") {
			d.known[name] = o
		}
		return nil
	})
	for _, s := range d.stretches() {
		if s.from <= d.grown[s.file] {
			d.grown[s.file] = max(d.grown[s.file], s.to)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is there yet
	}
	return err
}

// stretches returns the stretches in the folder by where they begin, the longest first.
func (d *folder) stretches() (list []stretch) {
	for name := range d.known {
		if s, ok := parseStretch(name); ok {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b stretch) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	return list
}

// describe returns the object of a name; the error is fs.ErrNotExist if there is none.
func (d *folder) describe(ctx context.Context, name string) (remote.Object, error) {
	if d.known == nil {
		return d.store.Describe(ctx, d.object(name))
	}
	if o, ok := d.known[name]; ok {
		return o, nil
	}
	return remote.Object{}, fs.ErrNotExist
}

func (d *folder) has(ctx context.Context, name string) (bool, error) {
	_, err := d.describe(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// refresh asks the bucket what has a name now, and returns that; the error is fs.ErrNotExist for nothing.
func (d *folder) refresh(ctx context.Context, name string) (remote.Object, error) {
	o, err := d.store.Describe(ctx, d.object(name))
	switch {
	case err == nil && d.known != nil:
		d.known[name] = o
	case errors.Is(err, fs.ErrNotExist):
		delete(d.known, name)
	}
	return o, err
}

// read returns a short object; the error is fs.ErrNotExist if there is none.
func (d *folder) read(ctx context.Context, name string, limit int64) (data []byte, err error) {
	err = retryChanged(ctx, func(bool) error {
		o, err := d.refresh(ctx, name)
		if err == nil {
			data, err = d.store.ReadAll(ctx, o, limit)
		}
		return err
	})
	return data, err
}

// unchanged returns the condition that the bucket has under a name what this run knows of it.
func (d *folder) unchanged(name string) remote.Condition {
	o, there := d.known[name]
	return remote.Condition{Absent: !there, ETag: o.ETag}
}

// put writes an object. Under a claim, what another run has put there meanwhile is replaced: that was on its way
// when this run took the folder over. Or it is this run's, and the answer was lost. Only a manifest is not
// replaced; the error is remote.ErrConflict.
func (d *folder) put(ctx context.Context, name string, data io.ReaderAt, size int64) error {
	var when remote.Condition
	switch {
	case d.claim != nil:
		if err := d.claim.check(ctx); err != nil {
			return err
		}
		when = d.unchanged(name)
	case name == shardfile.PlanName:
		when.Absent = true // the first part that writes it makes the folder that of its plan
	}
	uri := d.object(name)
	etag, err := d.store.Put(ctx, uri, data, size, when)
	if errors.Is(err, remote.ErrConflict) && d.claim != nil && name != shardfile.ManifestName {
		if err := d.claim.check(ctx); err != nil {
			return err
		}
		etag, err = d.store.Put(ctx, uri, data, size, remote.Condition{})
	}
	if err != nil {
		return fmt.Errorf("upload %s: %w", uri, err)
	}
	if d.known != nil {
		d.known[name] = remote.Object{URI: uri, Size: size, ETag: etag}
	}
	return nil
}

// upload uploads a file of this machine under a name.
func (d *folder) upload(ctx context.Context, path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return d.putFile(ctx, name, path, 0, info.Size())
}

// grow uploads what a file of this machine has gained since the last upload.
func (d *folder) grow(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	s := stretch{info.Name(), d.grown[info.Name()], info.Size()}
	if s.to <= s.from {
		return nil
	}
	if err := d.putFile(ctx, s.name(), path, s.from, s.to); err != nil {
		return err
	}
	d.grown[s.file] = s.to
	return nil
}

func (d *folder) putFile(ctx context.Context, name, path string, from, to int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.put(ctx, name, io.NewSectionReader(f, from, to-from), to-from)
}

// download writes an object to a file of this machine.
func (d *folder) download(ctx context.Context, o remote.Object, path string) error {
	return writeFile(path, func(out *os.File) error { return d.copyTo(ctx, o, out) })
}

// join puts the unfinished files that are in the folder in stretches together in a folder of this machine.
func (d *folder) join(ctx context.Context, dir string) error {
	list := d.stretches()
	for _, name := range slices.Sorted(maps.Keys(d.grown)) {
		err := writeFile(filepath.Join(dir, name), func(out *os.File) error {
			at := int64(0)
			for _, s := range list {
				if s.file != name || s.from > at || s.to <= at {
					continue
				}
				if err := d.copyTo(ctx, d.known[s.name()], io.NewOffsetWriter(out, s.from)); err != nil {
					return err
				}
				at = s.to
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *folder) copyTo(ctx context.Context, o remote.Object, out io.Writer) error {
	in := d.store.Open(ctx, o)
	defer in.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, in, make([]byte, 64<<10)); err != nil {
		return fmt.Errorf("download %s: %w", o.URI, err)
	}
	return nil
}

// writeFile makes a new file, in the place of any that has its name: never through a link that somebody put there.
func writeFile(path string, fill func(*os.File) error) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(out)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

func (d *folder) remove(ctx context.Context, name string) error {
	if d.claim != nil {
		if err := d.claim.check(ctx); err != nil {
			return err
		}
	}
	if err := d.store.Remove(ctx, d.object(name)); err != nil {
		return fmt.Errorf("remove %s: %w", d.object(name), err)
	}
	delete(d.known, name)
	return nil
}
