package source

import "slices"

// A schema is what is known of the fields of a set's records for Options.Conditions before they are read: files
// of columns and CSV show theirs.
type schema struct {
	has     []bool   // for each condition: an input has the field
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
