package source

import (
	"path"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/zipfile"
)

// A member is a file of an archive.
type member struct {
	name       string
	folder     bool
	special    bool  // a link or a device
	link       bool  // symbolic or hard
	start, end int64 // its content, as offsets of the input
	next       int64 // where what follows it begins
}

// A memberLister finds the members of an archive, in order.
type memberLister interface {
	// next returns the member after the current one, at whose next offset the window stands, or
	// io.EOF.
	next(w *frame.Window) (member, error)
	// end skips the rest of the member, which may be damaged, and returns why the member cannot be
	// trusted, if so.
	end(w *frame.Window, m *member) error
}

// A memberFilter chooses among the members of an archive.
type memberFilter struct{ *glob.Filter }

// membersOf returns the filter of an archive. An include pattern that chose the archive itself does not choose among its
// members as well.
func (o *Options) membersOf(uri string) memberFilter {
	if ok, explicit := o.filter.Included([]string{path.Base(uri)}); ok && explicit {
		return memberFilter{&glob.Filter{Exclude: o.filter.Exclude}}
	}
	return memberFilter{&o.filter}
}

// inZip reports whether a member of a zip archive is unpacked.
func (f memberFilter) inZip(e *zipfile.Entry) bool {
	return !e.Folder && f.member(&member{name: e.Name}) == skip.Readable
}

// member reports why a member is skipped.
func (f memberFilter) member(m *member) skip.Kind {
	at := strings.Split(strings.Trim(path.Clean("/"+m.name), "/"), "/")
	switch {
	case m.link:
		return skip.Link
	case m.special:
		return skip.Special
	case f.Excluded(at, false):
		return skip.NotIncluded
	}
	if ok, explicit := f.Included(at); !ok {
		return skip.NotIncluded
	} else if explicit && !strings.HasPrefix(path.Base(m.name), ".") {
		return skip.Readable
	}
	return memberKind(m.name)
}

// memberKind returns why a member is skipped by its name alone.
func memberKind(name string) skip.Kind {
	for _, part := range strings.Split(path.Clean(name), "/") {
		if part != "" && part != "." && part != ".." && (skip.IsHidden(part) || part == "__MACOSX") {
			return skip.Hidden
		}
	}
	if skip.IsDescribing(path.Base(name)) {
		return skip.Describing
	}
	return skip.Readable
}

// cutOff is the error of an archive that ends within a member, if the window did not fail.
func cutOff(w *frame.Window, m *member) error {
	if err := w.Failed(); err != nil {
		return err
	}
	return fault.Of(cause.Truncated, "the archive ends within %s; copy the file again", m.name)
}
