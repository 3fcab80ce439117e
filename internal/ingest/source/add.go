package source

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/skip"
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
func (a *adder) add(f *listing.File) (added listing.Added, err error) {
	s := a.set
	in := Input{File: *f, textBytes: -1}
	switch {
	case f.Stream != nil:
		in.once = newOnce(f.Stream)
	case f.Synth != nil:
		in.Format, in.textBytes = formatOf(f.Synth.Kind), f.Synth.TextBytes()
	}
	if s.prunes(in.URI) {
		return listing.Added{Skipped: skip.OtherFolder}, nil
	}
	if f.Listed && s.opts.Has != nil {
		if has, err := s.has(in, a.look); err != nil {
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
		hasText, added.Skipped, err = a.detectLike(&in)
	} else {
		hasText, added.Skipped, err = in.detect(o, a.look)
	}
	if err != nil || added.Skipped != skip.Readable {
		return added, err
	}
	a.hasText = a.hasText || hasText
	object := in.Object()
	added.Copied = in.Store != nil && in.readAtPlaces() && needsCopy(&object)
	s.keep(&in, a.look)
	return added, s.append(in)
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
		if most := s.opts.MetadataBytes; in.Format.isColumnar() && most > 0 && in.window > most {
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
	s.coded = s.coded || in.Synth == nil && (in.Compression != decompress.Plain || in.archive != "" || in.Format.Kind() != Texts)
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
		n.largest = max(n.largest, s.opts.windowBytes(in.framed()))
		n.decompressor = max(n.decompressor, in.readerBytes(&s.opts))
		if n.window < in.window && (!in.Format.isColumnar() || in.why != "") {
			n.window, n.why = in.window, in.why
			if in.why != "" {
				n.why = fmt.Sprintf("%s: %s", in.URI, in.why)
			}
		}
	}
	return s.list.add(in)
}
