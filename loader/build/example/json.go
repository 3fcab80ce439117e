package example

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
)

// A jsonScanner finds one field of a JSON object and checks the grammar of all of it (RFC 8259),
// without allocating. A general decoder would spend three quarters of its time on unused values.
// NaN and infinities, which Python writes, count as numbers.
type jsonScanner struct {
	data    []byte
	pos     int
	nesting []byte // the open brackets
	key     []byte
}

// jsonSpan is the inside of a string.
type jsonSpan struct {
	start, end int
	escaped    bool
}

const maxNesting = 1000

// appendField appends to dst the string that a path leads to. Of several fields with one name the
// last counts, as in Python. lone is the number of lone surrogates that became U+FFFD.
func (s *jsonScanner) appendField(dst, data []byte, path *FieldPath) (text []byte, lone int, err error) {
	found, err := s.find(data, path)
	if err != nil {
		return dst, 0, err
	}
	switch found.kind {
	case '"':
		in := found.inside()
		text, lone = appendUnescaped(dst, data[in.start:in.end], in.escaped)
		return text, lone, nil
	case 0:
		return dst, 0, missingField(path.name, data)
	}
	return dst, 0, fault.Of(ErrUnknownField, "field %q is %s, not a string", path.name, kindName(found.kind))
}

// appendJoined appends the strings of several fields with a blank line between them. It skips
// fields that are null or empty. It is an error if all are null.
func (s *jsonScanner) appendJoined(dst, data []byte, paths []FieldPath) (text []byte, lone int, err error) {
	start, nulls := len(dst), 0
	for i := range paths {
		found, err := s.find(data, &paths[i])
		switch {
		case err != nil:
			return dst[:start], 0, err
		case found.kind == 'n':
			nulls++
			continue
		case found.kind == 0:
			return dst[:start], 0, missingPart(missingField(paths[i].name, data))
		case found.kind != '"':
			return dst[:start], 0, fault.Of(ErrUnknownField, "field %q is %s, not a string", paths[i].name,
				kindName(found.kind))
		}
		in := found.inside()
		if in.start == in.end {
			continue
		}
		if len(dst) > start {
			dst = append(dst, fieldSeparator...)
		}
		var n int
		dst, n = appendUnescaped(dst, data[in.start:in.end], in.escaped)
		lone += n
	}
	if nulls == len(paths) {
		return dst[:start], 0, fault.Of(ErrUnknownField, "all of the fields that are joined are null")
	}
	return dst, lone, nil
}

// fieldSeparator separates joined fields.
const fieldSeparator = "\n\n"

// openObject enters an object.
func (s *jsonScanner) openObject() error {
	if s.token() != '{' {
		return s.malformed("no object")
	}
	s.pos++
	return nil
}

// nextMember moves to the value of the next member of an object, or leaves the object if there is
// none. first is true for the first call in an object.
func (s *jsonScanner) nextMember(first bool) (key jsonSpan, more bool, err error) {
	b := s.token()
	if b == '}' {
		s.pos++
		return key, false, nil
	}
	if !first {
		if b != ',' {
			return key, false, s.malformed("no comma after a value")
		}
		s.pos++
	}
	key, err = s.skipKey()
	return key, true, err
}

func kindName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 'n':
		return "null"
	case 't', 'f':
		return "a truth value"
	case 'N':
		return "NaN"
	}
	return "a number"
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func (s *jsonScanner) malformed(format string, args ...any) error {
	return fault.Of(ErrMalformed, "malformed JSON at byte %d: %s", s.pos, fmt.Sprintf(format, args...))
}

// token skips white space and returns the byte after it, 0 at the end.
func (s *jsonScanner) token() byte {
	for s.pos < len(s.data) {
		b := s.data[s.pos]
		if b > ' ' || b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b
		}
		s.pos++
	}
	return 0
}

func (s *jsonScanner) isKey(key jsonSpan, name string) bool {
	raw := s.data[key.start:key.end]
	if !key.escaped {
		return string(raw) == name
	}
	s.key, _ = appendUnescaped(s.key[:0], raw, true)
	return string(s.key) == name
}

// skipString reads a string from its opening quote past its closing one.
func (s *jsonScanner) skipString() (jsonSpan, error) {
	span := jsonSpan{start: s.pos + 1}
	for p := s.pos + 1; p < len(s.data); p++ {
		switch b := s.data[p]; {
		case b == '"':
			span.end, s.pos = p, p+1
			return span, nil
		case b < ' ':
			s.pos = p
			return span, s.malformed("a control character in a string")
		case b == '\\':
			span.escaped = true
			n := escapeLen(s.data[p:])
			if n == 0 {
				s.pos = p
				return span, s.malformed("a bad escape")
			}
			p += n - 1
		}
	}
	s.pos = len(s.data)
	return span, s.malformed("a string is not closed")
}

// escapeLen returns the length of the escape that data begins with, 0 if there is none.
func escapeLen(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) >= 6 && hexValue(data[2:6]) >= 0 {
			return 6
		}
	}
	return 0
}

// hexValue returns the value of hexadecimal digits, -1 if one is invalid.
func hexValue(digits []byte) rune {
	var v rune
	for _, d := range digits {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d && d <= 'f':
			d -= 'a' - 10
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return -1
		}
		v = v<<4 | rune(d)
	}
	return v
}

// appendUnescaped decodes the inside of a string that skipString accepted.
func appendUnescaped(dst, raw []byte, escaped bool) (text []byte, lone int) {
	if !escaped {
		return append(dst, raw...), 0
	}
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(dst, raw...), lone
		}
		dst = append(dst, raw[:n]...)
		raw = raw[n:]
		if raw[1] != 'u' {
			dst = append(dst, "\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, raw[1])])
			raw = raw[2:]
			continue
		}
		r := hexValue(raw[2:6])
		raw = raw[6:]
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
				low = hexValue(raw[2:6])
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				lone++
			} else {
				raw = raw[6:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// skipValue reads any value.
func (s *jsonScanner) skipValue() error {
	base := len(s.nesting)
	for {
		switch b := s.token(); b {
		case '"':
			if _, err := s.skipString(); err != nil {
				return err
			}
		case '{', '[':
			s.pos++
			if len(s.nesting) == maxNesting {
				return s.malformed("nested deeper than %d", maxNesting)
			}
			s.nesting = append(s.nesting, b)
			if s.token() == b+2 {
				break // empty: closed below
			}
			if b == '{' {
				if _, err := s.skipKey(); err != nil {
					return err
				}
			}
			continue
		default:
			if err := s.skipScalar(); err != nil {
				return err
			}
		}
		more, err := s.close(base)
		if err != nil || !more {
			return err
		}
	}
}

// close continues after a value. more reports whether another follows before the nesting is back at
// base.
func (s *jsonScanner) close(base int) (more bool, err error) {
	for len(s.nesting) > base {
		open := s.nesting[len(s.nesting)-1]
		b := s.token()
		if b != open+2 && b != ',' {
			return false, s.malformed("no comma in a nested value")
		}
		s.pos++
		if b == ',' {
			if open == '{' {
				_, err := s.skipKey()
				return true, err
			}
			return true, nil
		}
		s.nesting = s.nesting[:len(s.nesting)-1]
	}
	return false, nil
}

// skipKey reads a key and its colon.
func (s *jsonScanner) skipKey() (key jsonSpan, err error) {
	if s.token() != '"' {
		return key, s.malformed("no key")
	}
	if key, err = s.skipString(); err != nil {
		return key, err
	}
	if s.token() != ':' {
		return key, s.malformed("no colon after a key")
	}
	s.pos++
	return key, nil
}

// skipScalar reads a number, true, false, null, or Python's NaN and infinities.
func (s *jsonScanner) skipScalar() error {
	rest := s.data[s.pos:]
	for _, word := range []string{"true", "false", "null", "NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			s.pos += len(word)
			return nil
		}
	}
	n, _ := NumberLen(rest)
	if n == 0 {
		return s.malformed("no value")
	}
	s.pos += n
	return nil
}

// NumberLen returns the length of the JSON number that data begins with, 0 if there is none.
// isFloat reports whether it has a fraction or an exponent.
func NumberLen(data []byte) (n int, isFloat bool) {
	digits := func() bool {
		start := n
		for n < len(data) && '0' <= data[n] && data[n] <= '9' {
			n++
		}
		return n > start
	}
	if n < len(data) && data[n] == '-' {
		n++
	}
	if n < len(data) && data[n] == '0' {
		n++
	} else if !digits() {
		return 0, false
	}
	if n < len(data) && data[n] == '.' {
		isFloat = true
		if n++; !digits() {
			return 0, false
		}
	}
	if n < len(data) && data[n]|0x20 == 'e' {
		isFloat = true
		if n++; n < len(data) && (data[n] == '+' || data[n] == '-') {
			n++
		}
		if !digits() {
			return 0, false
		}
	}
	return n, isFloat
}
