package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
)

// InputError is a failure that ends the reading of an input.
type InputError struct {
	URI    string
	Offset int64 // bytes of text (after decompression) read before it; -1 if none was attempted
	Row    int64 // that reading failed at, as Record.Row; 0 if none was attempted
	Hint   string
	// Damaged reports that the input is damaged, and Options.SkipDamaged would leave out what cannot be
	// read of it.
	Damaged bool
	Err     error
}

// unread is the error of an input that nothing was read of.
func unread(uri string, err error) *InputError { return &InputError{URI: uri, Offset: -1, Err: err} }

func (e *InputError) Error() string {
	s := "read " + e.URI
	if e.Row > 0 {
		s += fmt.Sprintf(", row %d", e.Row)
	}
	if e.Offset > 0 {
		s += fmt.Sprintf(" at byte %d", e.Offset)
	}
	s += ": " + e.Err.Error()
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

func (e *InputError) Unwrap() error { return e.Err }

// Kind returns fault.Usage for an argument that names a missing file; a source that vanishes later is not
// wrong usage.
func (e *InputError) Kind() string {
	missing := errors.Is(e.Err, fs.ErrNotExist)
	switch {
	case missing && e.Offset < 0:
		return fault.Usage
	case missing, errors.Is(e.Err, fs.ErrPermission), errors.Is(e.Err, syscall.EIO):
		return "" // the file system failed, not the data
	}
	return fault.KindOf(e.Err)
}

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

// SourceChangedError means that an input is not what it was when a position was taken.
type SourceChangedError struct {
	URI     string
	What    string // "size", "modification time", "content", "list of inputs"
	Was, Is string
	Planned bool // since a plan listed it
}

func (e *SourceChangedError) Error() string { return e.Message().String() }

// Message returns the error's text.
func (e *SourceChangedError) Message() fault.Text {
	what, since, do := "resume", "the build began", fault.Textf("start afresh with {overwrite}")
	if e.Planned {
		what, since = "read", "the plan was made"
		do = fault.Textf("make the plan again, and build its partitions into another {out}")
	}
	change := ""
	if e.Was != "" || e.Is != "" {
		change = fmt.Sprintf(" (was %s, is %s)", e.Was, e.Is)
	}
	return fault.Textf("%s %s: its %s changed since %s%s; restore it, or %v", what, e.URI, e.What, since, change, do)
}

// Kind returns fault.Corrupt.
func (e *SourceChangedError) Kind() string { return fault.Corrupt }
