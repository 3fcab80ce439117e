package source

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/zipfile"
)

// An archive, tar or zip, is one input. Its members are read in their order, each by the framer of
// its own format, from the same window: the window ends where the member does. Offsets count the
// bytes of the tar archive, or of the members of a zip archive one after another.
//
// Which members are read, and as what, is decided as in a folder: hidden files, files that describe
// the data and files without text are skipped and counted, and a folder gives the same documents
// as its archive does.

// An archiveFramer gives the records of an archive's members.
type archiveFramer struct {
	frame.Place
	w      *frame.Window
	o      *Options
	lister memberLister
	format Format // what every member is read as; Tar or Zip if each has its own
	filter memberFilter

	inner   framer // frames the member that is read, nil between two
	rows    int64  // what inner has skipped or given of it
	member  member
	kind    Format
	skipped skip.Counts
	listed  uint32 // members so far
}

func newArchive(in *Input, w *frame.Window, o *Options, raw *rawFile) (framer, error) {
	a := &archiveFramer{w: w, o: o, format: in.Format, filter: o.membersOf(in.URI), lister: &tarMembers{}}
	if in.archive == Zip {
		if raw.text == nil { // nothing was read
			if err := raw.open(); err != nil {
				return nil, err
			}
		}
		z := raw.text.(*zipfile.Reader)
		z.Separate = true
		a.lister = &zipMembers{z}
	}
	return a, nil
}

// zipMembers lists the members of a zip archive and opens them for the window.
type zipMembers struct{ z *zipfile.Reader }

func (z *zipMembers) next(w *frame.Window) (member, error) {
	e, err := z.z.Dir.Next()
	if err != nil {
		return member{}, err
	}
	m := member{name: e.Name, folder: e.Folder, start: w.Offset(), end: w.Offset()}
	if z.z.Wanted(&e) {
		m.end += e.Size
		w.Extend() // the end of the last member; reading reports what is wrong with this one
		if z.z.Begin(e) != nil && e.Size == 0 {
			m.end++
		}
	}
	if m.next = m.end; m.end < m.start {
		return m, zipfile.Corrupt("%s has an impossible size", e.Name)
	}
	return m, nil
}

// end implements memberLister.
func (z *zipMembers) end(w *frame.Window, m *member) error {
	if w.Skip(m.end) {
		return z.z.End()
	}
	err := w.Failed()
	w.Hash()
	w.MoveTo(m.end)
	return err
}

func (a *archiveFramer) next(dst []byte, rec *Record) ([]byte, error) {
	inside := a.Inside
	for {
		if a.inner == nil {
			if err := a.advance(); err != nil {
				return dst, a.lose(rec, inside, err)
			}
		}
		out, err := a.inner.next(dst, rec)
		at := a.inner.At()
		a.Row += at.Row - a.rows
		a.rows, a.Inside = at.Row, at.Inside
		if err == io.EOF {
			err = a.leave()
		}
		switch {
		case err != nil:
			return dst, a.lose(rec, inside, err)
		case a.inner == nil:
			continue
		}
		rec.Format, rec.Member = a.kind, a.member.name
		return out, nil
	}
}

// advance begins the next member that is read.
func (a *archiveFramer) advance() error {
	for {
		m, err := a.lister.next(a.w)
		if err != nil {
			return err
		}
		a.listed++
		if m.folder {
			continue
		}
		if why := a.filter.member(&m); why != skip.Readable {
			a.skipped.Add(why, path.Base(m.name))
			if err := a.skipTo(&m, m.next); err != nil {
				return err
			}
			continue
		}
		why, err := a.begin(m)
		if err != nil {
			return err
		}
		if why == skip.Readable {
			return nil
		}
		a.skipped.Add(why, path.Base(m.name))
		if err := a.leave(); err != nil {
			return err
		}
	}
}

// begin goes into a member, unless it is found to hold no text.
func (a *archiveFramer) begin(m member) (skip.Kind, error) {
	a.member, a.kind, a.rows = m, a.format, 0
	a.w.SetLimit(m.end)
	size := int(min(m.end-m.start, sniffBytes))
	a.w.Need(size)
	head := a.w.Unread()
	head = head[:min(len(head), size)]
	if len(head) < size {
		return skip.Readable, cutOff(a.w, &m)
	}
	given := a.format
	if given == Tar || given == Zip {
		given = Auto
	}
	compression, what, err := identify(m.name, head, given)
	switch {
	case what != skip.Readable:
		return what, nil
	case err != nil, compression != decompress.Plain, isTar(head):
		return skip.Archive, nil
	}
	if decompress.UTF16Order(head) != nil {
		return skip.UTF16, nil
	}
	text := bytes.TrimPrefix(head, []byte("\ufeff"))
	if checkText(text) != nil {
		if unmarkedUTF16(text) != "" {
			return skip.UTF16, nil
		}
		return skip.Binary, nil
	}
	if a.kind == Chat {
		a.kind = chatFormat(m.name, text, m.end-m.start <= sniffBytes)
	} else if a.kind == Tar || a.kind == Zip {
		a.kind = detectFormat(m.name, text, m.end-m.start <= sniffBytes, a.o.headerFields())
	}
	if a.o.Records != "" && a.o.Records != frame.TopRecords && (a.kind == JSONL || a.kind == Chat) {
		a.kind = JSON
	}
	a.w.Consume(len(head) - len(text)) // a byte order mark
	a.inner, err = newFramer(a.kind, a.w, &a.o.Framing)
	return skip.Readable, err
}

// leave goes to the end of the member.
func (a *archiveFramer) leave() error {
	m := a.member
	a.inner, a.Inside = nil, false
	a.w.SetLimit(frame.NoLimit)
	if err := a.lister.end(a.w, &m); err != nil {
		return err
	}
	a.member = member{}
	return a.skipTo(&m, m.next)
}

func (a *archiveFramer) skipTo(m *member, offset int64) error {
	if a.w.Skip(offset) {
		return nil
	}
	return cutOff(a.w, m)
}

// betweenMembers marks the state of a position after the end of a member; the rest of the state is
// the number of members so far.
const betweenMembers = 1 << 31

// seek goes to a position, reading the headers before it: they say which member it lies in. Losses
// on the way were reported before.
func (a *archiveFramer) seek(at *Position) error {
	between := at.State&betweenMembers != 0
	for !between || a.listed < at.State&^betweenMembers {
		err := a.advance()
		if err == nil && (between || at.Offset > a.member.end) {
			err = a.leave()
		} else if err == nil && a.w.Skip(at.Offset) {
			a.inner.At().Inside = at.Inside
			a.inner.Restore(at.State)
			return nil
		} else if err == nil {
			err = cutOff(a.w, &a.member)
		}
		if err == io.EOF {
			err = fault.Of(cause.Corrupt, "the archive has no member at byte %d", at.Offset)
		}
		if err != nil {
			var lost Record
			if err := a.lose(&lost, false, err); err != nil {
				return err
			}
		}
	}
	if !a.w.Skip(at.Offset) {
		return cutOff(a.w, &a.member)
	}
	return nil
}

func (a *archiveFramer) State() uint32 {
	if a.inner == nil && a.listed > 0 {
		return betweenMembers | a.listed
	}
	if a.inner == nil {
		return 0
	}
	return a.inner.State()
}

func (a *archiveFramer) Restore(uint32) {} // seek has done it

// left returns which members were skipped.
func (a *archiveFramer) left() *skip.Counts { return &a.skipped }

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
