package columnar

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/fault"
)

var (
	// ErrCorrupt is the cause where a file contradicts itself or its format.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported is the cause where a file uses a part of its format that is not supported.
	ErrUnsupported = errors.New("not supported")
	// ErrType is the kind of ErrUnsupported where a column has an unsupported type. The error says
	// what to do.
	ErrType = fmt.Errorf("type: %w", ErrUnsupported)
	// ErrSeveral is the kind of ErrCorrupt where other bytes stand before or after the file, as where files were put
	// together. The error says what to do.
	ErrSeveral = fmt.Errorf("several files: %w", ErrCorrupt)
)

var errEncrypted = fault.Of(ErrUnsupported, "its columns are encrypted")

// errBefore is that of a file after another one.
var errBefore = fault.Of(ErrSeveral, "two files are in one, and reading it would find the rows of the second in the "+
	"first; keep each in a file of its own")

// What is wrong with the values of a page or dictionary that ends early.
const (
	shortPage       = "page has fewer values than its header says"
	shortDictionary = "dictionary has fewer values than its header says"
)

// SizeError means that a part of a file takes more memory than was planned for.
type SizeError struct {
	What  string // the page, dictionary or buffer
	Bytes int64  // what reading it takes at once
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s needs %d bytes of memory at once", e.What, e.Bytes)
}

func corrupt(format string, args ...any) error {
	return fault.Of(ErrCorrupt, format, args...)
}

func unreadType(format string, args ...any) error {
	return fault.Of(ErrType, format, args...)
}

func unsupported(format string, args ...any) error {
	return fault.Of(ErrUnsupported, format, args...)
}
