// Package jsonscan checks JSON and finds values in it, without building values of it.
//
// A Scanner walks over a text: one that is whole in memory, or one that slides through it. Strings
// are decoded by Unescape, or piece by piece by Decode. A Bounds finds where a value ends without
// checking it.
//
//	I1  Nothing is allocated but the open brackets, and for text that slides one key.
//	I2  The grammar is that of RFC 8259, and what Python writes besides: NaN and infinities are
//	    numbers, and half of a surrogate pair is a character, U+FFFD. UTF-8 is not checked.
//	I3  Text that slides gives the same however it comes in.
//
// The tokenizer reads its files by a scanner of its own (tokenize/internal/jsonx): that library
// imports nothing of ours, and has other rules. It refuses what serde_json refuses, lone surrogates
// among it, and rounds numbers as serde_json does.
package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A Cause is what can be wrong with a text.
type Cause string

// The causes.
const (
	NoObject   Cause = "no object"
	NoKey      Cause = "no key"
	NoColon    Cause = "no colon after a key"
	NoValue    Cause = "no value"
	NoComma    Cause = "no comma after a value"
	NoSplit    Cause = "no comma in a nested value"
	TooDeep    Cause = "nested deeper than 1000"
	Unclosed   Cause = "a string is not closed"
	BadControl Cause = "a control character in a string"
	BadEscape  Cause = "a bad escape"
	Trailing   Cause = "something after the object"
)

// MaxNesting is the maximum number of open brackets inside an object.
const MaxNesting = 1000

// An Error is what is wrong with a text.
type Error struct {
	Cause  Cause
	Offset int  // in the text, or in what is in memory of it
	Found  byte // the byte there, 0 at the end
}

func (e *Error) Error() string {
	return fmt.Sprintf("malformed JSON at byte %d: %s", e.Offset, e.Cause)
}

// A Scanner walks over a text. Its zero value is ready for Reset.
type Scanner struct {
	data    []byte
	pos     int
	nesting []byte // the open brackets
	key     []byte // the last string with escapes that was compared, or of text that slides
	more    func(used int) (data []byte, ok bool)
}

// Reset begins a text that is whole.
func (s *Scanner) Reset(data []byte) { s.data, s.pos, s.nesting, s.more = data, 0, s.nesting[:0], nil }

// Valid reports whether a text is a JSON value.
func Valid(text []byte) bool {
	var s Scanner
	s.Reset(text)
	return s.Skip() == nil && s.End() == nil
}

// Slide begins a text of which data is in memory. more drops bytes that are used and returns all
// that is in memory after them; ok is false if that is nothing new, since the text ends.
func (s *Scanner) Slide(data []byte, more func(used int) (data []byte, ok bool)) {
	s.Reset(data)
	s.more = more
}

// Offset returns the offset of the next byte, in what is in memory.
func (s *Scanner) Offset() int { return s.pos }

// Rest returns what is in memory from the next byte on.
func (s *Scanner) Rest() []byte { return s.data[s.pos:] }

// A Span is the inside of a string, between its quotes.
type Span struct {
	Start, End int
	Escaped    bool
}

// Raw returns a string as it is written.
func (s *Scanner) Raw(in Span) []byte { return s.data[in.Start:in.End] }

// Fail returns an error at the next byte.
func (s *Scanner) Fail(cause Cause) error {
	e := &Error{Cause: cause, Offset: s.pos}
	if s.pos < len(s.data) {
		e.Found = s.data[s.pos]
	}
	return e
}

// grow brings more of a text that slides into memory.
func (s *Scanner) grow() (ok bool) {
	if s.more != nil {
		s.data, ok = s.more(s.pos)
		s.pos = 0
	}
	return ok
}

// Token skips white space and returns the byte after it, 0 at the end.
func (s *Scanner) Token() (b byte) {
	if s.pos < len(s.data) {
		b = s.data[s.pos]
	}
	if b > ' ' {
		return b
	}
	return s.skipSpace()
}

// skipSpace is Token where it has white space to skip, or more of the text to bring into memory.
func (s *Scanner) skipSpace() byte {
	for {
		for s.pos < len(s.data) {
			b := s.data[s.pos]
			if b > ' ' || b != ' ' && b != '\t' && b != '\r' && b != '\n' {
				return b
			}
			s.pos++
		}
		if !s.grow() {
			return 0
		}
	}
}

// space skips a space, which is all that most writers put between two tokens.
func (s *Scanner) space() {
	if s.pos < len(s.data) && s.data[s.pos] == ' ' {
		s.pos++
	}
}

// HasValue reports whether the value that follows is anything but null, or an empty string, list or object.
func (s *Scanner) HasValue() bool {
	end := byte('"')
	switch s.Token() {
	case 'n', 0:
		return false
	case '[':
		end = ']'
	case '{':
		end = '}'
	case '"':
	default:
		return true
	}
	return s.pos+1 >= len(s.data) && (!s.grow() || len(s.data) < 2) || s.data[s.pos+1] != end
}

// End checks that nothing follows but white space.
func (s *Scanner) End() error {
	if s.Token() != 0 || s.pos < len(s.data) {
		return s.Fail(Trailing)
	}
	return nil
}

// Object enters an object.
func (s *Scanner) Object() error {
	if s.Token() != '{' {
		return s.Fail(NoObject)
	}
	s.pos++
	return nil
}

// Member goes to the value of the next member of an object, or leaves the object if there is none.
// first is true for the first call in an object.
func (s *Scanner) Member(first bool) (key Span, more bool, err error) {
	b := s.Token()
	if b == '}' {
		s.pos++
		return key, false, nil
	}
	if !first {
		if b != ',' {
			return key, false, s.Fail(NoComma)
		}
		s.pos++
		s.space()
	}
	key, err = s.readKey()
	return key, true, err
}

// Members reads an object, calling f where each value begins, which must read it. The key is valid
// until then.
func (s *Scanner) Members(f func(key []byte) error) error {
	if err := s.Object(); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, more, err := s.Member(first)
		if err != nil || !more {
			return err
		}
		if err := f(s.Key(key)); err != nil {
			return err
		}
	}
}

// Enter enters the list or string that Token found.
func (s *Scanner) Enter() { s.pos++ }

// Advance moves past n bytes, which are known to be a value.
func (s *Scanner) Advance(n int) { s.pos += n }

// Element goes to the next element of a list, or leaves the list if there is none. first is true
// for the first call in a list.
func (s *Scanner) Element(first bool) (more bool, err error) {
	b := s.Token()
	if first && b != ']' {
		return true, nil
	}
	if b != ',' && b != ']' {
		return false, s.Fail(NoSplit)
	}
	s.pos++
	return b == ',', nil
}

// IsKey reports whether the key that Member returned last is name.
func (s *Scanner) IsKey(key Span, name string) bool {
	if s.more == nil {
		raw := s.Raw(key)
		if !key.Escaped {
			return string(raw) == name
		}
		s.key, _ = Unescape(s.key[:0], raw)
	}
	return string(s.key) == name
}

// Key returns the key that Member returned last, until the next one is read.
func (s *Scanner) Key(key Span) []byte {
	if s.more == nil {
		if !key.Escaped {
			return s.Raw(key)
		}
		s.key, _ = Unescape(s.key[:0], s.Raw(key))
	}
	return s.key
}

// readKey reads a key and its colon.
func (s *Scanner) readKey() (key Span, err error) {
	if s.Token() != '"' {
		return key, s.Fail(NoKey)
	}
	if key, err = s.String(); err != nil {
		return key, err
	}
	if s.Token() != ':' {
		return key, s.Fail(NoColon)
	}
	s.pos++
	s.space()
	return key, nil
}

// String reads a string, from its opening quote on. Of text that slides only Key has it.
func (s *Scanner) String() (Span, error) {
	if s.more != nil {
		return Span{}, s.sliding()
	}
	data, pos := s.data, s.pos+1
	span := Span{Start: pos}
	if rest := data[pos:]; len(rest) >= wideBytes {
		if others := othersOf(binary.LittleEndian.Uint64(rest)); others != 0 { // a key, or another short string
			if pos += bits.TrailingZeros64(others) / 8; data[pos] == '"' {
				span.End, s.pos = pos, pos+1
				return span, nil
			}
		} else if hasWide {
			var n int
			n, span.Escaped = scanWide(rest, &escapes)
			pos += n
		}
	}
	for {
		pos += plainNarrow(data[pos:])
		if pos == len(data) {
			return span, s.failAt(pos, Unclosed)
		}
		switch c := data[pos]; {
		case c == '"':
			span.End = pos
			s.pos = pos + 1
			return span, nil
		case c != '\\':
			return span, s.failAt(pos, BadControl)
		case pos+1 < len(data) && escapes[data[pos+1]] != 0:
			pos += 2
		default:
			n := escapeLen(data[pos:])
			if n == 0 {
				return span, s.failAt(pos, BadEscape)
			}
			pos += n
		}
		span.Escaped = true
	}
}

// failAt moves to a byte and returns an error there.
func (s *Scanner) failAt(pos int, cause Cause) error {
	s.pos = pos
	return s.Fail(cause)
}

const (
	maxKeyBytes = 4 << 10 // bytes kept of a key in text that slides; the rest is dropped
	maxScalar   = 64      // bytes of a number in text that slides; only digits may follow
)

// sliding reads a string of text that slides into s.key.
func (s *Scanner) sliding() error {
	s.pos++
	s.key = s.key[:0]
	for {
		var n int
		var end StringEnd
		s.key, n, end = Decode(s.key, s.Rest(), maxKeyBytes)
		s.pos += n
		s.key = s.key[:min(len(s.key), maxKeyBytes)]
		switch {
		case end == Closed:
			s.pos++
			return nil
		case end == Bad:
			return s.Fail(BadControl)
		case n == 0 && !s.grow():
			return s.Fail(Unclosed)
		}
	}
}
