package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/zeebo/xxh3"
)

// Files of columns have no text with offsets: they are read at many places, and only the wanted
// columns. A row is a record: the text of the one column that is wanted, or the JSON object of
// several. Row says where it lies; the offset of a position counts the bytes of the records before
// it, plus one for each, and the checksum is over the records. A reader continues at the beginning of
// a group of rows, and reads the rows of the group before its position again to compare their
// checksum.

// A tableFramer gives the rows of a file of columns.
type tableFramer struct {
	framing
	file  columnar.File
	rows  columnar.Rows
	group int
	over  bool // the group was read to its end, or none was begun

	bytes  int64 // the position's offset
	base   Sum   // over the groups before the current one
	hasher xxh3.Hasher
	hashed bool // the hasher holds something
	cut    tableCut

	total int64  // rows of the file
	text  []byte // of the row whose pieces are delivered
	given int    // what of it was delivered
}

func columnOptions(o *Options, in *Input) columnar.Options {
	c := columnar.Options{Text: o.TextField, Columns: o.Fields}
	if o.TextField != "" {
		c.Columns = nil
	}
	decided, _ := o.judge(in.URI)
	for i, condition := range o.Conditions {
		if decided&(1<<i) == 0 && condition.CanHold != nil {
			c.Conditions = append(c.Conditions, columnar.Condition{Paths: condition.Paths, CanHold: condition.CanHold})
		}
	}
	return c
}

// openTable opens a file of columns. What is kept of its metadata takes at most limit bytes, 0 for any, or
// the error is a *NeedError. planned is what reading the file may take, 0 if that is still to be found.
func openTable(in *Input, o *Options, raw *rawFile, limit, planned int64) (columnar.File, error) {
	at, size, err := raw.random()
	if err != nil {
		return nil, err
	}
	c := columnOptions(o, in)
	c.Remote, c.Lenient, c.MaxMetadata, c.Planned = raw.remote != nil, o.SkipDamaged, limit, planned
	f, err := in.Format.layout().opens(at, size, c)
	if err != nil {
		return nil, tableError(err)
	}
	return f, nil
}

// tableError turns an error of package columnar into ours.
func tableError(err error) error {
	var column *columnar.ColumnError
	var size *columnar.SizeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &column):
		e := &ColumnError{Has: column.Has, text: err.Error()}
		if i := slices.IndexFunc(chatLists, func(name string) bool { return slices.Contains(column.Lists, name) }); i >= 0 {
			e.Chat = chatLists[i]
		}
		return e
	case errors.As(err, &size):
		return &NeedError{What: err.Error(), Advice: "write it again with smaller pages; of a file that is not on " +
			"this machine only the first row group is measured before the build, so copy it here and build from that",
			Bytes: size.Bytes}
	case errors.Is(err, columnar.ErrType):
		return fault.Of(ErrUnsupported, "%v", err)
	case errors.Is(err, columnar.ErrUnsupported):
		return fault.Of(ErrUnsupported, "%v; write the file again with the usual settings", err)
	case errors.Is(err, columnar.ErrCorrupt):
		return fault.Of(ErrCorrupt, "the file is damaged: %v; copy it again", err)
	}
	return err
}

// A ColumnError means that a file of columns has no such column, or that it does not hold text. It
// matches ErrUnknownField.
type ColumnError struct {
	Has  []string // the columns of text
	Chat string   // a column of messages, or ""
	text string
}

func (e *ColumnError) Error() string {
	has := strings.Join(e.Has[:min(len(e.Has), maxKeysTold)], ", ")
	switch {
	case e.Chat != "":
		return fmt.Sprintf("%s; %q looks like the messages of a chat", e.text, e.Chat)
	case has == "":
		return e.text + ", and no column of text"
	}
	return fmt.Sprintf("%s; the columns of text are %s", e.text, has)
}

// Unwrap returns ErrUnknownField.
func (e *ColumnError) Unwrap() error { return ErrUnknownField }

// NeedError means that a part of an input takes more memory than reading it may.
type NeedError struct {
	What   string
	Advice string
	Bytes  int64 // that it needs
}

func (e *NeedError) Error() string { return e.What + "; " + e.Advice }

// Kind returns fault.Limit.
func (e *NeedError) Kind() string { return fault.Limit }

// newTableFramer opens a file of columns. Reading it may take as much memory as was planned, 0 for any.
func newTableFramer(in *Input, f framing, raw *rawFile, planned int64) (*tableFramer, error) {
	file, err := openTable(in, f.o, raw, planned, planned)
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
	t := &tableFramer{framing: f, file: file, rows: file.NewRows(), group: -1, over: true}
	for g := range file.Groups() {
		t.total += file.Rows(g)
	}
	return t, nil
}

func (t *tableFramer) state() uint32  { return uint32(t.given) }
func (t *tableFramer) restore(uint32) {}

// sum returns the checksum over the records before the position.
func (t *tableFramer) sum() Sum { return t.sumAfter(t.base) }

// sumAfter returns the checksum over the groups that a base is over, and the current one.
func (t *tableFramer) sumAfter(base Sum) Sum {
	if !t.hashed {
		return base
	}
	h := t.hasher.Sum128()
	var both [32]byte
	copy(both[:], base[:])
	binary.BigEndian.PutUint64(both[16:], h.Hi)
	binary.BigEndian.PutUint64(both[24:], h.Lo)
	return xxh3.Hash128(both[:]).Bytes()
}

// note adds a row's record to the checksum.
func (t *tableFramer) note(data []byte, null bool) {
	var head [9]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(data)))
	if null {
		head[8] = 1
	}
	t.hasher.Write(head[:]) // never fails
	t.hasher.Write(data)
	t.hashed = true
	t.bytes += int64(len(data)) + 1
}

// nextGroup goes to the next group of rows, io.EOF after the last one.
func (t *tableFramer) nextGroup() error {
	t.endGroup()
	t.base = t.sum()
	t.hasher.Reset()
	t.hashed = false
	if t.group+1 >= t.file.Groups() {
		return io.EOF
	}
	t.group++
	t.over = false
	return tableError(t.rows.Seek(t.group))
}

func (t *tableFramer) next(dst []byte, rec *Record) ([]byte, error) {
	rec.Offset = -1
	if t.o.Format == Chat {
		rec.Format = Chat
	}
	if t.inside {
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
	if t.o.TextField == "" {
		return t.object(dst, rec)
	}
	text, null := t.rows.Text()
	if null {
		t.note(nil, true)
		rec.Last, rec.Err = true, fault.Of(ErrUnknownField, "column %q is null", t.o.TextField)
		return dst, nil
	}
	t.text, t.given = text, 0
	return t.piece(dst, rec)
}

// advance goes to the next row, in the next group where the current one ends. If no row of that is wanted,
// it goes to the group's end instead, and returns the number of rows.
func (t *tableFramer) advance() (skipped int64, err error) {
	for {
		if !t.over {
			err := t.rows.Next()
			if err != io.EOF {
				return 0, tableError(err)
			}
			t.over = true
		}
		if err := t.nextGroup(); err != nil {
			return 0, err
		}
		if t.file.Skips(t.group) {
			t.over = true
			if n := t.file.Rows(t.group); n > 0 {
				t.noteGroup(n)
				return n, nil
			}
		}
	}
}

// noteGroup adds a group that is not read to the checksum.
func (t *tableFramer) noteGroup(rows int64) {
	var sizes [16]byte
	binary.LittleEndian.PutUint64(sizes[:], uint64(rows))
	binary.LittleEndian.PutUint64(sizes[8:], uint64(t.file.GroupBytes(t.group)))
	t.note(sizes[:], true)
}

// object gives the row as a JSON object.
func (t *tableFramer) object(dst []byte, rec *Record) ([]byte, error) {
	rec.Last = true
	start := len(dst)
	dst, over, err := t.rows.AppendJSON(dst, t.o.MaxRecordBytes)
	if err != nil {
		return dst, t.skip(rec, tableError(err))
	}
	t.note(dst[start:], over)
	if over {
		rec.Err = tooLarge(t.o.MaxRecordBytes)
	}
	return dst, nil
}

// piece gives the text of a row, or the next piece of a long one.
func (t *tableFramer) piece(dst []byte, rec *Record) ([]byte, error) {
	rec.Decoded = true
	rest := t.text[t.given:]
	if len(rest) <= t.o.PieceBytes {
		t.note(t.text, false)
		t.text, t.given = nil, 0
		t.inside, rec.Last = false, true
		return append(dst, rest...), nil
	}
	n := t.o.PieceBytes
	for ; ; n = min(2*n, t.o.MaxPieceBytes) {
		text := rest[:min(n, len(rest))]
		c := characterAligned(t.o.Cut, text)
		if c == 0 && n == t.o.MaxPieceBytes {
			rec.Forced = true
			if c = characterCut(text); c == 0 {
				c = len(text)
			}
		}
		if c > 0 {
			t.given += c
			t.inside = true
			return append(dst, text[:c]...), nil
		}
	}
}

// skip turns what an error says cannot be read into a bad record, if that may be passed over.
func (t *tableFramer) skip(rec *Record, cause error) error {
	if cause == io.EOF || !t.o.skips(cause) && !(t.o.SkipDamaged && errors.Is(cause, ErrUnsupported)) {
		return cause
	}
	lost, err := t.rows.Skip()
	if err != nil {
		return tableError(err)
	}
	var head [8]byte
	binary.LittleEndian.PutUint64(head[:], uint64(lost))
	t.note(head[:], true)
	rec.Last, rec.Rows, rec.Err = true, lost, &DamageError{Rows: lost, Err: cause}
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
	t.row += rec.Rows
	return data, nil
}

// consumed returns how much of a file of size bytes the rows that were read stand for.
func (t *tableFramer) consumed(size int64) int64 {
	if t.total == 0 {
		return size
	}
	return int64(float64(size) * min(1, float64(t.row)/float64(t.total)))
}

// groupOf returns the group that a position lies in. A position of an earlier version does not name
// it.
func (t *tableFramer) groupOf(at *Position) (group int) {
	if at.Group > 0 {
		return at.Group - 1
	}
	for left := at.Row; group < t.file.Groups() && left > t.file.Rows(group); group++ {
		left -= t.file.Rows(group)
	}
	return group
}

// goOn brings the framer to a position.
func (t *tableFramer) goOn(in *Input, at *Position) error {
	group := t.groupOf(at)
	if group >= t.file.Groups() {
		return &SourceChangedError{URI: in.URI, What: "number of groups of rows",
			Was: fmt.Sprint("at least ", at.Group), Is: fmt.Sprint(t.file.Groups())}
	}
	for g := range group {
		t.row += t.file.Rows(g)
	}
	t.group, t.base = group-1, at.Base
	var data []byte
	for t.row < at.Row || !at.Inside && t.sum() != at.Sum {
		before := t.row
		var err error
		if data, err = t.again(data[:0]); err == io.EOF || err == nil && t.group != group {
			return &SourceChangedError{URI: in.URI, What: "number of rows", Was: fmt.Sprint("at least ", at.Row),
				Is: fmt.Sprint(before)}
		}
		if err != nil {
			return err
		}
		if t.row > at.Row || before == at.Row && t.row > before {
			break // the sums differ
		}
	}
	if at.Inside {
		if _, err := t.advance(); err != nil {
			return err
		}
		if t.text, _ = t.rows.Text(); int64(at.State) > int64(len(t.text)) {
			return &SourceChangedError{URI: in.URI, What: "content"}
		}
		t.given, t.inside = int(at.State), true
	}
	if sum := t.sum(); sum != at.Sum {
		return &SourceChangedError{URI: in.URI, What: "content", Was: "checksum " + at.Sum.String(),
			Is: sum.String() + fmt.Sprintf(" over the first %d rows", at.Row)}
	}
	t.bytes = at.Offset
	return nil
}

// detectTable looks at a file of columns.
func (in *Input) detectTable(o *Options, refuse refusal) (hasText bool, what kind, err error) {
	raw, err := openRaw(in, o)
	if err != nil {
		return refuse(readable, err)
	}
	if in.once != nil {
		in.once.taken.Store(false)
		return refuse(dataset, fault.Of(ErrUnsupported,
			"%s is read at many places, and a pipe has one; save it to a file and name that", in.Format))
	}
	defer raw.Close()
	in.textBytes = 2 * in.Size
	file, err := openTable(in, o, raw, o.MetadataBytes, 0)
	var need *NeedError
	if errors.As(err, &need) { // the plan for the memory refuses it, and knows how much is enough
		in.window, in.why = need.Bytes, need.What
		return true, readable, nil
	}
	if err != nil {
		return refuse(readable, err)
	}
	in.window, in.why = file.MemoryBytes()
	rows := int64(0)
	for g := range file.Groups() {
		rows += file.Rows(g)
	}
	if o.Conditions != nil {
		in.columns = file.Columns()
	}
	return rows > 0, readable, nil
}

// tableChecksum reads all records of a file of columns.
func tableChecksum(in *Input, o *Options, raw *rawFile, planned int64) (f Finished, err error) {
	t, err := newTableFramer(in, framing{o: o}, raw, planned)
	if err != nil {
		return f, &InputError{URI: in.URI, Offset: -1, Err: err}
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
			return f, &InputError{URI: in.URI, Offset: -1, Err: err}
		}
	}
}

// tableFormat returns the format of a file of columns that begins like this, "" for other files.
func tableFormat(head []byte) Format {
	switch {
	case len(head) >= 12 && string(head[:4]) == "PAR1" && (len(head) <= 64 || checkText(head) != nil ||
		head[4] == 0x15):
		return Parquet
	case len(head) >= 8 && string(head[:8]) == "ARROW1\x00\x00", columnar.IsArrowStream(head):
		return Arrow
	}
	return ""
}
