package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/synth"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/units"
)

// ErrNothingNew is the cause where Options.Has knows every file of the arguments.
var ErrNothingNew = errors.New("nothing new to read")

// An adder adds the files of one argument to a set.
type adder struct {
	set     *Set
	look    []byte             // a buffer for detection
	looked  map[string]*looked // files of a list of remote ones, by the kind of their names
	hasText bool               // a file was added that may hold a document
}

// add looks at a file and adds it, or says why it is skipped.
func (a *adder) add(f *listing.File) (listing.Added, error) {
	in := Input{File: *f, textBytes: -1}
	added, err := a.addInput(f, &in)
	each := a.set.opts.Each
	if each == nil || errors.Is(err, context.Canceled) {
		return added, err
	}
	if ended := each(a.set, &in, added.Skipped, err); ended != nil {
		return listing.Added{}, ended
	}
	if err != nil && added.Skipped == skip.Readable {
		added.Skipped = skip.OtherFolder // what is noted apart
	}
	return added, nil
}

// addInput is add for the input that the file is.
func (a *adder) addInput(f *listing.File, in *Input) (added listing.Added, err error) {
	s := a.set
	switch {
	case f.Stream != nil:
		in.once = &singleUse{reader: bufio.NewReaderSize(f.Stream, sniffBytes)}
	case f.Synth != nil:
		if in.Format, in.textBytes = WikiText, f.Synth.TextBytes(); f.Synth.Kind == synth.Recipe {
			in.Format = Recipes
		}
	}
	if _, drops := s.opts.judge(in.URI); drops {
		s.pruned.Add(in.URI)
		return listing.Added{Skipped: skip.OtherFolder}, nil
	}
	if f.Listed && s.opts.Has != nil {
		if has, err := s.has(*in, a.look); err != nil {
			return added, err
		} else if has {
			return listing.Added{Skipped: skip.Known}, nil
		}
	}
	o := &s.opts
	if f.Saved {
		arrow := *o
		arrow.Format = Arrow
		o = &arrow
	}
	var hasText bool
	if f.Listed && f.Store != nil {
		hasText, added.Skipped, err = a.detectLike(in)
	} else {
		hasText, added.Skipped, err = in.detect(o, a.look)
	}
	if err != nil || added.Skipped != skip.Readable {
		return added, err
	}
	a.hasText = a.hasText || hasText
	s.chooses = s.chooses || in.archive != "" || in.Compression == decompress.Zipped
	atPlaces, object := in.Format.IsColumnar() || in.Compression == decompress.Zipped, in.Object()
	added.Copied = in.Store != nil && atPlaces && needsCopy(&object)
	s.keep(in, a.look)
	return added, s.append(*in)
}

// has reports whether Options.Has knows an input of a folder or a glob.
func (s *Set) has(in Input, look []byte) (bool, error) {
	return s.opts.Has(Stat{URI: in.URI, Size: in.Size, ModTime: in.ModTime, ETag: in.ETag}, func() (string, error) {
		if in.Path == "" { // nothing is fetched again to compare it
			return "", nil
		}
		if _, _, err := in.detect(&s.opts, look); err != nil {
			return "", err
		}
		if most := s.opts.MetadataBytes; in.Format.IsColumnar() && most > 0 && in.window > most {
			return "", nil // the plan for the memory refuses it
		}
		f, err := s.checksum(&in)
		return f.Sum.Tagged(), err
	})
}

// maxLooked is how many files of one kind of name are looked at in a list of remote ones: each look
// is a request or two. The others are taken to be of the same format if all of these are.
const maxLooked = 16

// looked is what the first files of one kind of name were found to be.
type looked struct {
	n    int
	as   Input
	same bool
}

// detectLike is like detect, but does not look at a file if enough of its kind were looked at.
func (a *adder) detectLike(in *Input) (hasText bool, what skip.Kind, err error) {
	name := path.Base(in.URI)
	_, rest, _ := strings.Cut(name, extension(name))
	kind := a.looked[extension(name)+rest]
	if kind == nil {
		kind = &looked{same: true}
		a.looked[extension(name)+rest] = kind
	}
	if kind.same && kind.n >= maxLooked {
		like := kind.as
		like.File, like.textBytes = in.File, estimate(like.Compression, in.Size)
		*in = like
		return in.Size > 0, skip.Readable, nil
	}
	hasText, what, err = in.detect(&a.set.opts, a.look)
	if err != nil || what != skip.Readable || in.Size == 0 {
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

// append adds an input, and notes what reading it takes.
func (s *Set) append(in Input) error {
	if in.textBytes >= 0 {
		s.textBytes += in.textBytes
	} else {
		s.unknown = true
	}
	s.formats[in.Format]++
	s.coded = s.coded || in.Synth == nil &&
		(in.Compression != decompress.Plain || in.archive != "" || in.Format.Kind() != Texts)
	s.noteRecords(&in)
	if s.opts.Conditions != nil {
		s.schema.add(&s.opts, &in)
		in.columns = nil
	}
	if in.Size < 0 || s.total < 0 {
		s.total = -1
	} else {
		s.total += in.Size
	}
	n := &s.needs
	if in.Synth != nil {
		n.generated = true
	} else {
		n.remote = n.remote || in.Store != nil
		n.once = n.once || in.once != nil
		n.streams = n.streams || in.isStream() && (s.list.len() > 0 || in.hasFrames(&s.opts))
		n.columns = n.columns || in.Format.IsColumnar()
		n.largest = max(n.largest, in.framed().windowBytes(&s.opts.Framing))
		n.decompressor = max(n.decompressor, in.readerBytes(&s.opts))
		if n.window < in.window && (!in.Format.IsColumnar() || in.why != "") {
			n.window, n.why = in.window, in.why
			if in.why != "" {
				n.why = fmt.Sprintf("%s: %s", in.URI, in.why)
			}
		}
	}
	return s.list.add(in)
}

// Open expands the arguments and looks at every input: does it exist, how large is it, how is it
// compressed, what is its format. Folders give their files in the order of their names. Of folders
// and globs, files that hold no text or that describe data rather than hold it are skipped, and
// Notes describes them.
//
// Errors: ErrNothingNew; *cause.InputError with fs.ErrNotExist, cause.Binary, cause.Unsupported, …; cause.Usage;
// cause.NoDocuments where everything is empty.
func Open(ctx context.Context, o Options) (_ *Set, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.filter, err = glob.NewFilter(o.Include, o.Exclude); err != nil {
		return nil, err
	}
	s := &Set{opts: o, formats: map[Format]int{}, list: inputList{dir: o.ScratchDir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if o.Only != nil {
		return s, s.openRange(o.Only)
	}
	a := adder{set: s, look: make([]byte, 2*sniffBytes)}
	lister := s.lister(a.add)
	for i, arg := range o.Args { // all are looked at before the first is read
		if err := lister.Check(arg, o.Args[:i]); err != nil {
			return nil, err
		}
	}
	spans := make([]inputSpan, 0, len(o.Args))
	for _, arg := range o.Args {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first := s.list.len()
		a.looked = map[string]*looked{}
		many, err := lister.List(ctx, arg)
		if err != nil {
			if column := (*ColumnError)(nil); errors.As(err, &column) {
				column.Later = s.list.len() > 0
			}
			return nil, err
		}
		s.chooses = s.chooses || many
		spans = append(spans, inputSpan{uri: uris.OfFile(uris.Redact(arg)), first: first, n: s.list.len() - first,
			many: many})
	}
	if s.list.len() == 0 && o.Has != nil {
		return nil, ErrNothingNew
	}
	if err := s.notePruned(); err != nil {
		return nil, err
	}
	s.noteFound()
	if err := s.makeLines(spans); err != nil {
		return nil, err
	}
	lister.NoteAnswers()
	lister.GivenTwice(o.Args)
	if !a.hasText && o.Each == nil {
		return nil, s.noDocuments(nil)
	}
	return s, nil
}

// lister returns what lists the set's arguments, and gives what it finds to add.
func (s *Set) lister(add func(*listing.File) (listing.Added, error)) *listing.Lister {
	l := &listing.Lister{Options: s.opts.Places, Filter: &s.opts.filter, Store: s.remoteStore, HeadBytes: sniffBytes, Add: add,
		Note: s.note}
	if s.opts.Format != Auto {
		l.Format = string(s.opts.Format)
	}
	return l
}

// notePruned adds a note on the files that were left out, or returns an error if none is left.
func (s *Set) notePruned() error {
	p := &s.pruned
	if p.N == 0 {
		return nil
	}
	which := uris.Redact(p.First)
	if p.N > 1 {
		which += ", …"
	}
	left := units.Plural(p.N, "file")
	if s.list.len() == 0 {
		return fault.Of(cause.NothingToRead, "no document is left: {where} leaves out %s unread, by the names of folders (%s)",
			left, which)
	}
	s.note("{where} leaves out %s unread, by the names of folders (%s)", left, which)
	return nil
}

// noteRecords counts an input whose records were found below a key, that has no line ends, or that another format's
// name hides.
func (s *Set) noteRecords(in *Input) {
	if _, named := namedKinds[strings.ToLower(path.Ext(in.URI))]; named && in.Compression == decompress.Plain &&
		(in.Format == Text || in.Format == Document) {
		s.misnamed.Add(in.URI)
	}
	if in.oneLine {
		s.oneLine.Add(in.URI)
	}
	if in.Records == "" || s.opts.Records != "" || s.only != nil {
		return
	}
	if s.below == nil {
		s.below = map[string]*skip.Sample{}
	}
	if s.below[in.Records] == nil {
		s.below[in.Records] = &skip.Sample{}
	}
	s.below[in.Records].Add(in.URI)
}

// noteFound adds notes on where records were found.
func (s *Set) noteFound() {
	if n := s.oneLine.N; n > 0 {
		s.note("read as one line each, since only carriage returns end their lines: %s, such as %s; convert them with "+
			"`tr '\\r' '\\n'`", units.Plural(n, "input"), s.oneLine.First)
	}
	if n := s.misnamed.N; n > 0 {
		s.note("read as text, since they are that, whatever their names say: %s, such as %s; where a download failed, it is "+
			"the server's message: look into it, and copy the file again", units.Plural(n, "input"), s.misnamed.First)
	}
	for _, path := range slices.Sorted(maps.Keys(s.below)) {
		b := s.below[path]
		which := b.First
		if b.N > 1 {
			which = fmt.Sprintf("%d files (%s, …)", b.N, b.First)
		}
		s.note("the records of %s are read from the array below the key %q, as with {records} %s", which, path, path)
	}
}

// keep keeps an input that is about to be added if look holds all of it and Options.KeepBytes allows it.
func (s *Set) keep(in *Input, look []byte) {
	k := &s.kept
	if !in.IsPlainFile() || in.sniffed == 0 || in.sniffed != in.Size || k.bytes+in.Size > s.opts.KeepBytes {
		return
	}
	if k.files == nil {
		k.files = map[int][]byte{}
	}
	k.files[s.list.len()] = bytes.Clone(look[:in.Size])
	k.bytes += in.Size
}
