package source

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// With Options.SkipDamaged, what cannot be read of a damaged input is one bad record, and reading goes
// on after it: at the next page of a column, record batch, or member of a zip archive, else at the next
// input. A stream that is compressed as a whole, and a tar archive, are lost from the damaged place on.
//
// How much is read before the damage depends on the content alone: a decompressor gives whole blocks,
// or stops at the same byte however it is asked.

// What a DamageError may say is lost from its place on.
const (
	WholeFile   = "the file"
	WholeMember = "the member" // of an archive
)

// A DamageError is the cause of a bad record that stands for a part of an input that cannot be read.
type DamageError struct {
	Lost  string // what is lost from here on: WholeFile, WholeMember, or "" for rows that are known
	Whole bool   // all of the member was read: it is its checksum that differs
	Kept  int64  // rows of the file before it, where WholeFile is lost
	Rows  int64  // that are lost, where Lost is ""
	Err   error
}

func (e *DamageError) Error() string {
	switch {
	case e.Lost == "" && e.Rows == 1:
		return fmt.Sprintf("%v; 1 row is lost", e.Err)
	case e.Lost == "":
		return fmt.Sprintf("%v; %d rows are lost", e.Err, e.Rows)
	case e.Lost == WholeMember && e.Whole:
		return fmt.Sprintf("%v; all of the member was read, and may be wrong", e.Err)
	case e.Lost == WholeMember:
		return fmt.Sprintf("%v; the rest of the member is lost", e.Err)
	case e.Kept == 0:
		return fmt.Sprintf("%v; no row of %s could be read before", e.Err, e.Lost)
	case e.Kept == 1:
		return fmt.Sprintf("%v; 1 row of %s was read before, the rest of it is lost", e.Err, e.Lost)
	}
	return fmt.Sprintf("%v; %d rows of %s were read before, the rest of it is lost", e.Err, e.Kept, e.Lost)
}

func (e *DamageError) Unwrap() error { return e.Err }

// IsDamage reports whether an error is that an input is damaged: SkipDamaged leaves out what cannot be
// read of it.
func IsDamage(err error) bool {
	var changed *cause.ChangedError
	var need *NeedError
	if errors.As(err, &changed) || errors.As(err, &need) {
		return false
	}
	return errors.Is(err, cause.Corrupt) || errors.Is(err, cause.Truncated) || errors.Is(err, cause.Malformed) ||
		errors.Is(err, cause.TooLarge)
}

// markDamaged notes in an error that the input is damaged, if SkipDamaged may read on after it.
func markDamaged(err error, may bool) error {
	var input *cause.InputError
	if may && errors.As(err, &input) {
		input.Damaged = IsDamage(err)
	}
	return err
}

// skips reports whether what an error is about is left out.
func (o *Options) skips(err error) bool { return o.SkipDamaged && IsDamage(err) }

// lose turns the rest of the input into a bad record, and goes to the next input. inside means that
// pieces of the current document were delivered.
func (r *Reader) lose(rec *Record, inside bool, failed error) error {
	*rec = Record{Record: frame.Record{First: !inside, Last: true, Offset: -1}, Input: r.at.Input,
		Ordinal: r.at.Ordinal, Format: r.in.Format, Rows: 1, Row: 1, Member: rec.Member}
	s := r.open
	if s != nil && s.place != nil {
		rec.Row = s.place.Row + 1
		if !r.in.Format.isColumnar() {
			rec.Offset = r.win.Offset()
		}
	}
	var input *cause.InputError
	if errors.As(failed, &input) {
		failed = input.Err
	}
	rec.Err = &RecordError{URI: r.in.URI, Input: rec.Input, Row: rec.Row, Offset: rec.Offset, Member: rec.Member,
		Cause: &DamageError{Lost: WholeFile, Kept: rec.Row - 1, Err: failed}}
	r.at.Ordinal++
	if s == nil || s.place == nil {
		return r.leaveUnread()
	}
	return r.finishInput()
}

// lose turns the rest of the member into a bad record, and goes past it. It returns the error if
// the rest of the archive cannot be read.
func (a *archiveFramer) lose(rec *Record, inside bool, failed error) error {
	m := a.member
	if m.name == "" || !a.o.skips(failed) && !(a.o.SkipDamaged && errors.Is(failed, cause.Unsupported)) {
		return failed
	}
	*rec = Record{Record: frame.Record{First: !inside, Last: true, Offset: a.w.Offset(),
		Err: &DamageError{Lost: WholeMember, Whole: a.w.Offset() == m.end, Err: failed}},
		Input: rec.Input, Ordinal: rec.Ordinal, Format: a.kind, Rows: 1, Member: m.name}
	a.inner, a.Inside, a.member = nil, false, member{}
	a.w.SetLimit(frame.NoLimit)
	if a.w.Offset() < m.next && a.lister.end(a.w, &m) != nil && a.w.Offset() != m.end || !a.w.Skip(m.next) {
		return failed
	}
	return nil
}

// leaveUnread goes past an input whose records could not be begun.
func (r *Reader) leaveUnread() error {
	if s := r.open; s != nil {
		if err := s.input.unchanged(); err != nil {
			return r.inputError(err)
		}
	}
	r.read += max(0, r.in.Size)
	return r.leaveInput(Finished{}, r.at.Members)
}

// setDamaged gives a damaged input, whose format cannot be found, the format with which reading
// will fail.
func (in *Input) setDamaged() {
	switch {
	case in.Format.isColumnar():
	case in.Compression == decompress.Zipped:
		in.archive, in.Format = Zip, Zip
	default:
		in.archive, in.Format = Tar, Tar
	}
	in.textBytes = max(0, in.Size)
}
