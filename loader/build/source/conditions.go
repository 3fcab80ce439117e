package source

import (
	"io"
	"slices"
)

// Conditions ask for fields that inputs with a schema, files of columns and CSV, show before they are read.

// schema is what is known of the fields of a set's records for Options.Conditions.
type schema struct {
	has     []bool   // of the conditions: an input has the field
	first   []string // the fields of the first input that shows them
	unknown bool     // an input does not show them
}

// add takes an input's columns in, nil if they are not known.
func (s *schema) add(o *Options, columns []string) {
	if s.has == nil {
		s.has = make([]bool, len(o.Conditions))
	}
	if columns == nil {
		s.unknown = true
		return
	}
	if s.first == nil {
		s.first = columns
	}
	for i, names := range o.Conditions {
		s.has[i] = s.has[i] || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(columns, n) })
	}
}

// Lacking returns the first of Options.Conditions whose field no record can have, by its number, and the
// fields of the first input; ok is false if there is none, or if that shows only when records are read.
func (s *Set) Lacking() (condition int, fields []string, ok bool) {
	if s.schema.unknown {
		return 0, nil, false
	}
	i := slices.Index(s.schema.has, false)
	return i, s.schema.first, i >= 0
}

// header returns the columns of CSV that begins with text, nil if they cannot be told from it.
func header(o *Options, text []byte, whole bool) []string {
	end := io.EOF
	if !whole {
		end = io.ErrUnexpectedEOF // a header that goes on is an error
	}
	c, err := newCSV(framing{w: &window{buf: text, w: len(text), err: end, limit: noLimit, max: len(text)}, o: o})
	if err != nil {
		return nil
	}
	return c.(*csvFramer).columns
}
