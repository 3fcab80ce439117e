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
)

// A Reader returns the records of a Set from a position on. It must be closed.
type Reader struct {
	set  *Set
	win  window
	at   Position // of the next input where none is open; of the last one's beginning otherwise
	open *stream  // the input that is read, nil between two
	in   Input    // the same
	read int64    // bytes on disk of the inputs before it
	list hash.Hash
	err  error // sticky

	spans spans
}

// A stream is an open input.
type stream struct {
	framer
	*framing
	raw   *rawFile     // nil for generated text
	table *tableFramer // of a file of columns
	synth *generator
}

// Reader returns a reader that goes on at a position of this set, or of the set of an earlier
// process with the same options. The zero Position is the beginning. Inputs that were finished are
// compared by size and modification time, and by their content where these differ. The input that
// is resumed is read again up to the position, and its checksum compared. What was not read yet may
// have changed. A *SourceChangedError says what differs.
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
	if at.Input < 0 || at.Input > s.Len() || len(at.Done) != s.partOf(at.Input) || at.Offset < 0 || at.Row < 0 ||
		at.Ordinal < 0 {
		return nil, fault.Of(ErrCorrupt, "resume: the position names input %d of %d, with %d finished, at byte %d",
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
	if done == len(r.set.parts) {
		return nil
	}
	for i := r.set.parts[done].first; i < r.at.Input; i++ {
		in, err := r.set.Input(i)
		if err != nil {
			return err
		}
		r.read += max(0, in.Size)
	}
	return nil
}

// Next appends the bytes of the next record to dst and describes it in rec. It returns io.EOF after
// the last record, ErrNoDocuments where there was none at all, and any other error where an input
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
		inside := s.inside
		if r.rangeEnded() {
			if r.err = r.finishInput(); r.err != nil {
				return dst, r.err
			}
			continue
		}
		*rec = Record{Input: r.at.Input, Ordinal: r.at.Ordinal, Format: r.in.Format, Rows: 1}
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
		rec.Row = s.row + 1 // after the rows that were skipped
		if rec.Err != nil {
			out = dst
			rec.Err = &RecordError{URI: r.in.URI, Input: rec.Input, Row: rec.Row, Offset: rec.Offset,
				Member: rec.Member, Cause: rec.Err}
		}
		if rec.Last {
			s.row += rec.Rows
			r.at.Ordinal++
		}
		return out, nil
	}
}

// Position returns where a later run goes on after the record that Next returned last. It shares
// Known and Done with the reader, which never change, and costs no more than the checksum of what
// was read since the last call.
func (r *Reader) Position() Position {
	p := r.at
	if s := r.open; s != nil {
		p.Row, p.Inside, p.State = s.row, s.inside, s.state()
		if s.synth != nil {
			p.Offset = s.synth.offset
		} else if s.table != nil {
			p.Offset, p.Sum, p.Base, p.Group = s.table.bytes, s.table.sum(), s.table.base, s.table.group+1
			p.Groups = slices.Clip(s.table.cut.sums)
		} else {
			p.Offset, p.Sum, p.Sums = r.win.offset(), r.win.sum(), s.raw.sumState(&r.win)
		}
	}
	return p
}

// Progress returns how many bytes of the inputs, as they lie on disk, were read, and how many there
// are: -1 if that is not known.
func (r *Reader) Progress() (read, total int64) {
	read = r.read
	if s := r.open; s != nil {
		read += s.consumed(&r.win)
	}
	return read, r.set.total
}

// consumed returns how far into the file reading is. For an uncompressed file it is exactly what
// became records.
func (s *stream) consumed(w *window) int64 {
	switch {
	case s.synth != nil:
		return s.synth.offset
	case s.table != nil:
		return s.table.consumed(s.raw.size)
	case s.raw.c == Plain:
		return w.offset()
	}
	return s.raw.consumed()
}

// Close releases the open file.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = errors.New("reader is closed")
	}
	r.closeInput()
	return nil
}

func (r *Reader) closeInput() {
	if r.open != nil && r.open.table != nil {
		r.open.table.rows.Close()
	}
	if r.open != nil && r.open.raw != nil {
		r.open.raw.Close()
	}
	r.open = nil
}

// openInput opens the input of the position and goes to it.
func (r *Reader) openInput() error {
	var err error
	if r.in, err = r.set.Input(r.at.Input); err != nil {
		return err
	}
	in := &r.in
	if in.synth != nil {
		g := newGenerator(in.synth, r.at.Row, r.at.Offset)
		r.open = &stream{framer: g, framing: &g.framing, synth: g}
		return nil
	}
	raw, err := openRaw(in, &r.set.opts)
	if err != nil {
		return r.inputError(err)
	}
	if in.Format.isColumnar() {
		return r.openTable(raw)
	}
	if r.win.buf == nil {
		r.win.buf = make([]byte, r.set.opts.chunkBytes)
	}
	raw.inBackground()
	r.win.reset(raw, r.set.opts.windowBytes(in.framed()))
	if in.store != nil && in.Compression == Plain && in.archive == "" {
		r.win.sums = newResumableSum()
	}
	if r.set.cuts(r.at.Input) {
		raw.counted.sum = nil // the hash that a server announces is over all of it
	}
	s := &stream{raw: raw}
	r.open = s
	inPlace := r.resumesInPlace()
	if origin := r.set.origin(r.at.Input); origin > 0 && !inPlace && !in.Format.layout().header {
		if err := r.seekRange(origin); err != nil {
			return r.inputError(err)
		}
	} else if inPlace && !in.Format.layout().header {
		raw.binary = true // what is in the middle of a text cannot begin with a mark of its encoding
		if err := r.jump(); err != nil {
			return r.inputError(err)
		}
	} else if in.archive == "" && r.win.need(3) && string(r.win.unread()[:3]) == "\ufeff" {
		r.win.consume(3)
	}
	f, err := r.newFramer(raw)
	if err != nil {
		return r.inputError(err)
	}
	s.framer, s.framing = f, f.common()
	if inPlace && in.Format.layout().header {
		if err := r.jump(); err != nil {
			return r.inputError(err)
		}
	}
	return r.goOn()
}

// openTable opens a file of columns and goes to the position.
func (r *Reader) openTable(raw *rawFile) error {
	s := &stream{raw: raw}
	r.open = s
	t, err := newTableFramer(&r.in, framing{o: &r.set.opts}, raw, r.set.needs.decompressor)
	if err != nil {
		return r.inputError(err)
	}
	s.framer, s.framing, s.table = t, &t.framing, t
	t.cut.keep, t.cut.sums = r.set.origin(r.at.Input) > 0, r.at.Groups
	if err := r.checkTail(raw); err != nil {
		return r.inputError(err)
	}
	if r.at.Offset == 0 {
		return nil
	}
	if origin := r.set.origin(r.at.Input); origin > 0 && r.at.Row == r.set.only.From.Row {
		if err := t.seekRange(&r.in, &r.set.only.From, &r.at); err != nil {
			return r.inputError(err)
		}
		return nil
	}
	if err := t.goOn(&r.in, &r.at); err != nil {
		return r.inputError(err)
	}
	return nil
}

// row returns the row that reading failed at, 0 if none was attempted.
func (r *Reader) row() int64 {
	if s := r.open; s != nil && s.framing != nil {
		return s.row + 1
	}
	return 0
}

// newFramer makes the framer of the input that is open.
func (r *Reader) newFramer(raw *rawFile) (framer, error) {
	f := framing{w: &r.win, o: &r.set.opts}
	if r.in.archive != "" {
		return newArchive(&r.in, f, raw, &r.set.filter)
	}
	return newFramer(r.in.Format, f)
}

// goOn moves an input that was just opened to the position.
func (r *Reader) goOn() error {
	at, s := &r.at, r.open
	if at.Offset == 0 {
		return nil
	}
	in := &r.in
	origin := r.set.origin(at.Input)
	if r.win.offset() < origin {
		if err := r.seekRange(origin); err != nil {
			return r.inputError(err)
		}
	}
	if r.win.offset() > at.Offset {
		return &SourceChangedError{URI: in.URI, What: "content",
			Was: fmt.Sprintf("a header of at most %d bytes", at.Offset), Is: "a longer one"}
	}
	if archive, ok := s.framer.(*archiveFramer); ok {
		if err := archive.seek(at); err != nil {
			return r.inputError(err)
		}
	} else if !r.win.skip(at.Offset) {
		if err := r.win.failed(); err != nil {
			return r.inputError(err)
		}
		return &SourceChangedError{URI: in.URI, What: "size",
			Was: fmt.Sprintf("at least %d bytes of text", at.Offset), Is: fmt.Sprint(r.win.offset())}
	}
	if sum := r.win.sum(); sum != at.Sum && at.Offset > origin {
		return &SourceChangedError{URI: in.URI, What: "content", Was: "checksum " + at.Sum.String(),
			Is: sum.String() + fmt.Sprintf(" over the first %d bytes", at.Offset)}
	}
	s.row, s.inside = at.Row, at.Inside // whatever was skipped on the way
	s.restore(at.State)
	return nil
}

// finishInput checks that a file that was read to its end is still the one that was opened, and
// notes its checksum.
func (r *Reader) finishInput() error {
	s := r.open
	done := Finished{Bytes: s.consumed(&r.win)}
	if s.table != nil {
		if err := s.raw.unchanged(); err != nil {
			return err
		}
		done = Finished{Bytes: s.table.bytes, Sum: s.table.sum()}
		if err := r.checkRange(done.Sum); err != nil {
			return err
		}
		r.endSpan(s.table.bytesBefore(s.table.file.Groups()))
		r.spans.from = 0
		s.table.endGroup()
		done.Groups = s.table.cut.sums
	} else if s.synth == nil {
		if err := s.raw.unchanged(); err != nil {
			return r.inputError(err)
		}
		done = Finished{Bytes: r.win.offset(), Sum: r.win.sum()}
		if err := r.checkRange(done.Sum); err != nil {
			return err
		}
		r.endSpan(r.win.offset())
		r.spans.from = 0
	}
	r.read += s.consumed(&r.win)
	if s.raw != nil {
		r.noteTrailing(s.raw.trailing())
	}
	members := r.at.Members
	if archive, ok := s.framer.(*archiveFramer); ok {
		members = members.note(r.in.URI, &archive.passed)
	}
	return r.leaveInput(done, members)
}

// leaveInput closes the input and goes to the next one.
func (r *Reader) leaveInput(done Finished, members *Members) error {
	r.closeInput()
	next := Position{Input: r.at.Input + 1, Ordinal: r.at.Ordinal, Known: r.at.Known, Done: r.at.Done,
		Trailing: r.at.Trailing, Members: members}
	p := &r.set.parts[len(r.at.Done)]
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
				return nil, fault.Of(ErrCorrupt, "resume: the position's checksum of a list: %v", err)
			}
		}
	}
	fmt.Fprintf(r.list, "%s  %s\n", done.Sum, r.in.URI) // never fails
	list.Bytes += done.Bytes
	list.Seen = list.Seen.chainStat(&r.in)
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
	var changed *SourceChangedError
	var already *InputError
	offset := r.win.offset()
	if r.open == nil || r.in.Format.isColumnar() {
		offset = -1
	}
	if r.in.store != nil {
		err = remoteError(r.in.URI, offset, err)
	}
	if errors.As(err, &changed) && r.set.only != nil && r.in.store != nil {
		changed.Planned = true
	}
	if errors.As(err, &changed) || errors.As(err, &already) {
		return err
	}
	return &InputError{URI: r.in.URI, Offset: offset, Row: r.row(), Err: err}
}
