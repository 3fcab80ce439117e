// Package jsonx reads JSON as serde_json does, without building a tree of a vocabulary of
// megabytes.
//
// A Scanner walks over a document in memory. Strings are slices of the document if they contain no
// escapes, else of a scratch buffer; both are valid until the next string is read. Numbers are
// rounded exactly as serde_json rounds them without its float_roundtrip feature, which is not to
// nearest (see Float).
//
//	I1  Whatever the input, memory is bounded by the longest string, and nesting by maxDepth.
//	I2  Everything that serde_json rejects is an error: lone surrogates, control characters,
//	    trailing commas, leading zeros.
package jsonx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth is serde_json's recursion limit.
const maxDepth = 128

// Error is a problem at a byte of the document.
type Error struct {
	Offset int
	Msg    string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Msg) }

// ErrUTF8 reports that a document is not UTF-8.
var ErrUTF8 = errors.New("not valid UTF-8")

// Scanner reads one document.
type Scanner struct {
	data  []byte
	pos   int
	depth int
	buf   []byte
}

// NewScanner checks that data is UTF-8 and returns a Scanner at its beginning.
func NewScanner(data []byte) (*Scanner, error) {
	if !utf8.Valid(data) {
		return nil, ErrUTF8
	}
	return &Scanner{data: data}, nil
}

// Offset returns the position of the next unread byte.
func (s *Scanner) Offset() int { return s.pos }

// Rest returns the number of unread bytes.
func (s *Scanner) Rest() int { return len(s.data) - s.pos }

// Seek moves to a position at the same depth, such as the end of the value that begins here.
func (s *Scanner) Seek(offset int) { s.pos = offset }

// At returns a Scanner for the value at an offset. The two share no mutable state.
func (s *Scanner) At(offset int) *Scanner { return &Scanner{data: s.data, pos: offset} }

// Errorf returns an error at the current position.
func (s *Scanner) Errorf(format string, args ...any) error {
	return &Error{Offset: s.pos, Msg: fmt.Sprintf(format, args...)}
}

// space skips white space. Half of an indented file is blanks, so it skips eight at a time.
func (s *Scanner) space() {
	data, i := s.data, s.pos
	for i < len(data) {
		switch data[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			s.pos = i
			return
		}
		for i+8 <= len(data) && binary.LittleEndian.Uint64(data[i:]) == eightBlanks {
			i += 8
		}
	}
	s.pos = i
}

const eightBlanks = 0x2020202020202020

// Peek skips white space and returns the first byte of what follows, 0 at the end.
func (s *Scanner) Peek() byte {
	if s.pos < len(s.data) && s.data[s.pos] > ' ' {
		return s.data[s.pos]
	}
	s.space()
	if s.pos == len(s.data) {
		return 0
	}
	return s.data[s.pos]
}

// End checks that only white space is left.
func (s *Scanner) End() error {
	if s.Peek() != 0 || s.pos < len(s.data) {
		return s.Errorf("unexpected text after the value")
	}
	return nil
}

func (s *Scanner) expect(c byte) error {
	if s.Peek() != c || s.pos == len(s.data) {
		return s.Errorf("expected %q", c)
	}
	s.pos++
	return nil
}

// enter begins an object or array, and leave ends it.
func (s *Scanner) enter(c byte) error {
	if err := s.expect(c); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.Errorf("nested too deeply")
	}
	return nil
}

func (s *Scanner) leave() error {
	s.pos++
	s.depth--
	return nil
}

// Object reads an object, calling f after each key, with the Scanner at the value, which f must
// read. key is valid until the next string is read.
func (s *Scanner) Object(f func(key []byte) error) error {
	if err := s.enter('{'); err != nil {
		return err
	}
	for n := 0; ; n++ {
		switch c := s.Peek(); {
		case c == '}' && n == 0:
			return s.leave()
		case c != '"':
			return s.Errorf("expected a key")
		}
		key, err := s.String()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		switch s.Peek() {
		case ',':
			s.pos++
		case '}':
			return s.leave()
		default:
			return s.Errorf("expected ',' or '}'")
		}
	}
}

// Array reads an array, calling f at each element, which f must read.
func (s *Scanner) Array(f func() error) error {
	if err := s.enter('['); err != nil {
		return err
	}
	if s.Peek() == ']' {
		return s.leave()
	}
	for {
		if err := f(); err != nil {
			return err
		}
		switch s.Peek() {
		case ',':
			s.pos++
		case ']':
			return s.leave()
		default:
			return s.Errorf("expected ',' or ']'")
		}
	}
}

// Null reads null if it comes next, and reports whether it did.
func (s *Scanner) Null() bool {
	if s.Peek() == 'n' && bytes.HasPrefix(s.data[s.pos:], []byte("null")) {
		s.pos += 4
		return true
	}
	return false
}

// Bool reads true or false.
func (s *Scanner) Bool() (bool, error) {
	s.space()
	rest := s.data[s.pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		s.pos += 4
		return true, nil
	case bytes.HasPrefix(rest, []byte("false")):
		s.pos += 5
		return false, nil
	}
	return false, s.Errorf("expected true or false")
}

// Uint reads a non-negative integer of at most max.
func (s *Scanner) Uint(max uint64) (uint64, error) {
	at := s.pos
	s.space()
	if v, n := shortUint(s.data[s.pos:]); n > 0 && v <= max {
		s.pos += n
		return v, nil
	}
	raw, err := s.number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || v > max {
		return 0, &Error{Offset: at, Msg: "expected an integer from 0 to " + strconv.FormatUint(max, 10)}
	}
	return v, nil
}

// shortUint reads an integer of up to 18 digits and returns its length, 0 for any other number.
func shortUint(b []byte) (v uint64, n int) {
	for n < len(b) && b[n]-'0' < 10 {
		v = v*10 + uint64(b[n]-'0')
		n++
	}
	switch {
	case n > 18 || n > 1 && b[0] == '0':
		return 0, 0
	case n < len(b) && (b[n] == '.' || b[n] == 'e' || b[n] == 'E'):
		return 0, 0
	}
	return v, n
}

// Skip reads a value of any kind and drops it.
func (s *Scanner) Skip() error {
	switch c := s.Peek(); c {
	case '{':
		return s.Object(func([]byte) error { return s.Skip() })
	case '[':
		return s.Array(s.Skip)
	case '"':
		_, err := s.String()
		return err
	case 'n':
		if s.Null() {
			return nil
		}
	case 't', 'f':
		_, err := s.Bool()
		return err
	default:
		_, err := s.number()
		return err
	}
	return s.Errorf("expected a value")
}
