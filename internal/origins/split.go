package origins

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// ErrNone means that a dataset does not record where its documents came from.
var ErrNone = errors.New("no origins of documents")

// Split finds where the documents of a split came from.
type Split struct {
	files []originFile // the build's, then each addition's
}

type originFile struct {
	path string
	file shardfile.File
	find *File
}

// OpenSplit opens the origins of the documents of a split. The error is ErrNone if the
// dataset has none, as datasets of earlier versions.
func OpenSplit(fsys shardfile.ReadFS, dir string, m *shard.Manifest, split string) (_ *Split, err error) {
	var names []string
	if split == "val" && m.File(shardfile.ValOriginsName) != nil {
		names = append(names, shardfile.ValOriginsName)
	} else if m.File(shardfile.OriginsName) != nil {
		names = append(names, shardfile.OriginsName)
	}
	for _, f := range m.Files {
		if len(names) > 0 && names[0] == shardfile.OriginsName && shardfile.IsAddition(f.Name, shardfile.OriginsName) {
			names = append(names, f.Name) // in order, since files are sorted by name
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	o := &Split{}
	for _, name := range names {
		if err := o.open(fsys, shardfile.Join(dir, name)); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

func (o *Split) open(fsys shardfile.ReadFS, path string) (err error) {
	f := originFile{path: path}
	f.file, err = fsys.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		err = shardfile.Wrong(path, fmt.Errorf("%w: the file is missing", shard.ErrCorrupt))
	}
	if err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err == nil {
		f.find, err = Open(f.file, info.Size())
	}
	if err != nil {
		return errors.Join(f.explain(err), f.file.Close())
	}
	o.files = append(o.files, f)
	return nil
}

// Find returns where a document came from; ok is false if that was not recorded.
func (o *Split) Find(document int64) (found Origin, ok bool, err error) {
	if o == nil {
		return found, false, nil
	}
	for i := len(o.files) - 1; i >= 0 && !ok && err == nil; i-- {
		f := &o.files[i]
		found, ok, err = f.find.Find(document)
		err = f.explain(err)
	}
	for i := 0; i < len(o.files) && !ok && err == nil; i++ {
		err = o.files[i].explain(o.files[i].find.check(document))
	}
	return found, ok, err
}

// Runs passes the runs of all documents to visit, in order. It holds a page.
func (o *Split) Runs(visit func(Run) error) error {
	if o == nil {
		return ErrNone
	}
	for i := range o.files {
		f := &o.files[i]
		if err := Scan(io.NewSectionReader(f.file, 0, f.find.size), visit); err != nil {
			return f.explain(err)
		}
	}
	return nil
}

// explain turns the error of a damaged file into a *shardfile.FileError.
func (o *originFile) explain(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return shardfile.Wrong(o.path, fmt.Errorf("%w: %w", shard.ErrCorrupt, err))
	}
	return err
}

// Close releases the files.
func (o *Split) Close() (err error) {
	if o == nil {
		return nil
	}
	for _, f := range o.files {
		err = errors.Join(err, f.file.Close())
	}
	return err
}
