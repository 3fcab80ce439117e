package source

import (
	"cmp"
	"fmt"

	"github.com/dsload/dsload/internal/fault"
)

// RecordError is one bad record. Reading can continue after it.
type RecordError struct {
	URI    string
	Input  int
	Row    int64  // as Record.Row
	Offset int64  // of the record's first byte, after decompression; -1 where rows alone count
	Member string // the file of an archive that it lies in, "" for other inputs
	Cause  error
}

func (e *RecordError) Error() string {
	uri := e.URI
	if e.Member != "" {
		uri += ", member " + e.Member
	}
	if e.Offset < 0 {
		return fmt.Sprintf("read %s, row %d: %v", uri, e.Row, e.Cause)
	}
	return fmt.Sprintf("read %s, row %d at byte %d: %v", uri, e.Row, e.Offset, e.Cause)
}

func (e *RecordError) Unwrap() error { return e.Cause }

// Kind returns that of the cause, else fault.Corrupt.
func (e *RecordError) Kind() string { return cmp.Or(fault.KindOf(e.Cause), fault.Corrupt) }
