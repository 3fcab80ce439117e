// Package listing finds the files that arguments lead to: paths, globs, folders, addresses of the web and of
// stores, datasets of the Hub, "-" and synth://.
//
//	argument -> Lister.List -> Options.Add(File), Options.Add(File), …
//
// Folders and globs give their files in the order of their names, in bounded memory however many there are.
// Which of them are skipped by their names is decided here; Add looks into the others.
//
// Concurrency: a Lister belongs to one goroutine.
package listing

import (
	"io"

	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/remote"
)

// Options are where files lie, and where not. "Output" marks the fields that may change which are found.
type Options struct {
	// Stdin is what "-" reads, or nil.
	Stdin io.Reader
	// ScratchDir is where lists of files go that are too long for memory. Default: the system's
	// folder for temporary files.
	ScratchDir string
	// OutDir is a folder that is not a source, wherever it lies: the dataset that is built. Default
	// none.
	OutDir string
	// Built, where not nil, returns which files of a folder belong to a dataset that dsload built there,
	// finished or not, and nil if it holds none. In folders and globs, such files are not sources, and neither is
	// anything in a folder below that holds some. Output.
	Built func(dir string) (owns func(name string) bool)
	// Marks, where not nil, reports whether a file of a remote store lies in the folder of such a dataset,
	// by its name and, where it asks for it, its beginning. Output.
	Marks func(name string, head func() []byte) bool
	// Passed, where not nil, is told of each folder of such a dataset, with a nil error, and of each file or folder
	// that cannot be listed, which then does not end the list. A list without a file is then no error.
	Passed func(uri string, err error)
}

// Added is what became of a file.
type Added struct {
	Skipped skip.Kind
	// Copied is set on a remote file that is copied before it is read.
	Copied bool
}

// A Lister lists the files of arguments.
type Lister struct {
	Options
	// Format is the format that was asked for, "" if that of each file is found.
	Format string
	// Filter chooses among the files of folders and globs.
	Filter *glob.Filter
	// Store returns the store of remote files.
	Store func() *remote.Store
	// HeadBytes is how much of a file of the web is read with the answer that describes it.
	HeadBytes int
	// Add takes a file, or says why it is skipped; the error of a skipped file says more. The file must not be
	// kept.
	Add func(f *File) (Added, error)
	// Note takes a sentence that a user should know.
	Note func(format string, args ...any)

	answers  answers
	head     []byte   // a buffer
	patterns []string // those listed so far
}
