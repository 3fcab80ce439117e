package example

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
)

// A FieldPath names a value in a record: a field, or a value inside one, as in a.b[0].
//
// A field whose name is the whole path, dots and brackets included, takes precedence: a column may
// be called "meta.lang". The zero value names nothing.
type FieldPath struct {
	name  string // the path as it was written
	steps []pathStep
}

// A pathStep is a field of an object, or an element of a list.
type pathStep struct {
	field string
	index int // -1 for a field
}

// maxPathSteps bounds the depth of a path.
const maxPathSteps = 64

// ParseFieldPath parses a path: names separated by dots, each followed by any number of indexes in
// brackets, which count from 0.
func ParseFieldPath(s string) (FieldPath, error) {
	p := FieldPath{name: s}
	bad := func(why string) (FieldPath, error) {
		return FieldPath{}, fault.Of(ErrUnknownField, "field %q: %s; write a field as in text, a.b or a.b[0]", s, why)
	}
	if s == "" {
		return bad("the name is empty")
	}
	for part := range strings.SplitSeq(s, ".") {
		name, indexes := part, ""
		if i := strings.IndexByte(part, '['); i >= 0 {
			name, indexes = part[:i], part[i:]
		}
		if name == "" {
			return bad("a name in it is empty")
		}
		p.steps = append(p.steps, pathStep{name, -1})
		for indexes != "" {
			digits, rest, closed := strings.Cut(indexes[1:], "]")
			n, err := strconv.Atoi(digits)
			if indexes[0] != '[' || !closed || err != nil || n < 0 || digits[0] == '+' {
				return bad("the index in brackets must be a number from 0 on, and a dot or the end must follow")
			}
			p.steps = append(p.steps, pathStep{"", n})
			indexes = rest
		}
		if len(p.steps) > maxPathSteps {
			return bad(fmt.Sprintf("it leads deeper than %d levels", maxPathSteps))
		}
	}
	return p, nil
}

// ParseFieldPaths parses a list of distinct paths separated by commas, ignoring white space around
// them.
func ParseFieldPaths(s string) ([]FieldPath, error) {
	var paths []FieldPath
	for part := range strings.SplitSeq(s, ",") {
		p, err := ParseFieldPath(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(paths, func(q FieldPath) bool { return q.name == p.name }) {
			return nil, fault.Of(ErrUnknownField, "fields %q: %q is named twice", s, p.name)
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// String returns the path as written.
func (p FieldPath) String() string { return p.name }

// IsZero reports whether the path names nothing.
func (p FieldPath) IsZero() bool { return p.name == "" }

// Root returns the name of the field that the path begins with. It is the column to read, unless a
// column has the whole path as its name.
func (p FieldPath) Root() string {
	if len(p.steps) == 0 {
		return p.name
	}
	return p.steps[0].field
}

// isPlain reports whether the path is just the name of a field.
func (p FieldPath) isPlain() bool { return len(p.steps) == 1 && p.steps[0].index < 0 }

// Find returns the JSON text of the value that a path leads to in a JSON object, nil if there is
// none. Of several fields with one name the last counts. The whole record is checked: an error
// matches ErrMalformed.
func (p FieldPath) Find(record []byte) (value []byte, err error) {
	var s jsonFinder
	found, err := s.find(record, &p)
	if err != nil || found.kind == 0 {
		return nil, err
	}
	return record[found.start:found.end], nil
}

// Names returns the names of the fields on the way, nil if the path leads through a list.
func (p FieldPath) Names() []string {
	names := make([]string, len(p.steps))
	for i, step := range p.steps {
		if step.index >= 0 {
			return nil
		}
		names[i] = step.field
	}
	return names
}
