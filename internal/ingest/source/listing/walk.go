package listing

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/skip"
)

// A walk lists the files of a folder, or those that match a glob, in bounded memory: it opens one
// folder at a time, keeps the folders it has still to see in a queue and the files in a sorter,
// both of which go to scratch files where they are long.
//
// A file's key is its path below the root, with a zero byte for each slash, so that keys sort as a
// walk from folder to folder goes. Of a glob the part that matched keeps its slashes: what it
// matches is sorted by the whole name, and a folder among it stands where its name does.
type walk struct {
	ctx     context.Context
	root    string
	globs   [][]string // the elements below root of a glob's alternatives; nil lists a folder
	filter  *glob.Filter
	out     fs.FileInfo                                    // the folder that is never a source, or nil
	built   func(dir string) (owns func(name string) bool) // Options.Built
	owns    func(name string) bool                         // what it returned for root
	files   scratch.Sorter
	todo    scratch.Queue
	skipped skip.Counts
	splits  splitCounts                 // the files that are read
	twice   []string                    // those of them that are packed and follow what is in them
	passed  func(uri string, err error) // Options.Passed
	row     []byte                      // describes the remote file that is listed; nil for local ones
}

const inFolder = "\x00" // ends the key of a folder that a glob matched: all below it is wanted

// run fills the sorter.
func (w *walk) run() error {
	if err := w.todo.Push(""); err != nil {
		return err
	}
	for {
		key, ok, err := w.todo.Pop()
		if err != nil || !ok {
			return err
		}
		if err := w.folder(key); err != nil {
			return err
		}
	}
}

// failed is the end of a list that a file or folder cannot be listed in, unless that is passed over.
func (w *walk) failed(path string, err error) error {
	if w.passed == nil {
		return err
	}
	w.passed(path, err)
	return nil
}

// path returns where the file or folder of a key lies.
func (w *walk) path(key string) string {
	return filepath.Join(w.root, filepath.FromSlash(strings.ReplaceAll(key, "\x00", "/")))
}

// splitKey splits a key into the names of folders and file.
func splitKey(key string) []string {
	return strings.FieldsFunc(key, func(r rune) bool { return r == 0 || r == '/' })
}

// wholly reports whether everything below a folder is wanted, and not what matches a glob.
func (w *walk) wholly(key string) bool { return w.globs == nil || strings.Contains(key, "\x00") }

func (w *walk) child(key, name string) string {
	switch {
	case key == "":
		return name
	case w.wholly(key):
		return strings.TrimSuffix(key, inFolder) + "\x00" + name
	}
	return key + "/" + name
}

// folder lists one folder, some entries at a time.
func (w *walk) folder(key string) error {
	path := w.path(key)
	if key == "" {
		w.owns = w.owned(path)
	}
	dir, err := os.Open(path)
	if err != nil {
		return w.failed(path, cause.Unread(path, cause.OfPath(err)))
	}
	defer dir.Close()
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if err := w.entry(key, e); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return w.failed(path, cause.Unread(path, cause.OfPath(err)))
		}
	}
}

func (w *walk) entry(parent string, e fs.DirEntry) error {
	key := w.child(parent, e.Name())
	at := splitKey(key)
	mode := e.Type()
	linked := mode&fs.ModeSymlink != 0
	if linked {
		info, err := os.Stat(w.path(key))
		switch {
		case err == nil:
			mode = info.Mode().Type()
		case w.filter.Excluded(at, false) || skip.IsHidden(e.Name()):
			return nil
		default:
			return w.failed(w.path(key), cause.Unread(w.path(key), fault.Of(fs.ErrInvalid,
				"a link that leads nowhere: %v; fix or remove it, or leave it out with {exclude}", cause.OfPath(err))))
		}
	}
	if w.filter.Excluded(at, mode.IsDir()) {
		w.skipped.Add(skip.NotIncluded, e.Name())
		return nil
	}
	if mode.IsDir() {
		return w.subfolder(parent, key, at, linked)
	}
	return w.choose(parent, key, at, mode)
}

// choose takes a file into the list if the patterns want it, or counts why not.
func (w *walk) choose(parent, key string, at []string, mode fs.FileMode) error {
	// explicit is set if a pattern restricts the name.
	wanted, explicit := w.filter.Included(at)
	if !w.wholly(parent) && wanted {
		matches := false
		for _, elements := range w.globs {
			if glob.MatchElements(elements, at, false) {
				matches, explicit = true, explicit || glob.Restricts(elements[len(elements)-1])
			}
		}
		if !matches {
			return nil
		}
	}
	name := at[len(at)-1]
	switch {
	case !wanted:
		w.skipped.Add(skip.NotIncluded, name)
	case len(at) == 1 && w.owns != nil && w.owns(name):
		w.skipped.Add(skip.BuiltFile, name)
	case skip.IsHidden(name) && !explicit:
		w.skipped.Add(skip.Hidden, name)
	case skip.IsDescribing(name) && !explicit:
		w.skipped.Add(skip.Describing, name)
	case !mode.IsRegular():
		w.skipped.Add(skip.Special, name)
	case w.row != nil:
		return w.files.Add(slices.Concat([]byte(key), []byte(beforeRow), w.row))
	default:
		return w.files.Add([]byte(key))
	}
	return nil
}

func (w *walk) subfolder(parent, key string, at []string, linked bool) error {
	if w.out != nil {
		if info, err := os.Stat(w.path(key)); err == nil && os.SameFile(info, w.out) {
			w.skipped.Add(skip.OutputFolder, at[len(at)-1])
			return nil
		}
	}
	next, ok := w.enters(parent, key, at, linked)
	switch {
	case !ok:
		return nil
	case w.owned(w.path(key)) != nil:
		w.skipped.Add(skip.BuiltFolder, strings.Join(at, "/"))
		if w.passed != nil {
			w.passed(w.path(key), nil)
		}
		return nil
	}
	return w.todo.Push(next)
}

// enters reports whether something below a folder may be wanted, and the key to list it by.
func (w *walk) enters(parent, key string, at []string, linked bool) (next string, ok bool) {
	name := at[len(at)-1]
	if w.wholly(parent) {
		switch {
		case skip.IsHidden(name) && !w.filter.MayInclude(at):
			w.skipped.Add(skip.Hidden, name)
		case linked:
			w.skipped.Add(skip.LinkedFolder, name)
		default:
			return key, true
		}
		return "", false
	}
	for _, elements := range w.globs {
		deep := slices.Index(elements, "**")
		if deep < 0 && glob.MatchElements(elements, at, false) {
			return key + inFolder, true
		}
		if glob.MatchElements(elements, at, true) && (!linked || deep < 0 || len(at) <= deep) {
			return key, true
		}
	}
	return "", false
}

// Close releases the scratch files.
func (w *walk) Close() error { return errors.Join(w.files.Close(), w.todo.Close()) }

// owned returns which files of a folder belong to a dataset that dsload built, nil if it holds none.
func (w *walk) owned(path string) func(name string) bool {
	if w.built == nil {
		return nil
	}
	return w.built(path)
}

// walked adds the files that a walk finds, in order. Those that Options.Add finds to hold no text are skipped.
func (l *Lister) walked(arg string, w *walk) error {
	if err := w.run(); err != nil {
		if w.globs != nil && errors.Is(err, fs.ErrNotExist) && w.files.Len() == 0 {
			return cause.Unread(arg, errNoMatch)
		}
		return err
	}
	added, last, again := 0, "", "" // an earlier pattern that matches one of them
	err := w.files.Each(func(key []byte) error {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		name := w.path(string(key))
		info, err := os.Stat(name)
		if err != nil {
			return w.failed(name, cause.Unread(name, cause.OfPath(err)))
		}
		f := localFile(name, info)
		f.Listed = true
		is, err := l.Add(f)
		if is.Skipped != skip.Readable {
			w.skipped.Add(is.Skipped, filepath.Base(name))
			return nil
		}
		added++
		below := strings.ReplaceAll(string(key), "\x00", "/")
		if w.splits.count(below); packs(below, last) {
			w.twice = append(w.twice[:min(len(w.twice), 1)], below)
		}
		last = below
		if w.globs != nil && again == "" {
			if again = matching(name, l.patterns); again != "" {
				l.Note("source %s matches %s, as %s does, which is given too: what both match is read twice", arg, name, again)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	unmatched := w.globs != nil && w.files.Len() == 0 && w.skipped.Text(true) == ""
	if added == 0 && w.skipped.Unneeded() == 0 && (w.passed == nil || unmatched) {
		return l.nothing(arg, w)
	}
	l.noteWalk(arg, w)
	return nil
}

// noteWalk notes what was skipped in a folder or a glob, and that what is for testing was not.
func (l *Lister) noteWalk(arg string, w *walk) {
	switch text := w.skipped.Text(false); {
	case w.skipped.ReadIfNamed():
		l.Note("%s: skipped %s; name a file explicitly to read it", arg, text)
	case text != "":
		l.Note("%s: skipped %s", arg, text)
	}
	if len(w.twice) > 0 {
		l.Note("%s: %s is read, and what it was unpacked to, too; leave one of them out with {exclude}", arg,
			strings.Join(w.twice, ", like others up to "))
	}
	w.splits.note(l, arg+": all splits for which its files are named")
}

// packs reports whether a file is packed, by its name, and the one before it in the list is what it was unpacked to.
func packs(name, before string) bool {
	for {
		ext := path.Ext(name)
		if !slices.Contains([]string{".gz", ".zst", ".bz2", ".xz", ".lz4", ".zip", ".tar", ".tgz"}, strings.ToLower(ext)) {
			return false
		}
		if name = strings.TrimSuffix(name, ext); before == name || strings.HasPrefix(before, name+"/") {
			return true
		}
	}
}

var errNoMatch = fault.Of(fs.ErrNotExist, "no file matches the pattern")

// nothing is the error of a walk that found no file to read.
func (l *Lister) nothing(arg string, w *walk) error {
	skipped := w.skipped.Text(true)
	switch {
	case skipped != "":
		e := cause.Unread(arg, fault.Of(cause.NothingToRead, "no file to read: skipped %s", skipped))
		e.Hint = "pass text files"
		if l.Format != "" {
			e.Hint = "pass " + l.Format + " files, or let their format be found"
		}
		return e
	case w.globs != nil:
		return cause.Unread(arg, errNoMatch)
	}
	return cause.Unread(arg, fault.Of(cause.NothingToRead, "the folder holds no files to read"))
}

// globRoot splits a glob into the folder that its first names spell out and the elements below it, for
// each choice among its braces.
func globRoot(arg string) (root string, globs [][]string, err error) {
	arg = filepath.ToSlash(arg)
	elements := strings.Split(arg, "/")
	fixed := slices.IndexFunc(elements, func(p string) bool { return strings.ContainsAny(p, "*?[{") })
	if fixed < 0 {
		fixed = len(elements) - 1
	}
	root = strings.Join(elements[:fixed], "/")
	switch {
	case root == "" && strings.HasPrefix(arg, "/"):
		root = "/"
	case root == "":
		root = "."
	}
	globs, err = glob.Alternatives(strings.Join(elements[fixed:], "/"))
	return filepath.FromSlash(root), globs, err
}

// beforeRow stands between the key of a remote file and its description. No name has it.
const beforeRow = "\x00\x00"
