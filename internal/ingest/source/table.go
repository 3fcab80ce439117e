package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// Files of columns have no text with offsets: they are read at many places, and only the wanted
// columns. A row is a record: the text of the one column that is wanted, or the JSON object of
// several. Row says where it lies; the offset of a position counts the bytes of the records before
// it, plus one for each, and the checksum is over the records. A reader continues at the beginning of
// a group of rows, and reads the rows of the group before its position again to compare their
// checksum.

// A tableFramer gives the rows of a file of columns.
type tableFramer struct {
	frame.Place
	o     *Options
	file  columnar.File
	rows  columnar.Rows
	group int
	over  bool // the group was read to its end, or none was begun

	begun    bool // the next row is that of rows already, where beginErr is nil
	beginErr error

	bytes int64        // the position's offset
	base  checksum.Sum // over the groups before the current one
	sums  recordsSum   // over the current group
	cut   tableCut

	total  int64     // rows of the file
	unread *[]string // columns
	text   []byte    // the text whose pieces are delivered
	passed int       // bytes of text that were delivered
}

// newTableFramer opens a file of columns. Reading it may take as much memory as was planned, 0 for any.
func newTableFramer(in *Input, o *Options, raw *rawFile, planned int64) (*tableFramer, error) {
	o = o.ofColumns()
	file, err := openTable(in, o, raw, planned, planned)
	if err != nil {
		return nil, err
	}
	// Of very many remote files not all are looked at. An earlier version planned a little less.
	const slack = 1 << 20
	if n, why := file.MemoryBytes(); planned > 0 && n > planned+slack {
		return nil, &NeedError{What: fmt.Sprintf("reading it takes %d bytes of memory, and %d were planned by files "+
			"like it (%s)", n, planned, why), Bytes: n,
			Advice: "copy it here and build from that: a local file is measured before the build"}
	}
	t := &tableFramer{o: o, file: file, rows: file.NewRows(), group: -1, over: true}
	t.total = rowsBefore(file, file.Groups())
	if unread := file.Columns(); o.Fields != nil {
		unread = slices.DeleteFunc(unread, func(name string) bool { return slices.Contains(o.Fields, name) })
		t.unread = &unread
	}
	return t, nil
}

func (t *tableFramer) State() uint32  { return uint32(t.passed) }
func (t *tableFramer) Restore(uint32) {} // seek has done it

// rowsBefore returns the rows of the groups before one.
func rowsBefore(file columnar.File, group int) (rows int64) {
	for g := range group {
		rows += file.Group(g).Rows
	}
	return rows
}

// sum returns the checksum over the records before the position.
func (t *tableFramer) sum() checksum.Sum { return t.sumAfter(t.base) }

// sumAfter returns the checksum over the groups that a base is over, and the current one.
func (t *tableFramer) sumAfter(base checksum.Sum) checksum.Sum {
	return t.sums.after(base)
}

// note adds a row's record to the checksum. What is lent is valid until the next row.
func (t *tableFramer) note(data []byte, null, lent bool) {
	t.sums.add(data, null, lent)
	t.bytes += int64(len(data)) + 1
}

// nextGroup goes to the next group of rows, io.EOF after the last one.
func (t *tableFramer) nextGroup() error {
	t.endGroup()
	t.base = t.sum()
	t.sums.reset()
	if t.group+1 >= t.file.Groups() {
		return io.EOF
	}
	t.group++
	t.over = false
	return tableError(t.rows.Seek(t.group))
}

func (t *tableFramer) next(dst []byte, rec *Record) ([]byte, error) {
	rec.Offset = -1
	if t.Inside {
		return t.piece(dst, rec)
	}
	rec.First = true
	skipped, err := t.advance()
	if err != nil {
		return dst, t.skip(rec, err)
	}
	if skipped > 0 {
		rec.Last, rec.Skipped, rec.Rows = true, true, skipped
		return dst, nil
	}
	rec.Unread = t.unread
	if t.o.TextField == "" || t.file.TextIsJSON() {
		return t.object(dst, rec)
	}
	text, null := t.rows.Text()
	if null {
		t.note(nil, true, true)
		rec.Last, rec.Err = true, fault.Of(cause.UnknownField, "column %q is null", t.o.TextField)
		return dst, nil
	}
	t.text, t.passed = text, 0
	return t.piece(dst, rec)
}

// nextRow goes to the next row, unless run has done that.
func (t *tableFramer) nextRow() error {
	if t.begun {
		t.begun = false
		return t.beginErr
	}
	return t.rows.Next()
}

// run is runner's for rows of the group whose text is one piece.
func (t *tableFramer) run(dst []byte, full int, ends []int32, rec *Record) ([]byte, []int32) {
	if t.o.TextField == "" || t.file.TextIsJSON() || t.over {
		return dst, ends
	}
	rec.Offset, rec.First, rec.Last, rec.Decoded, rec.Unread = -1, true, true, true, t.unread
	for len(dst) < full && len(ends) < cap(ends) {
		t.sums.take()
		t.beginErr = t.nextRow()
		text, null := []byte(nil), false
		if t.beginErr == nil {
			text, null = t.rows.Text()
		}
		if t.begun = t.beginErr != nil || null || len(text) > t.o.PieceBytes; t.begun {
			break
		}
		t.note(text, false, true)
		dst = append(dst, text...)
		ends = append(ends, int32(len(dst)))
		dst = append(dst, '\n')
	}
	return dst, ends
}

// advance goes to the next row, in the next group where the current one ends. If no row of that is wanted,
// it goes to the group's end instead, and returns the number of rows.
func (t *tableFramer) advance() (skipped int64, err error) {
	t.sums.take()
	for {
		if !t.over {
			err := t.nextRow()
			if err != io.EOF {
				return 0, tableError(err)
			}
			t.over = true
		}
		if err := t.nextGroup(); err != nil {
			return 0, err
		}
		if t.file.Group(t.group).Skipped {
			t.over = true
			if group := t.file.Group(t.group); group.Rows > 0 {
				sizes := binary.LittleEndian.AppendUint64(nil, uint64(group.Rows))
				t.note(binary.LittleEndian.AppendUint64(sizes, uint64(group.Bytes)), true, false)
				return group.Rows, nil
			}
		}
	}
}

// object gives the row as a JSON object.
func (t *tableFramer) object(dst []byte, rec *Record) ([]byte, error) {
	rec.Last, rec.Typed = true, true
	start := len(dst)
	row, err := t.rows.AppendJSON(dst, t.o.MaxRecordBytes)
	if err != nil {
		return row.JSON, t.skip(rec, tableError(err))
	}
	t.note(row.JSON[start:], row.Over, false)
	rec.Nulls = row.Omitted
	if row.Over {
		rec.Err = frame.TooLarge(t.o.MaxRecordBytes)
	}
	return row.JSON, nil
}

// piece gives the text of a row, or the next piece of a long one.
func (t *tableFramer) piece(dst []byte, rec *Record) ([]byte, error) {
	rec.Decoded = true
	rest := t.text[t.passed:]
	if len(rest) <= t.o.PieceBytes {
		t.note(t.text, false, true)
		t.text, t.passed = nil, 0
		t.Inside, rec.Last = false, true
		return append(dst, rest...), nil
	}
	n := t.o.PieceBytes
	for ; ; n = min(2*n, t.o.MaxPieceBytes) {
		if c, forced := t.o.CutPiece(rest[:min(n, len(rest))], n); c > 0 {
			rec.Forced = forced
			t.passed += c
			t.Inside = true
			return append(dst, rest[:c]...), nil
		}
	}
}

// skip turns what an error says cannot be read into a bad record, if that may be skipped.
func (t *tableFramer) skip(rec *Record, failed error) error {
	if failed == io.EOF || !t.o.skips(failed) && !(t.o.SkipDamaged && errors.Is(failed, cause.Unsupported)) {
		return failed
	}
	lost, err := t.rows.Skip()
	if err != nil {
		return tableError(err)
	}
	t.note(binary.LittleEndian.AppendUint64(nil, uint64(lost)), true, false)
	rec.Last, rec.Rows, rec.Err = true, lost, &DamageError{Rows: lost, Err: failed}
	return nil
}

// again reads a row that was read before, or what was lost in its place.
func (t *tableFramer) again(data []byte) ([]byte, error) {
	rec := Record{Rows: 1}
	for !rec.Last {
		var err error
		if data, err = t.next(data[:0], &rec); err != nil {
			return data, err
		}
	}
	t.Row += rec.Rows
	return data, nil
}

// consumed returns how much of a file of size bytes the rows that were read stand for.
func (t *tableFramer) consumed(size int64) int64 {
	if t.total == 0 {
		return size
	}
	return int64(float64(size) * min(1, float64(t.Row)/float64(t.total)))
}

// groupOf returns the group that a position lies in. A position of an earlier version does not name
// it.
func (t *tableFramer) groupOf(at *Position) (group int) {
	if at.Group > 0 {
		return at.Group - 1
	}
	for left := at.Row; group < t.file.Groups() && left > t.file.Group(group).Rows; group++ {
		left -= t.file.Group(group).Rows
	}
	return group
}

// resume brings the framer to a position.
func (t *tableFramer) resume(in *Input, at *Position) error {
	group := t.groupOf(at)
	if group >= t.file.Groups() {
		return cause.Changed(in.URI, "number of groups of rows", fmt.Sprint("at least ", at.Group), t.file.Groups())
	}
	t.Row += rowsBefore(t.file, group)
	t.group, t.base = group-1, at.Base
	var data []byte
	for t.Row < at.Row || !at.Inside && t.sum() != at.Sum {
		before := t.Row
		var err error
		if data, err = t.again(data[:0]); err == io.EOF || err == nil && t.group != group {
			return cause.Changed(in.URI, "number of rows", fmt.Sprint("at least ", at.Row), before)
		}
		if err != nil {
			return err
		}
		if t.Row > at.Row || before == at.Row && t.Row > before {
			break // the sums differ
		}
	}
	if at.Inside {
		if _, err := t.advance(); err != nil {
			return err
		}
		if t.text, _ = t.rows.Text(); int64(at.State) > int64(len(t.text)) {
			return &cause.ChangedError{URI: in.URI, What: "content"}
		}
		t.passed, t.Inside = int(at.State), true
	}
	if sum := t.sum(); sum != at.Sum {
		return cause.Changed(in.URI, "content", fmt.Sprint("checksum ", at.Sum),
			fmt.Sprintf("%s over the first %d rows", sum, at.Row))
	}
	t.bytes = at.Offset
	return nil
}

// tableCut is what a tableFramer keeps for ranges.
type tableCut struct {
	end  int64          // the row after the last of the current group
	of   int            // the group, from 1 on, that ends there
	base checksum.Sum   // over the groups since the last mark, before the current one
	done bool           // a mark lies after the current group
	sums []checksum.Sum // one for each group that was read to its end
	keep bool           // sums are wanted
}
