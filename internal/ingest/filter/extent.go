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
	var s span
	switch {
	case e.Min[0] == '"' && e.Max[0] == '"':
		s = &textSpan{stringText(e.Min), stringText(e.Max)}
	case isNumber(string(e.Min)) && isNumber(string(e.Max)):
		n := &numberSpan{nan: e.NaN}
		n.min, _ = parseNumber(e.Min)
		n.max, _ = parseNumber(e.Max)
		s = n
	default:
		return true
	}
	if !s.sound() {
		return true
	}
	if len(c.values) > 0 && !slices.ContainsFunc(c.values, s.has) {
		return false
	}
	return !slices.ContainsFunc(c.others, s.isOnly) &&
		!slices.ContainsFunc(c.bounds, func(b bound) bool { return !s.meets(&b) })
}

// A span holds all values of an Extent.
type span interface {
	sound() bool          // its ends are in order
	has(w wanted) bool    // a value may equal w
	isOnly(w wanted) bool // every value equals w
	meets(b *bound) bool  // a value may meet b
}

type numberSpan struct {
	min, max number
	nan      bool
}

func (s *numberSpan) sound() bool { return s.min.compare(&s.max) <= 0 }

func (s *numberSpan) has(w wanted) bool {
	n, ok := parseNumber([]byte(w.text))
	return !ok || s.min.compare(&n) <= 0 && s.max.compare(&n) >= 0
}

func (s *numberSpan) isOnly(w wanted) bool {
	n, ok := parseNumber([]byte(w.text))
	return ok && w.isNumber && !s.nan && s.min.compare(&n) == 0 && s.max.compare(&n) == 0
}

func (s *numberSpan) meets(b *bound) bool {
	return !b.isNumber || b.allows(s.end(b).compare(&b.number))
}

// end returns the value that meets a bound first.
func (s *numberSpan) end(b *bound) *number {
	if b.operator[0] == '>' {
		return &s.max
	}
	return &s.min
}

type textSpan struct{ min, max []byte }

func (s *textSpan) sound() bool { return bytes.Compare(s.min, s.max) <= 0 }

// has knows that reading replaces what is not UTF-8 in some strings.
func (s *textSpan) has(w wanted) bool {
	text := []byte(w.text)
	return bytes.ContainsRune(text, utf8.RuneError) || !utf8.Valid(text) ||
		bytes.Compare(s.min, text) <= 0 && bytes.Compare(s.max, text) >= 0
}

func (s *textSpan) isOnly(w wanted) bool {
	return utf8.ValidString(w.text) && string(s.min) == w.text && string(s.max) == w.text
}

func (s *textSpan) meets(b *bound) bool {
	if b.operator[0] == '>' {
		return b.allows(bytes.Compare(s.max, b.text))
	}
	return b.allows(bytes.Compare(s.min, b.text))
}
