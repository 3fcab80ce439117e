package source

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/skip"
)

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
		in.window, in.why = need.Bytes+need.Bytes/64, need.What // as below
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
