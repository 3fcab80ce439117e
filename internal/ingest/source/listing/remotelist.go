package listing

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/remote"
)

// store adds the object of an address, or all below the folder that it names, or those that
// match a glob.
func (l *Lister) store(ctx context.Context, arg string) (many bool, err error) {
	if err := remote.CheckSigned(arg); err != nil {
		return false, Cause(arg, -1, err)
	}
	store := l.Store()
	if !isGlob(arg) && !strings.HasSuffix(arg, "/") {
		object, err := store.Describe(ctx, arg)
		if err == nil {
			_, err = l.Add(remoteFile(object, store))
			return false, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, Cause(arg, -1, err)
		}
	}
	w := walk{ctx: ctx, root: arg, filter: l.Filter, files: scratch.Sorter{Dir: l.ScratchDir}, passed: l.Passed}
	defer func() { err = errors.Join(err, w.Close()) }()
	listing := &remoteListing{Lister: l, walk: &w, arg: arg}
	if isGlob(arg) {
		if w.root, w.globs, err = globRoot(arg); err != nil {
			return true, fault.Of(cause.Usage, "pattern %s: %v", uris.Redact(arg), err)
		}
		w.root += "/" // an empty name may come before the first one that is not a pattern's
		for _, elements := range w.globs {
			listNames(elements)
		}
	} else if err := listing.chooseDataset(ctx); err != nil {
		return true, Cause(arg, -1, err)
	}
	if err := listing.list(ctx); err != nil {
		return true, Cause(arg, -1, err)
	}
	return true, listing.addAll(ctx)
}

// A remoteListing is the files that a folder or a glob of a remote store leads to.
type remoteListing struct {
	*Lister
	walk   *walk
	arg    string
	splits splitChoice // chooses among the files of a dataset of the Hub
	config string      // what to say if no file matches the patterns of its README.md
	seen   int
	marks  []listedObject  // files that may show that their folder holds a dataset of dsload
	built  map[string]bool // such folders, below the root; true once one of their files was left out
}

// A listedObject is an object and its name below the root of a listing.
type listedObject struct {
	name string
	remote.Object
}

// maxMarks bounds the files of a listing that are looked at for what their folders hold.
const maxMarks = 10_000

// list fills the sorter of the walk.
func (l *remoteListing) list(ctx context.Context) error {
	w := l.walk
	err := l.Store().List(ctx, w.root, func(name string, o remote.Object) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.seen++
		w.row = remoteFile(o, nil).AppendRow(w.row[:0])
		l.splits.count(name)
		if l.mayMark(name) && len(l.marks) < maxMarks {
			l.marks = append(l.marks, listedObject{name, o})
		}
		return w.listed(name)
	})
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case l.seen == 0:
		return &remote.Error{Kind: fs.ErrNotExist, Text: "there is nothing of this name", Hint: "check the address"}
	}
	return l.findBuilt(ctx)
}

// mayMark reports whether Options.Marks may recognise a folder by a file of this name.
func (l *remoteListing) mayMark(name string) bool {
	asked := false
	marks := l.Marks
	return marks != nil && strings.Contains(name, "/") &&
		(marks(path.Base(name), func() []byte { asked = true; return nil }) || asked)
}

// findBuilt finds the folders that hold datasets of dsload.
func (l *remoteListing) findBuilt(ctx context.Context) error {
	l.built = map[string]bool{}
	for _, o := range l.marks {
		var failed error
		if l.Marks(path.Base(o.name), func() []byte {
			head := make([]byte, min(o.Size, maxMarkBytes))
			n, err := l.Store().Head(ctx, o.Object, head)
			failed = err
			return head[:n]
		}) {
			elements := strings.Split(o.name, "/")
			listNames(elements)
			l.built[strings.Join(elements[:len(elements)-1], "/")] = false
		}
		if failed != nil {
			return failed
		}
	}
	l.marks = nil
	return nil
}

// maxMarkBytes is how much of a file Options.Marks sees.
const maxMarkBytes = 64

// isBuilt reports whether a file lies below a folder that holds a dataset of dsload, and counts the folder.
func (l *remoteListing) inBuilt(key string) bool {
	if len(l.built) == 0 {
		return false
	}
	name := strings.ReplaceAll(key, "\x00", "/")
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		dir := name[:i]
		noted, ok := l.built[dir]
		if ok && !noted {
			l.walk.skipped.Add(skip.BuiltFolder, dir)
			if l.Passed != nil {
				l.Passed(strings.TrimSuffix(l.arg, "/")+"/"+dir, nil)
			}
			l.built[dir] = true
		}
		if ok {
			return true
		}
	}
	return false
}

// listNames replaces elements of a key by their names in a walk.
func listNames(elements []string) {
	for i := range elements {
		elements[i] = listedName(elements[i])
	}
}

// listedName returns the name in a walk of an element of a key. To a store, "", "." and ".." are
// names like any other; on a disk they are none, so in a walk control characters stand for them.
func listedName(element string) string {
	switch element {
	case "":
		return "\x01"
	case ".":
		return "\x02"
	case "..":
		return "\x03"
	}
	return strings.ReplaceAll(element, "\x00", "\x01") // a zero byte ends a name in a walk's keys
}

// listed takes one file of a list in, as if its folders had been walked through.
func (w *walk) listed(key string) error {
	names := strings.Split(key, "/")
	if names[len(names)-1] == "" {
		if w.globs == nil {
			w.skipped.Add(skip.Slashed, key)
		}
		return nil
	}
	parent := ""
	listNames(names)
	for i, folder := range names {
		key := w.child(parent, folder)
		at := splitKey(key)
		last := i == len(names)-1
		if w.filter.Excluded(at, !last) {
			w.skipped.Add(skip.NotIncluded, folder)
			return nil
		}
		if last {
			return w.choose(parent, key, at, 0)
		}
		next, ok := w.enters(parent, key, at, false)
		if !ok {
			return nil
		}
		parent = next
	}
	return nil
}

// addAll adds the files of the list, in order.
func (l *remoteListing) addAll(ctx context.Context) error {
	added, last, store := 0, "", l.Store()
	err := l.walk.files.Each(func(entry []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		key, row, _ := bytes.Cut(entry, []byte(beforeRow))
		f := File{Store: store, Listed: true}
		if err := f.ParseRow(row); err != nil {
			return err
		}
		if f.URI == last {
			return nil // a list that changes while it is read may name an object twice
		}
		last = f.URI
		name := path.Base(f.URI)
		if l.inBuilt(string(key)) || l.splits.drops(string(key), name) {
			return nil
		}
		is, err := l.Add(&f)
		if is.Skipped != skip.Readable {
			l.walk.skipped.Add(is.Skipped, name)
			return nil
		}
		added++
		l.walk.splits.count(strings.ReplaceAll(string(key), "\x00", "/"))
		return err
	})
	if err == nil && added == 0 {
		err = l.unlisted()
	}
	if err != nil {
		return err
	}
	l.noteWalk(l.arg, l.walk)
	l.splits.addNotes(l.Lister, l.arg)
	if remote.HubOffline(l.arg) {
		l.Note("%s: HF_HUB_OFFLINE is set: only files in the cache are read, %d here", l.arg, added)
	}
	return nil
}

// unlisted returns the error of a list of which no file was added, nil where all are known already.
func (l *remoteListing) unlisted() error {
	skipped := &l.walk.skipped
	switch {
	case skipped.Unneeded() > 0, l.Passed != nil:
		return nil
	case l.config != "" && skipped.Text(true) == "":
		return Cause(l.arg, -1, &remote.Error{Kind: fs.ErrNotExist, Text: l.config,
			Hint: "name the files in the address"})
	}
	return l.nothing(l.arg, l.walk)
}
