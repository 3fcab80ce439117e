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
	or    []FieldPath // where it is several, of which the first that a record has counts; steps are those of the first
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
// them. Each may be several with | between, of which the first that a record has counts.
func ParseFieldPaths(s string) (paths []FieldPath, err error) {
	var named []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		var all []FieldPath
		for one := range strings.SplitSeq(part, "|") {
			p, err := ParseFieldPath(strings.TrimSpace(one))
			if err != nil {
				return nil, err
			}
			if slices.Contains(named, p.name) {
				return nil, fault.Of(ErrUnknownField, "fields %q: %q is named twice", s, p.name)
			}
			named, all = append(named, p.name), append(all, p)
		}
		if len(all) == 1 {
			paths = append(paths, all[0])
			continue
		}
		paths = append(paths, FieldPath{name: part, steps: all[0].steps, or: all})
	}
	return paths, nil
}

// oneOf writes the name of a path for messages: "a" or "b" where it is several.
func oneOf(name string) string { return strings.ReplaceAll(strconv.Quote(name), "|", `" or "`) }

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
func (p FieldPath) isPlain() bool { return len(p.steps) == 1 && p.steps[0].index < 0 && p.or == nil }

// uses returns the names of the fields of which a record's text may be made: those of the whole path, and their roots.
func (p FieldPath) uses() (names []string) {
	names = []string{p.name}
	if !p.isPlain() && p.or == nil {
		names = append(names, p.Root())
	}
	for _, one := range p.or {
		names = append(names, one.uses()...)
	}
	return names
}

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
