package export

import (
	"errors"
	"fmt"
)

var (
	// ErrTooLong means that a document is longer than a format can hold.
	ErrTooLong = errors.New("document too long for the format")
	// ErrForeign means that the folder holds files that this export did not make.
	ErrForeign = errors.New("folder holds other files")
)

// OptionError reports an option that does not work with this dataset or folder.
type OptionError struct {
	Option string // "formats" or "out"
	Value  string
	Reason string // what is wrong and what to do instead
	Cause  error  // nil, or a sentinel of this package
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s %q: %s", e.Option, e.Value, e.Reason) }
func (e *OptionError) Unwrap() error { return e.Cause }
