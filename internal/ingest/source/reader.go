package source

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/skip"
)

// A Reader returns the records of a Set from a position on. It must be closed.
type Reader struct {
	set  *Set
	win  frame.Window
	at   Position     // the beginning of the open input, or of the next one where none is open
	open *openedInput // the input that is read, nil between two
	in   Input        // the same
	// decided has a bit for each of Options.Conditions that holds for all records of the open input.
	decided uint64
	read    int64 // bytes on disk of the inputs before it
	list    hash.Hash
	err     error // sticky

	upcoming map[int]*rawFile // files that are decompressed before their turn

	noted   Position // what Note noted
	pending bool     // noted lacks what takes time

	// What lies between marks and the borders of inputs, whose checksums are noted if notesSpans.
	notesSpans bool
	spanFrom   int64 // in the open input
	spans      []Span
}

// Reader returns a reader that continues at a position of this set, or of the set of an earlier
// process with the same options. The zero Position is the beginning. Inputs that were finished are
// compared by size and modification time, and by their content where these differ. The input that
// is resumed is read again up to the position, and its checksum compared. What was not read yet may
// have changed. A *cause.ChangedError says what differs.
func (s *Set) Reader(at Position) (*Reader, error) {
	r := &Reader{set: s}
	resumed := at.Known != nil
	if resumed {
		if err := s.compare(&at); err != nil {
			return nil, err
		}
	} else if s.only != nil {
		at = s.begin()
	}
	if at.Input < 0 || at.Input > s.Len() || len(at.Done) != s.lineOf(at.Input) || at.Offset < 0 || at.Row < 0 ||
		at.Ordinal < 0 {
		return nil, fault.Of(cause.Corrupt, "resume: the position names input %d of %d, with %d finished, at byte %d",
			at.Input, s.Len(), len(at.Done), at.Offset)
	}
	if resumed {
		if err := errors.Join(s.recheck(&at), s.compareList(&at)); err != nil {
			return nil, err
		}
	}
	at.Known, at.Done = s.known, slices.Clip(at.Done)
	r.at = at
	if err := r.countRead(); err != nil {
		return nil, err
	}
	if at.Offset > 0 {
		if err := r.openInput(); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// countRead adds up what the inputs before the position hold on disk.
func (r *Reader) countRead() error {
	done := len(r.at.Done)
	r.read = -r.set.origin(0)
	for i := range done {
		r.read += max(0, r.set.known[i].Size)
	}
	if done == len(r.set.lines) {
		return nil
	}
	for i := r.set.lines[done].first; i < r.at.Input; i++ {
		in, err := r.set.Input(i)
		if err != nil {
			return err
		}
		r.read += max(0, in.Size)
	}
	return nil
}

// Next appends the bytes of the next record to dst and describes it in rec. It returns io.EOF after
// the last record, cause.NoDocuments where there was none at all, and any other error where an input
// cannot be read on; the reader stays at that error. A bad record is not an error of Next but of
// rec.Err.
func (r *Reader) Next(dst []byte, rec *Record) ([]byte, error) {
	if r.err != nil {
		return dst, r.err
	}
	for {
		if r.open == nil {
			if r.at.Input == r.set.Len() {
				r.err = io.EOF
				if r.at.Ordinal == 0 && r.set.only == nil {
					r.err = r.set.noDocuments(r.at.Members)
				}
				return dst, r.err
			}
			if err := r.openInput(); err != nil {
				*rec = Record{}
				if r.err = markDamaged(err, true); r.set.opts.skips(err) {
					r.err = r.lose(rec, false, err)
				}
				return dst, r.err
			}
		}
		s := r.open
		inside := s.place.Inside
		if r.rangeEnded() {
			if r.err = r.finishInput(); r.err != nil {
				return dst, r.err
			}
			continue
		}
		r.describe(rec)
		out, err := s.next(dst, rec)
		if err == io.EOF {
			if r.err = r.finishInput(); r.err != nil {
				return dst, r.err
			}
			continue
		}
		if err != nil {
			if r.err = markDamaged(r.inputError(err), true); r.set.opts.skips(r.err) {
				r.err = r.lose(rec, inside, err)
			}
			return dst, r.err
		}
		rec.Row = s.place.Row + 1 // after the rows that were skipped
		if rec.Err != nil {
			out = dst
			rec.Err = &RecordError{URI: r.in.URI, Input: rec.Input, Row: rec.Row, Offset: rec.Offset,
				Member: rec.Member, Cause: rec.Err}
		}
		if rec.Last {
			s.place.Row += rec.Rows
			if r.at.Ordinal++; rec.Skipped {
				r.at.Ordinal += rec.Rows - 1
			}
		}
		return out, nil
	}
}

// Run is frame.Runner's for the records after the last one, where these need no more than that, and returns how many
// there are. rec becomes that of the first row, the others differ in Ordinal, Row and, unless it is negative, Offset
// alone.
func (r *Reader) Run(dst []byte, full int, ends []int32, rec *Record) (_ []byte, _ []int32, records int) {
	if r.open == nil || r.err != nil || r.open.place.Inside || r.set.only != nil {
		return dst, ends, 0
	}
	runner, ok := r.open.framer.(runner)
	if !ok {
		return dst, ends, 0
	}
	r.describe(rec)
	rec.Row = r.open.place.Row + 1
	dst, ends = runner.run(dst, full, ends, rec)
	for _, end := range ends {
		if end >= 0 {
			records++
		}
	}
	r.open.place.Row += int64(len(ends))
	r.at.Ordinal += int64(records)
	return dst, ends, records
}

// describe sets what the open input says of its next record.
func (r *Reader) describe(rec *Record) {
	*rec = Record{} // a literal with fields would be made elsewhere and copied
	rec.Input, rec.Ordinal, rec.Format, rec.Rows, rec.Decided = r.at.Input, r.at.Ordinal, r.in.Format, 1, r.decided
}

// Position returns where a later run continues after the record that Next returned last. It shares
// Known and Done with the reader, which never change, and costs no more than the checksum of what
// was read since the last call.
func (r *Reader) Position() Position {
	r.Note()
	return r.Noted()
}

// Note notes the position for Noted. It takes little time, and so can be called after each record. The position
// that it returns has no checksums, and is valid until the next call of any method.
func (r *Reader) Note() *Position {
	p := &r.noted
	if !r.pending {
		*p = r.at // within an input only the ordinal changes
	}
	p.Ordinal = r.at.Ordinal
	s := r.open
	if r.pending = s != nil; r.pending { // of the next input nothing is noted
		p.Row, p.Inside, p.State = s.place.Row, s.place.Inside, s.State()
		s.input.place(p)
	}
	return p
}

// Noted returns the position as it was when Note was called last, which may be before the last Next.
func (r *Reader) Noted() Position {
	r.settle()
	return r.noted
}

func (r *Reader) settle() {
	if r.pending && r.open != nil {
		if in, ok := r.open.input.(interface{ settle(*Position) }); ok {
			in.settle(&r.noted)
		}
	}
	r.pending = false
}

// Progress returns how many bytes of the inputs, as they lie on disk, were read, and how many there
// are: -1 if that is not known.
func (r *Reader) Progress() (read, total int64) {
	read = r.read
	if s := r.open; s != nil {
		read += s.input.consumed()
	}
	return read, r.set.total
}

// Close releases the open file.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = errors.New("reader is closed")
	}
	r.closeInput()
	for _, raw := range r.upcoming {
		raw.Close()
	}
	r.upcoming = nil
	return nil
}

func (r *Reader) closeInput() {
	r.settle()
	if s := r.open; s != nil {
		if t, ok := s.framer.(*tableFramer); ok {
			t.rows.Close()
		}
		if s.raw != nil {
			s.raw.Close()
		}
	}
	r.open = nil
}

// finishInput checks that a file that was read to its end is still the one that was opened, and
// notes its checksum.
func (r *Reader) finishInput() error {
	s := r.open
	if err := s.raw.unchanged(); err != nil {
		return r.inputError(err)
	}
	r.endSpan()
	r.spanFrom = 0
	done := s.input.finish()
	if err := r.checkRange(done.Sum); err != nil {
		return err
	}
	r.read += s.input.consumed()
	if s.raw != nil {
		r.noteTrailing(s.raw.trailing())
	}
	members := r.at.Members
	if archive, ok := s.framer.(interface{ left() *skip.Counts }); ok {
		members = members.note(r.in.URI, archive.left())
	}
	return r.leaveInput(done, members)
}

// leaveInput closes the input and goes to the next one.
func (r *Reader) leaveInput(done Finished, members *Members) error {
	r.closeInput()
	next := Position{Input: r.at.Input + 1, Ordinal: r.at.Ordinal, Known: r.at.Known, Done: r.at.Done,
		Trailing: r.at.Trailing, Members: members}
	p := &r.set.lines[len(r.at.Done)]
	if p.Files == 0 {
		next.Done = append(next.Done, done)
		r.at = next
		return nil
	}
	list, err := r.listed(done)
	if err != nil {
		return err
	}
	if next.List = list; next.Input == p.first+p.n {
		next.Done = append(next.Done, Finished{Bytes: list.Bytes, Seen: list.Seen,
			List: hex.EncodeToString(r.list.Sum(nil))})
		next.List, r.list = nil, nil
	}
	r.at = next
	return nil
}

// listed adds the file that was finished to the list that it belongs to.
func (r *Reader) listed(done Finished) (*List, error) {
	var list List
	if r.at.List != nil {
		list = *r.at.List
	}
	if r.list == nil {
		r.list = sha256.New()
		if list.State != nil {
			if err := r.list.(encoding.BinaryUnmarshaler).UnmarshalBinary(list.State); err != nil {
				return nil, fault.Of(cause.Corrupt, "resume: the position's checksum of a list: %v", err)
			}
		}
	}
	fmt.Fprintf(r.list, "%s  %s\n", done.Sum, r.in.URI) // never fails
	list.Bytes += done.Bytes
	list.Seen = chainStat(list.Seen, &r.in)
	var err error
	list.State, err = r.list.(encoding.BinaryMarshaler).MarshalBinary()
	return &list, err
}

func (r *Reader) noteTrailing(t *Trailing) {
	if t == nil {
		return
	}
	all := Trailing{URI: r.in.URI, Offset: t.Offset, Bytes: t.Bytes}
	if r.at.Trailing != nil {
		all = *r.at.Trailing
	}
	all.Inputs++
	r.at.Trailing = &all
}

// inputError adds where reading failed, unless the error has it.
func (r *Reader) inputError(err error) error {
	offset := r.win.Offset()
	if r.open == nil || r.in.Format.IsColumnar() {
		offset = -1
	}
	row := int64(0) // none was attempted
	if s := r.open; s != nil && s.place != nil {
		row = s.place.Row + 1
	}
	return r.set.inputError(&r.in, offset, row, err)
}

func (s *Set) inputError(in *Input, offset, row int64, err error) error {
	var changed *cause.ChangedError
	var already *cause.InputError
	if in.Store != nil {
		err = listing.Cause(in.URI, offset, err)
	}
	if errors.As(err, &changed) && s.only != nil && in.Store != nil {
		changed.Planned = true
	}
	if errors.As(err, &changed) || errors.As(err, &already) {
		return err
	}
	return &cause.InputError{URI: in.URI, Offset: offset, Row: row, Err: err}
}
