package source

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote"
)

// beforeRow stands between the key of a remote file and its description. No name has it.
const beforeRow = "\x00\x00"

// maxLooked is how many files of one kind of name are looked at in a list of remote ones: each look
// is a request or two. The others are taken to be of the same format if all of these are.
const maxLooked = 16

// expandListed adds the object of an address, or all below the folder that it names, or those that
// match a glob.
func (s *Set) expandListed(ctx context.Context, arg string, look []byte) (many, hasText bool, err error) {
	if err := remote.CheckSigned(arg); err != nil {
		return false, false, remoteError(arg, -1, err)
	}
	store := s.remoteStore()
	if !isGlob(arg) && !strings.HasSuffix(arg, "/") {
		object, err := store.Describe(ctx, arg)
		if err == nil {
			hasText, err = s.add(remoteInput(object, store), look)
			return false, hasText, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, false, remoteError(arg, -1, err)
		}
	}
	w := walk{ctx: ctx, root: arg, filter: &s.filter, files: sorter{dir: s.opts.ScratchDir}}
	defer func() { err = errors.Join(err, w.Close()) }()
	listing := &remoteListing{set: s, walk: &w, arg: arg}
	if isGlob(arg) {
		if w.root, w.globs, err = globRoot(arg); err != nil {
			return true, false, fault.Of(cause.Usage, "pattern %s: %v", Redact(arg), err)
		}
		w.root += "/" // an empty name may come before the first one that is not a pattern's
		for _, elements := range w.globs {
			for i := range elements {
				elements[i] = listedName(elements[i])
			}
		}
	} else if err := listing.chooseDataset(ctx); err != nil {
		return true, false, remoteError(arg, -1, err)
	}
	if err := listing.list(ctx); err != nil {
		return true, false, remoteError(arg, -1, err)
	}
	hasText, err = listing.addAll(ctx, look)
	return true, hasText, err
}

// A remoteListing is the files that a folder or a glob of a remote store leads to.
type remoteListing struct {
	set    *Set
	walk   *walk
	arg    string
	splits splitChoice // of a dataset of the Hub
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
	err := l.set.remoteStore().List(ctx, w.root, func(name string, o remote.Object) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.seen++
		in := remoteInput(o, nil)
		w.row = in.appendRow(w.row[:0])
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
	marks := l.set.opts.Marks
	return marks != nil && strings.Contains(name, "/") &&
		(marks(path.Base(name), func() []byte { asked = true; return nil }) || asked)
}

// findBuilt finds the folders that hold datasets of dsload.
func (l *remoteListing) findBuilt(ctx context.Context) error {
	l.built = map[string]bool{}
	for _, o := range l.marks {
		var failed error
		if l.set.opts.Marks(path.Base(o.name), func() []byte {
			head := make([]byte, min(o.Size, maxMarkBytes))
			n, err := l.set.remoteStore().Head(ctx, o.Object, head)
			failed = err
			return head[:n]
		}) {
			elements := strings.Split(o.name, "/")
			for i := range elements {
				elements[i] = listedName(elements[i])
			}
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
func (l *remoteListing) isBuilt(key string) bool {
	if len(l.built) == 0 {
		return false
	}
	name := strings.ReplaceAll(key, "\x00", "/")
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		dir := name[:i]
		noted, ok := l.built[dir]
		if ok && !noted {
			l.walk.skipped.add(builtFolder, dir)
			l.built[dir] = true
		}
		if ok {
			return true
		}
	}
	return false
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
	return strings.ReplaceAll(element, "\x00", "\x01") // which ends a name in a walk's keys
}

// listed takes one file of a list in, as if its folders had been walked through.
func (w *walk) listed(key string) error {
	names := strings.Split(key, "/")
	if names[len(names)-1] == "" {
		if w.globs == nil {
			w.skipped.add(slashed, key)
		}
		return nil
	}
	parent := ""
	for i, folder := range names {
		folder = listedName(folder)
		key := w.child(parent, folder)
		at := splitKey(key)
		last := i == len(names)-1
		if w.filter.Excluded(at, !last) {
			w.skipped.add(notIncluded, folder)
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

// looked is what the first files of one kind of name were found to be.
type looked struct {
	n    int
	as   Input
	same bool
}

// addAll looks at the files of the list and adds them, in order.
func (l *remoteListing) addAll(ctx context.Context, look []byte) (hasText bool, err error) {
	s := l.set
	kinds := map[string]*looked{}
	added, last := 0, ""
	err = l.walk.files.each(func(entry []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		key, row, _ := bytes.Cut(entry, []byte(beforeRow))
		var in Input
		if err := in.parseRow(row); err != nil {
			return err
		}
		if in.URI == last {
			return nil // a list that changes while it is read may name an object twice
		}
		in.store, last = s.store, in.URI
		text, taken, err := l.take(&in, string(key), kinds, look)
		if err != nil || !taken {
			return err
		}
		added++
		hasText = hasText || text
		return s.append(in)
	})
	if err == nil && added == 0 {
		err = l.nothing()
	}
	if err != nil {
		return false, err
	}
	s.noteSkipped(l.arg, &l.walk.skipped)
	l.splits.tell(s, l.arg)
	if remote.HubOffline(l.arg) {
		s.note("%s: HF_HUB_OFFLINE is set: only files in the cache are read, %d here",
			l.arg, added)
	}
	return hasText, nil
}

// take looks at a file of the list, and reports whether it is one of the sources and whether it has text.
func (l *remoteListing) take(in *Input, key string, kinds map[string]*looked, look []byte) (text, taken bool,
	err error) {
	name, skipped := path.Base(in.URI), &l.walk.skipped
	if l.isBuilt(key) || l.splits.drops(key, name) {
		return false, false, nil
	}
	if l.set.prunes(in.URI) {
		skipped.add(otherFolder, name)
		return false, false, nil
	}
	if has, err := l.set.has(*in, look); err != nil || has {
		if has {
			skipped.add(knownFile, name)
		}
		return false, false, err
	}
	kind := kinds[nameKind(name)]
	if kind == nil {
		kind = &looked{same: true}
		kinds[nameKind(name)] = kind
	}
	text, what, err := in.detectLike(l.set, kind, look)
	if what != readable {
		skipped.add(what, name)
		return false, false, nil
	}
	return text, err == nil, err
}

// nothing returns the error of a list of which no file was added, nil where all are known already.
func (l *remoteListing) nothing() error {
	skipped := &l.walk.skipped
	switch {
	case skipped.counts[knownFile]+skipped.counts[otherFolder] > 0:
		return nil
	case l.config != "" && skipped.text(true) == "":
		return remoteError(l.arg, -1, &remote.Error{Kind: fs.ErrNotExist, Text: l.config,
			Hint: "name the files in the address"})
	}
	return l.walk.nothing(l.arg)
}

// nameKind returns the part of a name that says what kind a file is: its extensions.
func nameKind(name string) string {
	_, ext, _ := strings.Cut(name, extension(name))
	return extension(name) + ext
}

// detectLike is like detect, but does not look at a file if enough of its kind were looked at.
func (in *Input) detectLike(s *Set, kind *looked, look []byte) (hasText bool, what kind, err error) {
	if kind.same && kind.n >= maxLooked {
		like := kind.as
		like.URI, like.Size, like.ModTime, like.ETag, like.Revision, like.Hash = in.URI, in.Size, in.ModTime, in.ETag,
			in.Revision, in.Hash
		like.textBytes = estimate(like.Compression, in.Size)
		*in = like
		return in.Size > 0, readable, nil
	}
	hasText, what, err = in.detect(&s.opts, look)
	if err != nil || what != readable || in.Size == 0 {
		return hasText, what, err
	}
	if kind.n > 0 && (kind.as.Format != in.Format || kind.as.Compression != in.Compression ||
		kind.as.window != in.window) {
		kind.same = false
	}
	kind.n++
	kind.as = *in
	return hasText, what, err
}
