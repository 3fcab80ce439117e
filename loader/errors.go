package loader

import "fmt"

// OptionError is an invalid option.
//
// Messages of this package and those below it write the name of an option in backquotes, as a
// dataset's settings spell it: `max-length` for MaxLength. A program may replace it with its own
// name, as cmd/dsload does with the names of its flags.
type OptionError struct {
	Option string // its name in a dataset's settings, such as "max-length"
	Value  string
	Reason string // what is wrong and what to write instead
}

func (e *OptionError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("`%s`: %s", e.Option, e.Reason)
	}
	return fmt.Sprintf("`%s` %s: %s", e.Option, e.Value, e.Reason)
}

// BadOption returns an OptionError.
func BadOption(option, value, reason string) error { return &OptionError{option, value, reason} }
