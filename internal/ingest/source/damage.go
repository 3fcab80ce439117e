package source

import (
	"errors"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// With Options.SkipDamaged, what cannot be read of a damaged input is one bad record, and reading goes
// on after it: at the next page of a column, record batch, or member of a zip archive, else at the next
// input. A stream that is compressed as a whole, and a tar archive, are lost from the damaged place on.
//
// How much is read before the damage depends on the content alone: a decompressor gives whole blocks,
// or stops at the same byte however it is asked.

// lose turns the rest of the input into a bad record, and goes to the next input. inside means that
// pieces of the current document were delivered.
func (r *Reader) lose(rec *Record, inside bool, failed error) error {
	*rec = Record{Record: frame.Record{First: !inside, Last: true, Offset: -1}, Input: r.at.Input,
		Ordinal: r.at.Ordinal, Format: r.in.Format, Rows: 1, Row: 1, Member: rec.Member}
	s := r.open
	if s != nil && s.place != nil {
		rec.Row = s.place.Row + 1
		if !r.in.Format.IsColumnar() {
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
		if s != nil {
			if err := s.raw.unchanged(); err != nil {
				return r.inputError(err)
			}
		}
		r.read += max(0, r.in.Size)
		return r.leaveInput(Finished{}, r.at.Members)
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
