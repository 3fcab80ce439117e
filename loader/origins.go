package loader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dsload/dsload/loader/origins"
	"github.com/dsload/dsload/shard"
)

// ErrNoOrigins means that a dataset does not say where its documents came from.
var ErrNoOrigins = errors.New("no origins of documents")

// Origins finds where the documents of a split came from.
type Origins struct {
	path string
	file shard.File
	find *origins.File
}

// OpenOrigins opens what a dataset has noted of where the documents of a split came from. The error
// is ErrNoOrigins where there is nothing, as in datasets of earlier versions.
func OpenOrigins(fsys shard.FS, dir string, m *shard.Manifest, split string) (_ *Origins, err error) {
	listed := func(name string) bool {
		return slices.ContainsFunc(m.Files, func(f shard.FileInfo) bool { return f.Name == name })
	}
	name := shard.OriginsName
	if split == "val" && listed(shard.ValOriginsName) {
		name = shard.ValOriginsName
	}
	if !listed(name) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoOrigins)
	}
	o := &Origins{path: filepath.Join(dir, name)}
	if o.file, err = fsys.OpenFile(o.path, os.O_RDONLY); err != nil {
		return nil, err
	}
	info, err := o.file.Stat()
	if err == nil {
		o.find, err = origins.Open(o.file, info.Size())
	}
	if err != nil {
		return nil, errors.Join(o.explain(err), o.file.Close())
	}
	return o, nil
}

// Find returns where a document came from; ok is false where that was not noted.
func (o *Origins) Find(document int64) (found origins.Origin, ok bool, err error) {
	if o == nil {
		return found, false, nil
	}
	found, ok, err = o.find.Find(document)
	return found, ok, o.explain(err)
}

// explain makes a damaged file a *shard.FileError.
func (o *Origins) explain(err error) error {
	if errors.Is(err, origins.ErrCorrupt) {
		return &shard.FileError{File: o.path, Offset: -1, Row: -1, Cause: fmt.Errorf("%w: %w", shard.ErrCorrupt, err)}
	}
	return err
}

// Close releases the file.
func (o *Origins) Close() error {
	if o == nil {
		return nil
	}
	return o.file.Close()
}
