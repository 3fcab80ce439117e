// Package cause has the causes for which an input or a record cannot be read, and the errors that name
// the input.
package cause

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
)

var (
	// TooLarge is the cause where a record that cannot be cut is longer than
	// Options.MaxRecordBytes.
	TooLarge = fault.New(fault.Corrupt, "record too large")
	// Malformed is the cause where a record breaks the rules of its format.
	Malformed = fault.New(fault.Corrupt, "malformed record")
	// UnknownField is the cause where a streamed JSON record has no field of the wanted name.
	UnknownField = fault.New(fault.Corrupt, "unknown field")
	// Records is the cause where records are not below the keys of Options.Records.
	Records = fault.New(fault.Usage, "no records below these keys")
	// Truncated is the cause where compressed data ends before its end mark.
	Truncated = fault.New(fault.Corrupt, "truncated")
	// Corrupt is the cause where compressed data contradicts itself.
	Corrupt = fault.New(fault.Corrupt, "corrupt")
	// Binary is the cause where an input is not text.
	Binary = fault.New(fault.Corrupt, "not text")
	// Unsupported is the cause where an address, a compression or a format is known but cannot
	// be read.
	Unsupported = fault.New(fault.Corrupt, "not supported")
	// NoDocuments is the cause where all inputs together hold no document.
	NoDocuments = fault.New(fault.Corrupt, "no documents")
	// Usage is the cause where an argument or a setting is wrong.
	Usage = fault.New(fault.Usage, "wrong usage")
	// NothingToRead is the cause where a folder, glob or archive gives no file: there are no documents, and
	// the argument is likely a mistake.
	NothingToRead = errors.Join(Usage, NoDocuments)
)

// InputError is a failure that ends the reading of an input.
type InputError struct {
	URI    string
	Offset int64 // bytes of text (after decompression) read before it; -1 if none was attempted
	Row    int64 // where reading failed, see source.Record; 0 if none was attempted
	Hint   string
	// Damaged reports that the input is damaged, and Options.SkipDamaged would leave out what cannot be
	// read of it.
	Damaged bool
	Err     error
}

// Unread is the error of an input of which nothing was read.
func Unread(uri string, err error) *InputError { return &InputError{URI: uri, Offset: -1, Err: err} }

func (e *InputError) Error() string {
	s := "read " + e.URI
	if e.Row > 0 {
		s += fmt.Sprintf(", row %d", e.Row)
	}
	if e.Offset > 0 {
		s += fmt.Sprintf(" at byte %d", e.Offset)
	}
	return s + ": " + e.Reason()
}

// Reason returns the error without its place.
func (e *InputError) Reason() string {
	if e.Hint != "" {
		return e.Err.Error() + "; " + e.Hint
	}
	return e.Err.Error()
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

// OfPath removes the path from an error that will be reported with the input's name.
func OfPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// ChangedError means that an input is not what it was when a position was taken.
type ChangedError struct {
	URI     string
	What    string // "size", "modification time", "content", "list of inputs"
	Was, Is string
	Planned bool // since a plan listed it
}

// Changed returns the error of what was one thing and is another.
func Changed(uri, what string, was, is any) *ChangedError {
	return &ChangedError{URI: uri, What: what, Was: fmt.Sprint(was), Is: fmt.Sprint(is)}
}

func (e *ChangedError) Error() string { return e.Message().String() }

// Existence is what changed of a file that was removed.
const Existence = "existence"

// Message returns the error's text.
func (e *ChangedError) Message() fault.Text {
	what, since, do := "resume", "the build began", fault.Textf("start afresh with {overwrite}")
	if e.Planned {
		what, since = "read", "the plan was made"
		do = fault.Textf("make the plan again, and build its partitions into another {out}")
	}
	if e.What == Existence {
		return fault.Textf("%s %s: it was removed since %s; restore it, or %v", what, e.URI, since, do)
	}
	change := ""
	if e.Was != "" || e.Is != "" {
		change = fmt.Sprintf(" (was %s, is %s)", e.Was, e.Is)
	}
	return fault.Textf("%s %s: its %s changed since %s%s; restore it, or %v", what, e.URI, e.What, since, change, do)
}

// Kind returns fault.Corrupt.
func (e *ChangedError) Kind() string { return fault.Corrupt }
