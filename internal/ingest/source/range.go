package source

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/units"
)

// PlanInput describes the i-th input for a plan.
func (s *Set) PlanInput(i int) (Listed, error) {
	in, err := s.list.at(i)
	if err != nil {
		return Listed{}, err
	}
	if in.once != nil {
		return Listed{}, fault.Of(cause.Usage, "source %s: it can be read only once, and the partitions of a build read "+
			"for themselves; write it to a file first", in.URI)
	}
	l := Listed{URI: in.URI, Bytes: in.Size, Format: in.Format, Compression: in.Compression, Window: in.window,
		TextBytes: in.textBytes, Archive: in.archive, Records: in.Records}
	if in.Store != nil {
		l.ETag, l.Modified, l.Revision, l.Hash = in.ETag, in.ModTime, in.Revision, in.Hash
	}
	return l, nil
}

// openRange makes the set of a range. Nothing is looked at but whether the files are there and have
// the size that they had.
func (s *Set) openRange(r *Range) error {
	s.only = r
	for i := range r.Inputs {
		l := &r.Inputs[i]
		in := Input{File: listing.File{URI: l.URI, Size: l.Bytes}, Format: l.Format, Compression: l.Compression,
			window: l.Window, textBytes: l.TextBytes, archive: l.Archive, Records: l.Records}
		if uris.IsRemote(l.URI) {
			in.Store, in.ETag, in.ModTime = s.remoteStore(), l.ETag, l.Modified
			in.Revision, in.Hash = l.Revision, l.Hash
		} else if strings.HasPrefix(l.URI, "synth://") {
			spec, err := listing.Generated(l.URI)
			if err != nil {
				return err
			}
			in.Synth = spec
		} else {
			in.Path = uris.Path(l.URI)
			info, err := os.Stat(in.Path)
			if errors.Is(err, fs.ErrNotExist) {
				return &cause.ChangedError{URI: l.URI, What: cause.Existence, Planned: true}
			}
			if err != nil {
				return cause.Unread(l.URI, cause.OfPath(err))
			}
			in.ModTime = info.ModTime().UTC()
			if info.Size() != l.Bytes {
				return &cause.ChangedError{URI: l.URI, What: "size", Was: units.Bytes(l.Bytes),
					Is: units.Bytes(info.Size()), Planned: true}
			}
		}
		if err := s.append(in); err != nil {
			return err
		}
	}
	spans := make([]inputSpan, len(r.Inputs))
	for i := range spans {
		spans[i] = inputSpan{uri: r.Inputs[i].URI, first: i, n: 1}
	}
	if s.total >= 0 { // progress does not count what the range leaves out of its first and last input
		s.total -= r.From.Offset
		if last := len(r.Inputs) - 1; last >= 0 && r.To.Offset > 0 {
			s.total -= max(0, r.Inputs[last].Bytes-r.To.Offset)
		}
	}
	return s.makeLines(spans)
}

// begin returns the position at which a range begins.
func (s *Set) begin() Position {
	if s.only == nil {
		return Position{}
	}
	f := &s.only.From
	return Position{Offset: f.Offset, Row: f.Row, Ordinal: f.Ordinal, State: f.State}
}

// origin returns the offset at which reading of an input begins.
func (s *Set) origin(input int) int64 {
	if s.only == nil || input > 0 {
		return 0
	}
	return s.only.From.Offset
}

// cuts reports whether the range has a part of an input only.
func (s *Set) cuts(input int) bool {
	return s.origin(input) > 0 || s.only != nil && s.only.To.Offset > 0 && input == len(s.only.Inputs)-1
}

// rangeEnded reports whether the open input is read up to where the range ends in it.
func (r *Reader) rangeEnded() bool {
	only, s := r.set.only, r.open
	if only == nil || only.To.Offset == 0 || r.at.Input != len(only.Inputs)-1 || s.place.Inside {
		return false
	}
	if r.in.Format.IsColumnar() {
		return s.place.Row >= only.To.Row
	}
	offset, _ := s.input.border()
	return offset >= only.To.Offset
}

// checkRange compares what was read of an input with what the plan saw.
func (r *Reader) checkRange(sum checksum.Sum) error {
	if r.set.only == nil {
		return nil
	}
	want := r.set.only.Inputs[r.at.Input].Sum
	if want.IsZero() || want == sum {
		return nil
	}
	return &cause.ChangedError{URI: r.in.URI, What: "content", Was: "checksum " + want.String(),
		Is: sum.String(), Planned: true}
}

// checkTail compares the end of a file of columns with what the plan saw.
func (r *Reader) checkTail(raw *rawFile) error {
	if r.set.only == nil || r.set.only.Inputs[r.at.Input].Tail.IsZero() {
		return nil
	}
	want := r.set.only.Inputs[r.at.Input].Tail
	have, err := tailSum(raw)
	if err == nil && have != want {
		err = &cause.ChangedError{URI: r.in.URI, What: "content", Was: "checksum of its end " + want.String(),
			Is: have.String(), Planned: true}
	}
	return err
}

// Border reports whether a range may end after the record that Next returned last, and where that is
// in the file.
func (r *Reader) Border() (offset int64, ok bool) {
	if s := r.open; s != nil && !s.place.Inside {
		return s.input.border()
	}
	return 0, false
}

// NoteSpans makes the reader note the checksum of each stretch between two calls of EndSpan, or the
// borders of an input. It must be called before the first Next.
func (r *Reader) NoteSpans() {
	r.notesSpans = true
	r.win.NoteSpans()
}

// EndSpan ends a stretch after the record that Next returned last.
func (r *Reader) EndSpan() {
	if r.open != nil {
		r.endSpan()
	}
}

func (r *Reader) endSpan() {
	if !r.notesSpans {
		return
	}
	if sum, to := r.open.input.span(); to >= 0 {
		r.spans = append(r.spans, Span{Input: r.at.Input, From: r.spanFrom, To: to, Sum: sum})
		r.spanFrom = to
	}
}

// Spans returns the stretches that were noted, in order.
func (r *Reader) Spans() []Span { return r.spans }

// A Mark is a place between two documents of a set: where one partition of a build ends and the
// next begins.
type Mark struct {
	Input   int    `json:"input"`
	Offset  int64  `json:"offset,omitempty"` // 0 for the beginning of the input
	Row     int64  `json:"row,omitempty"`
	Ordinal int64  `json:"ordinal"` // number of the next document of the set
	State   uint32 `json:"state,omitempty"`
}

// A Listed is an input as a plan lists it: all that Open would find out by looking at it.
type Listed struct {
	URI         string                 `json:"uri"`
	Bytes       int64                  `json:"bytes"` // stored ones
	Format      Format                 `json:"format"`
	Compression decompress.Compression `json:"compression,omitempty"`
	Window      int64                  `json:"window,omitempty"`
	TextBytes   int64                  `json:"text_bytes"` // estimated
	Archive     Format                 `json:"archive,omitempty"`
	Records     string                 `json:"records,omitempty"` // where the records of JSON lie, if not at the top

	// ETag, Modified, Revision and Hash are set for a remote file, as in listing.File.
	ETag     string    `json:"etag,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	Revision string    `json:"revision,omitempty"`
	Hash     string    `json:"hash,omitempty"`
	// Sum is over the input's text, Tail over the end of a file of columns; zero where they are not known.
	Sum  checksum.Sum `json:"sum,omitzero"`
	Tail checksum.Sum `json:"tail,omitzero"`
}

// Cuttable reports whether a partition may begin inside the input: its records can be read from any
// offset.
func (l *Listed) Cuttable() bool {
	if strings.HasPrefix(l.URI, "synth://") {
		return true
	}
	return l.Format.layout().cuts && l.Compression == decompress.Plain && l.Archive == ""
}

// TextAt estimates how much of the input's text lies before an offset of a Mark.
func (l *Listed) TextAt(offset int64) float64 {
	if l.Format.IsColumnar() && l.Bytes > 0 {
		return float64(l.TextBytes) * min(1, float64(offset)/float64(l.Bytes))
	}
	return min(float64(offset), float64(l.TextBytes))
}

// OffsetOf is the inverse of TextAt: the offset after so much text.
func (l *Listed) OffsetOf(text float64) int64 {
	if l.Format.IsColumnar() && l.TextBytes > 0 {
		return int64(text / float64(l.TextBytes) * float64(l.Bytes))
	}
	return int64(text)
}

// A Range is the part of a set that one partition reads: some inputs, the first from From on, the
// last up to To.
type Range struct {
	// Inputs are those of the range, each with the checksum of what the range has of it, if known.
	Inputs []Listed
	// From is where the first input begins, with Input 0.
	From Mark
	// To is where the last input ends; Offset is 0 where all of it is read.
	To Mark
}

// A Span is a stretch of an input with its checksum.
type Span struct {
	Input    int
	From, To int64
	Sum      checksum.Sum
}
