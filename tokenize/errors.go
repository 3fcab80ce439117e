package tokenize

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// The errors of a tokenizer file. The error that wraps one of them names the part of the file.
//
// ErrFormat, ErrTooLarge, ErrMemory and ErrAmbiguous have a kind, which errors.As finds with a
// var kind interface{ Kind() string }: "corrupt", "limit", "limit" and "usage".
var (
	// ErrUnsupported: the file asks for something that is not implemented.
	ErrUnsupported = spec.ErrUnsupported
	// ErrFormat: the file is not what it claims to be.
	ErrFormat = spec.ErrFormat
	// ErrTooLarge: the file exceeds a limit, Options.MaxMemory or that of a single component.
	ErrTooLarge = spec.ErrTooLarge
	// ErrMemory: the limit is Options.MaxMemory. It wraps ErrTooLarge.
	ErrMemory = spec.ErrMemory
	// ErrAmbiguous: the folder does not hold exactly one tokenizer.
	ErrAmbiguous = spec.Sentinel("usage", "the folder does not hold exactly one tokenizer")
	// ErrPattern: a .tiktoken file needs Options.Pattern, or the given pattern is not valid.
	ErrPattern = spec.ErrPattern
)

// FileError is a problem in a tokenizer file: where it is and what it is.
type FileError struct {
	File   string // path, or "" for data in memory
	Offset int64  // byte offset, -1 if none is known
	Err    error
}

// Error returns file, byte and reason in one line.
func (e *FileError) Error() string {
	s := "tokenizer"
	if e.File != "" {
		s = "tokenizer " + e.File
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf(": byte %d", e.Offset)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// inFile adds a file's name and the byte offset to an error.
func inFile(file string, err error) error {
	out := &FileError{File: file, Offset: -1, Err: err}
	if at, ok := errors.AsType[*jsonx.Error](err); ok {
		out.Offset, out.Err = int64(at.Offset), spec.Formatf("%s", at.Msg)
	}
	return out
}
