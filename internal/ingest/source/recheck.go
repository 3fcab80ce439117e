package source

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/zeebo/xxh3"
)

// recheck compares what was read before a position with the inputs as they are now. An input whose
// size or modification time differs is read again as far as it was read before: one that was
// touched, or that changed after that place, is resumed. The input of the position is left to
// resume, the files of lists to compareList.
func (s *Set) recheck(at *Position) error {
	reading := len(at.Done)
	for i, was := range at.Known {
		then := Input{File: listing.File{URI: was.URI, Size: was.Size, ModTime: was.ModTime, ETag: was.ETag}}
		changed := then.compare(s.known[i])
		is := s.known[i]
		if err := otherFormat(&was, &is); err != nil && (i < reading || i == reading && at.Offset > 0) {
			return err
		}
		switch {
		case changed == nil, was.Files > 0, i > reading, i == reading && at.Offset == 0:
			continue
		case uris.IsRemote(was.URI): // nothing is fetched again to compare it
			return changed
		case was.Format == "": // an earlier version did not note it
			return changed
		case i == reading, s.cuts(s.lines[i].first): // what a range had of it was compared when it ended
			continue
		}
		now, err := s.Checksum(s.lines[i].first)
		if err != nil {
			return errors.Join(changed, err)
		}
		if now.Bytes != at.Done[i].Bytes || now.Sum != at.Done[i].Sum {
			return changed
		}
	}
	return nil
}

// otherFormat returns the error for an input that was read in another way than it would be now: its
// beginning changed, or another version recognizes it as something else.
func otherFormat(was, is *Stat) error {
	switch {
	case was.Format != "" && was.Format != is.Format:
		return cause.Changed(is.URI, "format", was.Format, is.Format)
	case was.Detection != is.Detection:
		return cause.Changed(is.URI, "detected formats", fmt.Sprint("those of rules ", was.Detection), is.Detection)
	}
	return nil
}

// Checksum reads an input to its end: how many bytes it holds after decompression, and the XXH3-128
// over them. It must be a file.
func (s *Set) Checksum(i int) (f Finished, err error) {
	in, err := s.Input(i)
	if err != nil {
		return f, err
	}
	return s.checksum(&in)
}

func (s *Set) checksum(in *Input) (f Finished, err error) {
	if in.Path == "" || in.once != nil {
		return f, fault.Of(cause.Usage, "%s: it cannot be read again", in.URI)
	}
	raw, err := openRaw(in, &s.opts)
	if err != nil {
		return f, cause.Unread(in.URI, err)
	}
	defer raw.Close()
	if in.Format.IsColumnar() {
		return tableChecksum(in, &s.opts, raw, max(s.needs.decompressor, in.window))
	}
	h := xxh3.New()
	buf := make([]byte, sniffBytes)
	if f.Bytes, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{raw}, buf); err != nil {
		return f, &cause.InputError{URI: in.URI, Offset: f.Bytes, Err: err}
	}
	f.Sum = checksum.Of(h)
	return f, raw.unchanged()
}

// compare reports how the list of inputs differs from that of an earlier run.
func (s *Set) compare(at *Position) error {
	const place = "place in the list of inputs"
	for i := range max(len(at.Known), len(s.known)) {
		number := fmt.Sprint("number ", i+1)
		switch {
		case i >= len(s.known):
			return cause.Changed(at.Known[i].URI, place, number, "missing")
		case i >= len(at.Known):
			return cause.Changed(s.known[i].URI, place, "missing", number)
		}
		switch was, is := at.Known[i], s.known[i]; {
		case was.URI != is.URI:
			return cause.Changed(was.URI, "place as "+number+" in the list of inputs", was.URI, is.URI)
		case was.Files != is.Files:
			return cause.Changed(is.URI, "number of files", was.Files, is.Files)
		case was.Names != is.Names:
			return &cause.ChangedError{URI: is.URI, What: "list of files"}
		}
	}
	return nil
}

// compareList compares the files of lists that an earlier run had read to their end.
func (s *Set) compareList(at *Position) error {
	for i := range s.lines {
		p := &s.lines[i]
		var seen checksum.Sum
		read := p.n
		switch {
		case p.Files == 0:
			continue
		case i < len(at.Done):
			seen = at.Done[i].Seen
		case at.List != nil && i == len(at.Done):
			seen, read = at.List.Seen, at.Input-p.first
		default:
			continue
		}
		var is checksum.Sum
		var newest Input
		for j := range read {
			in, err := s.list.at(p.first + j)
			if err != nil {
				return err
			}
			if is = chainStat(is, &in); in.ModTime.After(newest.ModTime) {
				newest = in
			}
		}
		if is != seen {
			return cause.Changed(p.URI, fmt.Sprintf("content: size or time of one of its first %d files", read), seen,
				fmt.Sprintf("%s, the newest of them being %s of %s", is, newest.URI, newest.ModTime.Format(time.RFC3339)))
		}
	}
	return nil
}

// tableChecksum reads all records of a file of columns.
func tableChecksum(in *Input, o *Options, raw *rawFile, planned int64) (f Finished, err error) {
	t, err := newTableFramer(in, o, raw, planned)
	if err != nil {
		return f, cause.Unread(in.URI, err)
	}
	defer t.rows.Close()
	var rec Record
	var data []byte
	for {
		rec = Record{Rows: 1}
		if data, err = t.next(data[:0], &rec); err == io.EOF {
			return Finished{Bytes: t.bytes, Sum: t.sum()}, raw.unchanged()
		}
		if err != nil {
			return f, cause.Unread(in.URI, err)
		}
	}
}
