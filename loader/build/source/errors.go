package source

import (
	"errors"
	"fmt"
)

var (
	// ErrTooLarge is the cause where a record that cannot be cut is longer than
	// Options.MaxRecordBytes.
	ErrTooLarge = errors.New("record too large")
	// ErrMalformed is the cause where a record breaks the rules of its format.
	ErrMalformed = errors.New("malformed record")
	// ErrUnknownField is the cause where a streamed JSON record has no field of the wanted name.
	ErrUnknownField = errors.New("unknown field")
	// ErrTruncated is the cause where compressed data ends before its end mark.
	ErrTruncated = errors.New("truncated")
	// ErrCorrupt is the cause where compressed data contradicts itself.
	ErrCorrupt = errors.New("corrupt")
	// ErrBinary is the cause where an input is not text.
	ErrBinary = errors.New("not text")
	// ErrUnsupported is the cause where an address, a compression or a format is known but cannot
	// be read.
	ErrUnsupported = errors.New("not supported")
	// ErrNoDocuments is the cause where all inputs together hold no document.
	ErrNoDocuments = errors.New("no documents")
	// ErrUsage is the cause where an argument or a setting is wrong.
	ErrUsage = errors.New("wrong usage")
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

// RecordError is one bad record. Reading can go on after it.
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

// SourceChangedError means that an input is not what it was when a position was taken.
type SourceChangedError struct {
	URI     string
	What    string // "size", "modification time", "content", "list of inputs"
	Was, Is string
	Planned bool // since a plan listed it
}

func (e *SourceChangedError) Error() string {
	what, since, afresh := "resume", "the build began", "start afresh with `overwrite`"
	if e.Planned {
		what, since, afresh = "read", "the plan was made",
			"make the plan again, and build its partitions into another `out`"
	}
	s := fmt.Sprintf("%s %s: its %s changed since %s", what, e.URI, e.What, since)
	if e.Was != "" || e.Is != "" {
		s += fmt.Sprintf(" (was %s, is %s)", e.Was, e.Is)
	}
	return s + "; restore it, or " + afresh
}

// problem is a cause with a sentence of its own that still matches its sentinel.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

func problemf(kind error, format string, args ...any) error {
	return &problem{kind, fmt.Sprintf(format, args...)}
}
