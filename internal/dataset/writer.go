package dataset

import (
	"io"
	"path/filepath"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// A Writer writes rows into the folder of a dataset, in order.
type Writer interface {
	// Row appends a row to a split.
	Row(split string, row *Example) error
	// File writes a file beside the shards. It has the name that it has in a dataset of its own; parts and additions
	// give it theirs. Files are not part of checkpoints: they are written in the run that finishes.
	File(name string, data io.Reader) error
	// Checkpoint makes all rows so far durable, with what cursor returns. Unless it must be now, it may begin that in
	// the background instead, and take no checkpoint yet; then it does not call cursor.
	Checkpoint(now bool, cursor func() ([][]byte, error)) (taken bool, err error)
	// Forget removes the checkpoints of a build without rows, so that the folder is open to other settings. Only
	// Close may follow.
	Forget() error
	// Finish commits all that was written, and closes the Writer.
	Finish(Provenance) (*shard.Manifest, error)
	// Close releases the folder and keeps what the last checkpoint made durable.
	Close() error
}

// A Resume is where a Writer begins.
type Resume struct {
	Cursor []byte // the last checkpoint's; nil where there is none
	// SeenLog and SeenScratch are the paths of two files for the record of the documents that were seen: a log, which
	// is synced before a checkpoint that relies on it and which Finish removes, and one that the next run removes.
	SeenLog, SeenScratch string
	// Pages returns the path of the file in which a file of this name grows until Writer.File writes it.
	Pages func(name string) string
	// Shards returns how many shards of a split have begun.
	Shards func(split string) int
}

// writer is a Writer of a folder.
type writer struct {
	builder *Builder
	rename  func(name string) string
}

func open(fsys shardfile.FS, dir string, o BuilderOptions, rename func(name string) string) (Writer, *Resume, error) {
	builder, checkpoint, err := OpenBuilder(fsys, dir, o)
	if err != nil {
		return nil, nil, err
	}
	shards := func(split string) int {
		n, _, _ := builder.Written(split)
		return n
	}
	r := &Resume{Shards: shards, Pages: func(name string) string { return filepath.Join(dir, o.Part.ExtraName(name)+shardfile.OriginsSuffix) }}
	r.SeenLog, r.SeenScratch = builder.SeenPaths()
	if checkpoint != nil {
		r.Cursor = checkpoint.Cursor
	}
	return &writer{builder, rename}, r, nil
}

// Create begins a dataset of its own, or resumes one.
func Create(fsys shardfile.FS, dir string, o BuilderOptions) (Writer, *Resume, error) {
	return open(fsys, dir, o, func(name string) string { return name })
}

// Append begins or resumes an addition to a finished dataset, of a number from 1 on. Its documents begin with first.
func Append(fsys shardfile.FS, dir string, o BuilderOptions, number int, first int64) (Writer, *Resume, error) {
	o.Append, o.FirstDocument = true, first
	return open(fsys, dir, o, func(name string) string {
		if name == shardfile.HashesName(0) {
			return shardfile.HashesName(number)
		}
		return shardfile.AdditionName(name, number)
	})
}

// CreatePart begins or resumes one part of the dataset that a plan, known by its seal, divides.
func CreatePart(fsys shardfile.FS, dir string, o BuilderOptions, part shardfile.Part, plan string) (Writer, *Resume, error) {
	o.Part, o.Plan = part, plan
	return open(fsys, dir, o, part.ExtraName)
}

func (w *writer) Row(split string, row *Example) error { return w.builder.Append(split, row) }

// File lets the rows reach the disk in the background.
func (w *writer) File(name string, data io.Reader) error {
	w.builder.SyncAhead()
	return w.builder.WriteFile(w.rename(name), data)
}

func (w *writer) Checkpoint(now bool, cursor func() ([][]byte, error)) (taken bool, err error) {
	if !now && !w.builder.SyncAhead() {
		return false, nil
	}
	parts, err := cursor()
	if err != nil {
		return false, err
	}
	err = w.builder.Checkpoint(parts...)
	return err == nil, err
}

func (w *writer) Forget() error { return w.builder.Forget() }

func (w *writer) Finish(p Provenance) (*shard.Manifest, error) { return w.builder.Finish(p) }

func (w *writer) Close() error { return w.builder.Close() }

// Discard is a Writer that keeps nothing.
type Discard struct{}

func (Discard) Row(string, *Example) error                              { return nil }
func (Discard) File(string, io.Reader) error                            { return nil }
func (Discard) Checkpoint(bool, func() ([][]byte, error)) (bool, error) { return false, nil }
func (Discard) Forget() error                                           { return nil }
func (Discard) Finish(Provenance) (*shard.Manifest, error)              { return nil, nil }
func (Discard) Close() error                                            { return nil }
