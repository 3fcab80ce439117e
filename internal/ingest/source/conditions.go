package source

import (
	"slices"

	"github.com/dsload/dsload/internal/ingest/source/columnar"
)

// Conditions ask for fields that inputs with a schema, files of columns and CSV, show before they are read.

// A Condition is what is asked of a field of each record.
type Condition struct {
	Field string     // as it is named
	Names []string   // that a column with the field may have
	Paths [][]string // where its values may lie in a file of columns, as columnar.Condition has them
	// Folder reports whether the value that a folder's name gives meets the condition; null stands for no
	// value.
	Folder func(value string, null bool) bool
	// CanHold, where not nil, reports whether a row may meet the condition, of which a file of columns says
	// so much.
	CanHold func(Stats) bool
}

// Stats is what a file of columns says of the values of a column in a group of rows.
type Stats = columnar.Stats

// schema is what is known of the fields of a set's records for Options.Conditions.
type schema struct {
	has     []bool   // of the conditions: an input has the field
	first   []string // the fields of the first input that shows them
	unknown bool     // an input does not show them
	texts   []Input  // the first input whose records have no fields, if its folders do not decide everything
}

// add takes an input's columns in, nil if they are not known.
func (s *schema) add(o *Options, in *Input) {
	decided, _ := o.judge(in.URI)
	all := decided == 1<<len(o.Conditions)-1
	if in.Format.Kind() == Texts && !all && s.texts == nil {
		s.texts = []Input{*in}
	}
	if s.has == nil {
		s.has = make([]bool, len(o.Conditions))
	}
	for i, c := range o.Conditions {
		s.has[i] = s.has[i] || decided&(1<<i) != 0 ||
			slices.ContainsFunc(c.Names, func(n string) bool { return slices.Contains(in.columns, n) })
	}
	switch {
	case in.columns == nil && !all:
		s.unknown = true
	case s.first == nil:
		s.first = in.columns
	}
}

// Fieldless returns the first input whose records have no fields to meet Options.Conditions by.
func (s *Set) Fieldless() (in Input, ok bool) {
	if len(s.schema.texts) == 0 {
		return in, false
	}
	return s.schema.texts[0], true
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
