package main

import (
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/units"
)

// Packages name options as a dataset's settings do. Here they are flags or arguments.

// otherNames are the options that are not the flags of their names.
var otherNames = map[fault.Option]string{"dataset": "dataset", "source": "source", "formats": "--to"}

// flagName writes an option as people type it: --memory, or --memory 64MiB.
func flagName(option fault.Option, value any) string {
	name := "--" + string(option)
	if other, ok := otherNames[option]; ok {
		name = other
	}
	if value == nil {
		return name
	}
	if size, ok := value.(units.Size); ok {
		value = size.Exact()
	}
	return fmt.Sprintf("%s %v", name, value)
}

// flagNames writes options as flags, and the sizes of flags as they were typed among args.
func flagNames(args []string) fault.Names {
	return func(option fault.Option, value any) string {
		if _, isSize := value.(units.Size); isSize {
			if typed, ok := typedValue(args, string(option)); ok {
				value = typed
			}
		}
		return flagName(option, value)
	}
}

// typedValue returns what was typed for a flag. The last one counts.
func typedValue(args []string, flag string) (value string, ok bool) {
	for i, arg := range args {
		switch v, isThis := strings.CutPrefix(arg, "--"+flag+"="); {
		case arg == "--":
			return value, ok
		case isThis:
			value, ok = v, true
		case arg == "--"+flag && i+1 < len(args):
			value, ok = args[i+1], true
		}
	}
	return value, ok
}

// inFlags writes the options of a text as flags, for good.
func inFlags(texts ...*fault.Text) {
	for _, text := range texts {
		*text = fault.Plain(text.In(flagName))
	}
}

// notesInFlags does the same with lists of texts.
func notesInFlags(lists ...[]fault.Text) {
	for _, list := range lists {
		for i := range list {
			inFlags(&list[i])
		}
	}
}

// summaryForPeople writes the options in a build's summary as flags.
func summaryForPeople(s *report.Summary) {
	inFlags(&s.Stopped)
	notesInFlags(s.Notes, s.Warnings)
}
