package listing

import (
	"io"
	"io/fs"
	"time"

	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/synth"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/remote"
)

// A File is what an argument leads to: a file of this machine or of a store, a pipe, or generated text.
type File struct {
	URI     string    // the argument, or the path that a glob or folder led to
	Path    string    // "" if it is not of this machine
	Size    int64     // bytes as stored; the limit of generated text; -1 if unknown
	ModTime time.Time // zero for none

	// Store is that of a remote file, ETag, Revision and Hash what its server says of it: Revision is the commit
	// of its repository, Hash "sha256:hex" or "git-sha1:hex".
	Store                *remote.Store
	ETag, Revision, Hash string

	Stream io.Reader   // a pipe, which can be read once
	Synth  *synth.Spec // generated text
	Head   []byte      // the beginning of a file of the web, until the next one is listed
	Listed bool        // a folder or a glob led to it, so that it may be skipped
	Saved  bool        // it is a shard of a folder that datasets' save_to_disk wrote
}

func localFile(name string, info fs.FileInfo) *File {
	return &File{URI: uris.OfFile(name), Path: name, Size: info.Size(), ModTime: info.ModTime().UTC()}
}

func remoteFile(o remote.Object, store *remote.Store) *File {
	return &File{URI: o.URI, Size: o.Size, ModTime: o.Modified, ETag: o.ETag, Revision: o.Revision,
		Hash: o.Hash, Store: store}
}

// Object describes a remote file to its store.
func (f *File) Object() remote.Object {
	return remote.Object{URI: f.URI, Size: f.Size, ETag: f.ETag, Modified: f.ModTime,
		Revision: f.Revision, Hash: f.Hash}
}

// AppendRow writes down what identifies a file, local or remote.
func (f *File) AppendRow(row []byte) []byte {
	row = scratch.AppendRow(row, []int64{f.Size, f.ModTime.Unix(), int64(f.ModTime.Nanosecond())}, f.Path, f.ETag,
		f.Revision, f.Hash)
	if f.Path != "" {
		return row
	}
	return append(row, f.URI...)
}

// ParseRow reads what AppendRow wrote, up to the end of row.
func (f *File) ParseRow(row []byte) error {
	var seconds, nanoseconds int64
	row, err := scratch.ParseRow(row, []*int64{&f.Size, &seconds, &nanoseconds}, &f.Path, &f.ETag, &f.Revision, &f.Hash)
	if err != nil {
		return err
	}
	f.ModTime = time.Unix(seconds, nanoseconds).UTC()
	if f.URI = uris.OfFile(f.Path); f.Path == "" {
		f.URI = string(row)
	}
	return nil
}
