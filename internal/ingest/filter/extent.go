package filter

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// An Extent is what is known of the values of a field in many records before any is read, such as what a
// parquet file says of a column of a row group.
type Extent struct {
	// Min and Max are JSON: two numbers, strings or truth values. No value is less than Min or greater than
	// Max. They are nil if that is not known.
	Min, Max []byte
	Null     bool // no record has a value
	NaN      bool // values may be NaN besides
}

// CanHold reports whether the conditions on the i-th field may hold for one of the records. It is true
// where that is not certain.
func (f *Filter) CanHold(i int, e Extent) bool {
	c := &f.where[i]
	if slices.ContainsFunc(c.values, func(w wanted) bool { return w.word == "null" }) {
		return true
	}
	if e.Null {
		return false
	}
	if len(e.Min) == 0 || len(e.Max) == 0 {
		return true
	}
	s := span{newOperand(e.Min), newOperand(e.Max), true, e.NaN}
	switch {
	case e.Min[0] == '"' && e.Max[0] == '"':
		s = span{min: operand{text: stringText(e.Min)}, max: operand{text: stringText(e.Max)}}
	case !s.min.isNumber || !s.max.isNumber:
		return true
	}
	return s.compare(&s.min, &s.max) > 0 || // its ends are not in order
		(len(c.values) == 0 || slices.ContainsFunc(c.values, s.has)) &&
			!slices.ContainsFunc(c.others, s.isOnly) && !slices.ContainsFunc(c.bounds, s.breaks)
}

// A span holds all values of an Extent.
type span struct {
	min, max operand
	numbers  bool // they are numbers, else texts
	nan      bool
}

func (s *span) compare(end, x *operand) int {
	if s.numbers {
		return end.number.compare(&x.number)
	}
	return bytes.Compare(end.text, x.text)
}

// has reports whether a value may equal w. Reading replaces what is not UTF-8 in some strings.
func (s *span) has(w wanted) bool {
	x := newOperand([]byte(w.text))
	if s.numbers && !x.isNumber || !s.numbers && (bytes.ContainsRune(x.text, utf8.RuneError) || !utf8.Valid(x.text)) {
		return true
	}
	return s.compare(&s.min, &x) <= 0 && s.compare(&s.max, &x) >= 0
}

// isOnly reports whether every value equals w.
func (s *span) isOnly(w wanted) bool {
	x := newOperand([]byte(w.text))
	known := utf8.Valid(x.text)
	if s.numbers {
		known = w.isNumber && !s.nan
	}
	return known && s.compare(&s.min, &x) == 0 && s.compare(&s.max, &x) == 0
}

// breaks reports whether no value meets b.
func (s *span) breaks(b bound) bool {
	end := &s.min
	if b.operator[0] == '>' {
		end = &s.max
	}
	return (!s.numbers || b.isNumber) && !b.allows(s.compare(end, &b.operand))
}
