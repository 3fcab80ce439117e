package shardfile

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Errors that package shard gives its users under the same names, and what they mean.
var (
	ErrCorrupt   = NewError("corrupt", "corrupt")
	ErrTruncated = NewError("corrupt", "truncated")
	ErrTooLarge  = errors.New("too large")
	ErrRange     = errors.New("out of range")
)

// ErrLockLost is the error of a Lock whose file is gone: the folder may be another build's by now.
var ErrLockLost = errors.New("its lock file is gone")

// ErrOtherManifest reports a manifest.json of another program.
var ErrOtherManifest = fmt.Errorf("%w: another program's, and no dataset's manifest", ErrCorrupt)

// FileError is a data error: what is wrong with which file, and where. Offset and Row are -1 if
// they are unknown or do not apply; Row counts within the file.
type FileError struct {
	File   string
	Offset int64
	Row    int64
	Cause  error
}

func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Row >= 0 {
		fmt.Fprintf(&b, ", row %d", e.Row)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ", byte %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %v", e.Cause)
	return b.String()
}

func (e *FileError) Unwrap() error { return e.Cause }

// Kind returns that of the cause. What is too large in a file is "corrupt".
func (e *FileError) Kind() string {
	var cause interface{ Kind() string }
	switch {
	case errors.Is(e.Cause, ErrTooLarge):
		return "corrupt"
	case errors.As(e.Cause, &cause):
		return cause.Kind()
	}
	return ""
}

// WithoutPath strips operation and path from a file system's error, for messages that name both
// themselves.
func WithoutPath(err error) error {
	if failed, ok := err.(*fs.PathError); ok {
		return failed.Err
	}
	return err
}

// Wrong reports what is wrong with a file as a whole.
func Wrong(file string, cause error) error {
	return &FileError{File: file, Offset: -1, Row: -1, Cause: cause}
}

// Corrupt reports damage at a byte of a file (-1: no particular one); format and args say what is
// wrong.
func Corrupt(file string, offset int64, format string, args ...any) error {
	return &FileError{File: file, Offset: offset, Row: -1, Cause: fmt.Errorf("%w: %s", ErrCorrupt,
		fmt.Sprintf(format, args...))}
}

// Truncated reports a file that has fewer bytes than it must.
func Truncated(file string, have, want int64) error {
	return Wrong(file, fmt.Errorf("%w: %d of %d bytes", ErrTruncated, have, want))
}

type sentinel struct{ kind, text string }

func (e *sentinel) Error() string { return e.text }
func (e *sentinel) Kind() string  { return e.kind }

// NewError returns an error with a kind, for a variable.
func NewError(kind, text string) error { return &sentinel{kind, text} }

// ErrNotRegular reports a folder, link, pipe, socket or device where a file is expected. It wraps
// ErrCorrupt.
var ErrNotRegular = fmt.Errorf("%w: not a regular file", ErrCorrupt)

// LockedError reports who holds a dataset folder. PID is 0 if the holder could not be read.
type LockedError struct {
	Dir   string
	PID   int
	Host  string
	Start time.Time
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another build", e.Dir)
	}
	return fmt.Sprintf("%s is in use by another build: process %d on %s, since %s",
		e.Dir, e.PID, e.Host, e.Start.Format(time.RFC3339))
}
