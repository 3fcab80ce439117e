package example

import (
	"bytes"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/jsonscan"
)

// A jsonFinder finds fields of JSON objects without allocating. A general decoder would spend three
// quarters of its time on unused values.
type jsonFinder struct {
	jsonscan.Scanner
	unused *Unused // notes the fields that are skipped; may be nil
	chosen string  // the path that choose chose last among several
}

// choose is find for a path that may be several: it returns the value of the first that has one, else the first value
// that is there. which is its path.
func (s *jsonFinder) choose(data []byte, path *FieldPath) (found foundValue, which *FieldPath, err error) {
	found, err = s.find(data, path)
	if path.or == nil || err != nil {
		return found, path, err
	}
	unused := s.unused
	s.unused = nil // once is enough
	defer func() { s.unused = unused }()
	which = &path.or[0]
	for i := 1; i < len(path.or) && !found.hasValue(); i++ {
		other, err := s.find(data, &path.or[i])
		if err != nil {
			return found, which, err
		}
		if other.hasValue() || found.kind == 0 || found.kind == 'n' && other.kind != 0 {
			found, which = other, &path.or[i]
		}
	}
	s.chosen = which.name
	return found, which, nil
}

// hasValue reports whether it is anything but null or an empty string.
func (v *foundValue) hasValue() bool {
	return v.kind != 0 && v.kind != 'n' && (v.kind != '"' || v.end-v.start > len(`""`))
}

// appendField appends to dst the string that a path leads to. Of several fields with one name the
// last counts, as in Python. lone is the number of lone surrogates that became U+FFFD.
func (s *jsonFinder) appendField(dst, data []byte, given *FieldPath) (text []byte, lone int, err error) {
	found, path, err := s.choose(data, given)
	if err != nil {
		return dst, 0, err
	}
	switch found.kind {
	case '"':
		text, lone = found.appendText(dst, data)
		return text, lone, nil
	case 0:
		return dst, 0, missingField(given.name, data)
	}
	return dst, 0, notText(path, found, data)
}

// appendJoined appends the strings of several fields with a blank line between them. It skips
// fields that are null or empty. It is an error if all are null.
func (s *jsonFinder) appendJoined(dst, data []byte, paths []FieldPath) (text []byte, lone int, err error) {
	start, nulls := len(dst), 0
	unused := s.unused
	defer func() { s.unused = unused }()
	for i := range paths {
		found, path, err := s.choose(data, &paths[i])
		s.unused = nil // once is enough
		switch {
		case err != nil:
			return dst[:start], 0, err
		case found.kind == 'n':
			nulls++
			continue
		case found.kind == 0:
			return dst[:start], 0, missingPart(missingField(paths[i].name, data))
		case found.kind != '"':
			return dst[:start], 0, notText(path, found, data)
		}
		if found.end-found.start == len(`""`) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, fieldSeparator...)
		}
		var n int
		dst, n = found.appendText(dst, data)
		lone += n
	}
	if nulls == len(paths) {
		return dst[:start], 0, fault.Of(ErrUnknownField, "all of the fields that are joined are null")
	}
	return dst, lone, nil
}

// fieldSeparator separates joined fields.
const fieldSeparator = "\n\n"

func notText(path *FieldPath, found foundValue, data []byte) error {
	kind, inside, byRow := "a number", "", false
	switch found.kind {
	case '{':
		kind = "an object"
		if path.isPlain() {
			inside = textInside(path.name, data[found.start:found.end])
		}
		byRow = bytes.HasPrefix(bytes.TrimLeft(data[found.start+1:found.end], " \t\r\n"), []byte(`"0":`))
	case '[':
		kind = "a list"
	case 'n':
		kind = Null
	case 't', 'f':
		kind = "a truth value"
	case 'N':
		kind = "NaN"
	}
	return &NotTextError{path.name, kind, inside, byRow}
}

// foundValue is the value that a path leads to: its first byte, 0 if there is none, and its offsets
// in the record. escaped is set for a string with escapes.
type foundValue struct {
	kind       byte
	start, end int
	escaped    bool
}

// appendText appends the text of a string in the record.
func (v *foundValue) appendText(dst, record []byte) (text []byte, lone int) {
	raw := record[v.start+1 : v.end-1]
	if !v.escaped {
		return append(dst, raw...), 0
	}
	return jsonscan.Unescape(dst, raw)
}

// find returns the value that a path leads to in a JSON object, and checks the grammar of the whole
// object.
func (s *jsonFinder) find(data []byte, p *FieldPath) (found foundValue, err error) {
	steps := p.steps
	if p.isPlain() {
		steps = nil
	}
	s.Reset(data)
	if err = s.Object(); err == nil {
		found, err = s.object(p.name, steps, s.unused)
	}
	if err == nil {
		err = s.End()
	}
	return found, values.Problem(err)
}

// object reads an object that was entered. It returns the value of its field of a name, else that which the steps
// lead to. unused notes the others.
func (s *jsonFinder) object(name string, steps []pathStep, unused *Unused) (literal foundValue, err error) {
	var nested foundValue
	for first := true; ; first = false {
		key, more, err := s.Member(first)
		switch {
		case err != nil:
		case !more && literal.kind != 0:
			return literal, nil
		case !more:
			return nested, nil
		case s.IsKey(key, name) && name != "":
			literal, err = s.takeValue()
		case len(steps) > 0 && s.IsKey(key, steps[0].field):
			nested, err = s.follow(steps[1:])
		default:
			err = unused.skip(&s.Scanner, key)
		}
		if err != nil {
			return literal, err
		}
	}
}

// takeValue reads a value and returns where it lies.
func (s *jsonFinder) takeValue() (v foundValue, err error) {
	v.kind, v.start = s.Token(), s.Offset()
	if v.kind == '"' {
		var span jsonscan.Span
		span, err = s.String()
		v.escaped = span.Escaped
	} else {
		err = s.Skip()
	}
	v.end = s.Offset()
	return v, err
}

// follow reads a value and returns the value inside it that the steps lead to.
func (s *jsonFinder) follow(steps []pathStep) (v foundValue, err error) {
	if len(steps) == 0 {
		return s.takeValue()
	}
	switch b := s.Token(); {
	case b == '{' && steps[0].index < 0:
		s.Enter()
		return s.object("", steps, nil)
	case b == '[' && steps[0].index >= 0:
		return s.followIndex(steps)
	}
	return v, s.Skip()
}

func (s *jsonFinder) followIndex(steps []pathStep) (v foundValue, err error) {
	s.Enter()
	for i := 0; ; i++ {
		more, err := s.Element(i == 0)
		if err != nil || !more {
			return v, err
		}
		if i == steps[0].index {
			v, err = s.follow(steps[1:])
		} else {
			err = s.Skip()
		}
		if err != nil {
			return v, err
		}
	}
}
