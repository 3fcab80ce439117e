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
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/synth"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/remote"
)

// Options are what a Lister is told.
type Options struct {
	// Format is the format that was asked for, "" if that of each file is found.
	Format string
	// Filter chooses among the files of folders and globs.
	Filter *glob.Filter
	// Stdin is what "-" reads, or nil.
	Stdin io.Reader
	// ScratchDir is where lists of files go that are too long for memory.
	ScratchDir string
	// OutDir is a folder that is not a source, "" for none.
	OutDir string
	// Built, where not nil, returns which files of a folder belong to a dataset that dsload built there, nil if
	// it holds none.
	Built func(dir string) (owns func(name string) bool)
	// Marks, where not nil, reports whether a file of a remote store lies in the folder of such a dataset, by
	// its name and, where it asks for it, its beginning.
	Marks func(name string, head func() []byte) bool
	// Store returns the store of remote files.
	Store func() *remote.Store
	// HeadBytes is how much of a file of the web is read with the answer that describes it.
	HeadBytes int
	// Add takes a file, or says why it is skipped; the error of a skipped file says more. The file must not be
	// kept.
	Add func(f *File) (Added, error)
	// Note takes a sentence that a user should know.
	Note func(format string, args ...any)
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
	answers answers
	head    []byte // a buffer
}

// New returns a Lister.
func New(o Options) *Lister { return &Lister{Options: o} }

// Check refuses an argument that cannot be read, before any other is. before are the arguments before it.
func (l *Lister) Check(arg string, before []string) error {
	scheme, rest, isURL := strings.Cut(arg, "://")
	switch {
	case arg == "":
		return fault.Of(cause.Usage, "a source is an empty string")
	case arg == "-" && l.Stdin == nil:
		return fault.Of(cause.Usage, "source -: there is no standard input")
	case arg == "-" && slices.Contains(before, "-"):
		return fault.Of(cause.Usage, "source - is given twice; it can be read only once")
	case arg == "-":
		return nil
	case isURL && scheme == "synth":
		_, err := Generated(arg)
		return err
	case isURL && uris.IsRemote(arg):
		return nil
	case isURL && scheme == "file" && !strings.HasPrefix(rest, "/"):
		return fault.Of(cause.Usage, "%s: a file address has three slashes and an absolute path", arg)
	case uris.IsAddress(arg) && scheme != "file":
		e := cause.Unread(remote.Redact(arg), &fault.Error{Class: fault.Usage, Err: cause.Unsupported,
			What: fault.Textf("addresses of kind %s:// cannot be read", scheme)})
		e.Hint = "download it and name the file"
		if strings.HasPrefix(scheme, "abfs") || strings.HasPrefix(scheme, "wasb") {
			e.Hint = "write az://CONTAINER/PATH and set AZURE_STORAGE_ACCOUNT"
		}
		return e
	}
	name := strings.TrimPrefix(arg, "file://")
	if _, err := os.Stat(name); err != nil {
		if !isGlob(name) {
			return cause.Unread(name, cause.OfPath(err))
		}
		if _, _, err := globRoot(name); err != nil {
			return fault.Of(cause.Usage, "pattern %s: %v", name, err)
		}
	}
	return nil
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[{") }

// Generated parses the address of generated text.
func Generated(address string) (*synth.Spec, error) {
	spec, err := synth.Parse(address)
	if err != nil {
		return nil, fault.Of(cause.Usage, "source %s: %v", address, err)
	}
	return spec, nil
}

// List adds the files that an argument leads to; many is set for a folder or glob.
func (l *Lister) List(ctx context.Context, arg string) (many bool, err error) {
	switch {
	case arg == "-":
		_, err = l.Add(&File{URI: "-", Size: -1, Stream: l.Stdin})
		return false, err
	case strings.HasPrefix(arg, "synth://"):
		spec, err := Generated(arg)
		if err == nil {
			_, err = l.Add(&File{URI: arg, Size: spec.Size(), Synth: spec})
		}
		return false, err
	case remote.Listable(arg):
		return l.store(ctx, arg)
	case uris.IsRemote(arg):
		return false, l.address(ctx, arg)
	}
	name := strings.TrimPrefix(arg, "file://")
	info, err := os.Stat(name)
	isFolder := err == nil && info.IsDir()
	w := walk{ctx: ctx, root: name, filter: l.Filter, files: scratch.Sorter{Dir: l.ScratchDir},
		todo: scratch.Queue{Dir: l.ScratchDir}, built: l.Built}
	switch {
	case isFolder && isSaved(name) && (l.Format == "" || l.Format == "dataset" || l.Format == "chat"):
		return true, l.saved(name)
	case l.Format == "dataset":
		return false, cause.Unread(name, fault.Of(cause.Usage,
			"this is not a folder that datasets' save_to_disk wrote: it has no %s", savedState))
	case err == nil && !isFolder:
		f := localFile(name, info)
		if !info.Mode().IsRegular() {
			if f.Stream, err = os.Open(name); err != nil {
				return false, cause.Unread(name, cause.OfPath(err))
			}
			f.Size, f.ModTime = -1, time.Time{}
		}
		_, err = l.Add(f)
		return false, err
	case err != nil && !isGlob(name):
		return false, cause.Unread(name, cause.OfPath(err))
	case err != nil:
		if w.root, w.globs, err = globRoot(name); err != nil {
			return false, fault.Of(cause.Usage, "pattern %s: %v", name, err)
		}
	}
	if l.OutDir != "" {
		w.out, _ = os.Stat(l.OutDir) // most often it is not there yet
	}
	return true, errors.Join(l.walked(name, &w), w.Close())
}

// GivenTwice adds notes on files that are given more than once, or lie in a folder that is given too: their
// documents come twice.
func (l *Lister) GivenTwice(args []string) {
	seen := map[string]bool{}
	for _, arg := range args {
		if strings.HasPrefix(arg, "file://") || !uris.IsAddress(arg) && arg != "-" && !isGlob(arg) {
			if abs, err := filepath.Abs(strings.TrimPrefix(arg, "file://")); err == nil {
				seen[abs] = true
			}
		}
	}
	again := map[string]bool{}
	for _, arg := range args {
		abs, err := filepath.Abs(strings.TrimPrefix(arg, "file://"))
		if err != nil || uris.IsAddress(arg) && !strings.HasPrefix(arg, "file://") || arg == "-" {
			arg = uris.Redact(arg)
			abs = arg
		}
		if again[abs] {
			l.Note("source %s is given twice: its documents are read twice", arg)
			continue
		}
		again[abs] = true
		for dir := filepath.Dir(abs); len(dir) > 1 && dir != "."; dir = filepath.Dir(dir) {
			if seen[dir] {
				l.Note("source %s lies in %s, which is given too: its documents are read twice", arg, dir)
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
}
