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
	// Rows appends rows to a split.
	Rows(split string, rows *Rows) error
	// File writes a file beside the shards. It has the name that it has in a dataset of its own; parts and additions
	// give it theirs. Files are not part of checkpoints: they are written in the run that finishes.
	File(name string, data io.Reader) error
	// Checkpoint makes all rows so far durable, with what cursor returns. Unless it must be now, it may begin that in
	// the background instead, and take no checkpoint yet; then it does not call cursor. A nil cursor is that of a
	// build without rows: the folder is open to other settings, and only Close may follow.
	Checkpoint(now bool, cursor func() ([][]byte, error)) (taken bool, err error)
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

// Create begins a dataset of its own, or resumes one.
func Create(fsys shardfile.FS, dir string, o BuilderOptions) (Writer, *Resume, error) {
	b, checkpoint, err := OpenBuilder(fsys, dir, o)
	if err != nil {
		return nil, nil, err
	}
	shards := func(split string) int {
		n, _, _ := b.Written(split)
		return n
	}
	r := &Resume{Shards: shards, Pages: func(name string) string { return filepath.Join(dir, o.Part.ExtraName(name)+shardfile.OriginsSuffix) }}
	r.SeenLog, r.SeenScratch = b.path(b.seenLog()), b.path(b.seenLog()+shardfile.TempSuffix)
	if checkpoint != nil {
		r.Cursor = checkpoint.Cursor
	}
	return b, r, nil
}

// Append begins or resumes an addition to a finished dataset, of a number from 1 on. Its documents begin with first.
func Append(fsys shardfile.FS, dir string, o BuilderOptions, number int, first int64) (Writer, *Resume, error) {
	o.Append, o.FirstDocument, o.addition = true, first, number
	return Create(fsys, dir, o)
}

// CreatePart begins or resumes one part of the dataset that a plan, known by its seal, divides.
func CreatePart(fsys shardfile.FS, dir string, o BuilderOptions, part shardfile.Part, plan string) (Writer, *Resume, error) {
	o.Part, o.Plan = part, plan
	return Create(fsys, dir, o)
}

// Discard is a Writer that keeps nothing.
type Discard struct{}

func (Discard) Row(string, *Example) error                              { return nil }
func (Discard) Rows(string, *Rows) error                                { return nil }
func (Discard) File(string, io.Reader) error                            { return nil }
func (Discard) Checkpoint(bool, func() ([][]byte, error)) (bool, error) { return false, nil }
func (Discard) Finish(Provenance) (*shard.Manifest, error)              { return nil, nil }
func (Discard) Close() error                                            { return nil }
