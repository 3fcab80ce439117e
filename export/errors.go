package export

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
)

var (
	// ErrTooLong means that a document is longer than a format can hold.
	ErrTooLong = errors.New("document too long for the format")
	// ErrForeign means that the folder holds files that this export did not make.
	ErrForeign = errors.New("folder holds other files")
)

func tooLong(format, why string, args ...any) error {
	return &fault.Error{Class: fault.Limit, Option: "formats", Value: format, What: fault.Textf(why, args...),
		Err: ErrTooLong}
}

func foreignOut(out, why string, args ...any) error {
	return &fault.Error{Class: fault.Usage, Option: "out", Value: out, What: fault.Textf(why, args...), Err: ErrForeign}
}
