package source

import (
	"errors"
	"io"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/zeebo/xxh3"
)

func columnOptions(o *Options, in *Input) columnar.Options {
	c := columnar.Options{Text: o.TextField, Columns: o.Fields, AnyOf: o.AnyOf, Sparse: o.Format == Chat, Spare: o.spare}
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
	o = o.ofColumns()
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
	if err == nil { // before what an error takes is allocated
		return nil
	}
	var column *columnar.ColumnError
	var size *columnar.SizeError
	switch {
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
	case errors.Is(err, columnar.ErrSeveral):
		return fault.Of(cause.Corrupt, "%v", err)
	case errors.Is(err, columnar.ErrCorrupt):
		return fault.Of(cause.Corrupt, "the file is damaged: %v; copy it again", err)
	}
	return err
}

// tableFormat returns the format of a file of columns that begins like this, "" for other files.
func tableFormat(head []byte) Format {
	switch {
	case len(head) >= 12 && string(head[:4]) == columnar.ParquetMagic && (len(head) <= 64 || checkText(head) != nil ||
		head[4] == 0x15):
		return Parquet
	case len(head) >= 8 && string(head[:8]) == columnar.ArrowMagic, columnar.IsArrowStream(head):
		return Arrow
	}
	return ""
}

// tailSum is the checksum of the end of a file of columns.
func tailSum(raw *rawFile) (sum checksum.Sum, err error) {
	at, size, err := raw.random()
	if err != nil {
		return sum, err
	}
	data := make([]byte, min(size, tailBytes))
	if _, err := at.ReadAt(data, size-int64(len(data))); err != nil && err != io.EOF {
		return sum, err
	}
	return xxh3.Hash128(data).Bytes(), nil
}

// tailBytes is how much of the end of a file of columns a plan compares: what describes its groups
// lies there.
const tailBytes = 64 << 10

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
		in.window, in.why = need.Bytes+need.Bytes/64, need.What // the window is as large as below
		return true, skip.Readable, nil
	}
	if err != nil {
		return refuse(skip.Readable, err)
	}
	in.window, in.why = file.MemoryBytes()
	if in.why != "" {
		in.window += in.window / 64 // buffers of many MiB leave gaps in the heap
	}
	if o.Conditions != nil {
		in.columns = file.Columns()
	}
	return rowsBefore(file, file.Groups()) > 0, skip.Readable, nil
}
