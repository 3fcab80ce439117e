package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Sentinel errors; test for them with errors.Is. Some have a kind, which errors.As finds with a
// var kind interface{ Kind() string }: "usage" where something cannot be done as it was asked for, "corrupt" where
// data is damaged or is not what it claims to be.
var (
	ErrCorrupt   = &sentinel{"corrupt", "corrupt"}   // bytes are not what was written
	ErrTruncated = &sentinel{"corrupt", "truncated"} // a file is shorter than it must be
	// a row, file or number beyond the limits of FORMAT.md
	ErrTooLarge  = errors.New("too large")
	ErrShardList = errors.New("the list of shards is full")       // Builder: Options.MaxShards reached
	ErrVersion   = &sentinel{"corrupt", "unknown format version"} // written by another dsload
	ErrNotFound  = &sentinel{"usage", "no dataset here"}          // a folder without manifest.json
	// Dataset: the folder no longer holds what was opened
	ErrReplaced  = errors.New("the dataset was replaced")
	ErrLockLost  = errors.New("its lock file is gone")             // Builder: the folder may be another build's by now
	ErrFinished  = errors.New("the dataset is already built")      // OpenBuilder: finished, with equal settings
	ErrForeign   = &sentinel{"usage", "folder holds other files"}  // OpenBuilder: not ours to build into
	ErrOrder     = errors.New("rows out of order")                 // Append: (document, part) did not grow
	ErrRange     = errors.New("out of range")                      // a row number or token id that does not exist
	ErrClosed    = errors.New("closed")                            // use after Close
	ErrNoSplit   = &sentinel{"usage", "no such split"}             // neither in the dataset nor a name of one
	ErrOtherPart = &sentinel{"corrupt", "not a part of this plan"} // Merge: a part or shard of another build
	ErrNoRows    = errors.New("no example was made")               // Merge: nothing to write a manifest of
	ErrSchema    = errors.New("row does not match the schema")     // columns missing, unknown or of the wrong length
)

// ErrNotRegular reports a folder, link, pipe, socket or device where a file is expected. It wraps
// ErrCorrupt.
var ErrNotRegular = fmt.Errorf("%w: not a regular file", ErrCorrupt)

type sentinel struct{ kind, text string }

func (e *sentinel) Error() string { return e.text }
func (e *sentinel) Kind() string  { return e.kind }

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

// withoutPath strips operation and path from a file system's error, for messages that name both
// themselves.
func withoutPath(err error) error {
	if failed, ok := err.(*fs.PathError); ok {
		return failed.Err
	}
	return err
}

// corrupt reports damage at a byte of a file (-1: no particular one); format and args say what is
// wrong.
func corrupt(file string, offset int64, format string, args ...any) error {
	return &FileError{File: file, Offset: offset, Row: -1, Cause: fmt.Errorf("%w: %s", ErrCorrupt,
		fmt.Sprintf(format, args...))}
}

// truncated reports a file that has fewer bytes than it must.
func truncated(file string, have, want int64) error {
	return &FileError{File: file, Offset: -1, Row: -1, Cause: fmt.Errorf("%w: %d of %d bytes", ErrTruncated, have,
		want)}
}

// SettingsError reports that a folder holds a build with other settings, and names the first one
// that differs (in sorted order, nested settings joined by dots). A setting that is absent on one
// side reads "unset".
type SettingsError struct {
	Dir  string
	Name string
	Have string // in the folder, as JSON
	Want string // asked for, as JSON
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("%s holds a build with %s = %s, not %s", e.Dir, e.Name, e.Have, e.Want)
}

// Kind returns "usage".
func (e *SettingsError) Kind() string { return "usage" }

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

// ErrUnfinished is the ErrNotFound of a folder whose build is unfinished.
var ErrUnfinished = fmt.Errorf("%w yet: its build is unfinished; "+
	"run the same build again to resume it", ErrNotFound)
