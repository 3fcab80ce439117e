package source

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/skip"
)

func columnOptions(o *Options, in *Input) columnar.Options {
	c := columnar.Options{Text: o.TextField, Columns: o.Fields, Sparse: o.Format == Chat}
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
		if i := slices.IndexFunc(chatLists,
			func(name string) bool { return slices.Contains(column.Lists, name) }); i >= 0 {
			e.Chat = chatLists[i]
		}
		return e
	case errors.As(err, &size):
		return &NeedError{What: err.Error(), Advice: "write it again with smaller pages; of a file that is not on " +
			"this machine only the first row group is measured before the build, so copy it here and build from that",
			Bytes: size.Bytes}
	case errors.Is(err, columnar.ErrType):
		return fault.Of(cause.Unsupported, "%v", err)
	case errors.Is(err, columnar.ErrUnsupported):
		return fault.Of(cause.Unsupported, "%v; write the file again with the usual settings", err)
	case errors.Is(err, columnar.ErrCorrupt):
		return fault.Of(cause.Corrupt, "the file is damaged: %v; copy it again", err)
	}
	return err
}

// A ColumnError means that a file of columns has no such column, or that it does not hold text. It
// matches cause.UnknownField.
type ColumnError struct {
	Has   []string // the columns of text
	Chat  string   // a column of messages, or ""
	Later bool     // other inputs come before the file
	text  string
}

func (e *ColumnError) Error() string {
	has := strings.Join(e.Has[:min(len(e.Has), frame.MaxKeysNamed)], ", ")
	switch {
	case e.Chat != "":
		return fmt.Sprintf("%s; %q looks like the messages of a chat", e.text, e.Chat)
	case has == "":
		return e.text + ", and no other column is text"
	}
	return fmt.Sprintf("%s; the columns of text are %s", e.text, has)
}

// Unwrap returns cause.UnknownField.
func (e *ColumnError) Unwrap() error { return cause.UnknownField }

// NeedError means that a part of an input takes more memory than reading it may.
type NeedError struct {
	What   string
	Advice string
	Bytes  int64 // that it needs
}

func (e *NeedError) Error() string { return e.What + "; " + e.Advice }

// Kind returns fault.Limit.
func (e *NeedError) Kind() string { return fault.Limit }

// detectTable looks at a file of columns.
func (in *Input) detectTable(o *Options, refuse refusal) (hasText bool, what skip.Kind, err error) {
	raw, err := openRaw(in, o)
	if err != nil {
		return refuse(skip.Readable, err)
	}
	if in.once != nil {
		in.once.taken.Store(false)
		return refuse(skip.Unread, fault.Of(cause.Unsupported,
			"%s is read at many places, and a pipe has one; save it to a file and name that", in.Format))
	}
	defer raw.Close()
	in.textBytes = 2 * in.Size
	file, err := openTable(in, o, raw, o.MetadataBytes, 0)
	var need *NeedError
	if errors.As(err, &need) { // the plan for the memory refuses it, and knows how much is enough
		in.window, in.why = need.Bytes, need.What
		return true, skip.Readable, nil
	}
	if err != nil {
		return refuse(skip.Readable, err)
	}
	in.window, in.why = file.MemoryBytes()
	if in.why != "" {
		in.window += in.window / 64 // buffers of many MiB leave gaps in the heap
	}
	rows := int64(0)
	for g := range file.Groups() {
		rows += file.Group(g).Rows
	}
	if o.Conditions != nil {
		in.columns = file.Columns()
	}
	return rows > 0, skip.Readable, nil
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
