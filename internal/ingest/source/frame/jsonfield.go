package frame

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/jsonscan"
)

// A lineScanner finds one field of a JSON line that is longer than memory may hold, in a window that
// slides over it.
type lineScanner struct {
	jsonscan.Scanner
	w     *Window
	cause error // what is wrong
	blank bool  // the line held white space only
	keys  []string
	// names are the fields that were passed over and have a value, as far as they are counted
	names []string
}

// A LackError means that a record which is too long to come whole lacks the field that is wanted of it. It matches
// cause.UnknownField.
type LackError struct {
	Field string
	Has   []string // its first fields
}

func (e *LackError) Error() string {
	has := make([]string, len(e.Has))
	for i, name := range e.Has {
		has[i] = strconv.Quote(name)
	}
	return fmt.Sprintf("no field %q; the record has %s", e.Field, strings.Join(has, ", "))
}

// Unwrap returns cause.UnknownField.
func (e *LackError) Unwrap() error { return cause.UnknownField }

const (
	MaxKeysNamed = 20
	maxNames     = 1 << 10
)

func (s *lineScanner) begin() { s.cause, s.blank, s.keys, s.names = nil, false, s.keys[:0], nil }

// unread returns the names of the fields that were passed over since the last call.
func (s *lineScanner) unread() *[]string {
	names := s.names
	s.names = nil
	return &names
}

// look begins to scan what is left of the line.
func (s *lineScanner) look() {
	line, _, _ := bytes.Cut(s.w.Unread(), []byte("\n"))
	s.Slide(line, s.more)
}

// more consumes what the scanner has used and returns what is in the window of the rest of the line.
func (s *lineScanner) more(used int) (line []byte, ok bool) {
	s.w.Consume(used)
	ok = bytes.IndexByte(s.w.Unread(), '\n') < 0 && s.w.fill()
	line, _, _ = bytes.Cut(s.w.Unread(), []byte("\n"))
	return line, ok
}

// leave consumes what the scanner has used, and notes what is wrong.
func (s *lineScanner) leave(err error) (ok bool) {
	if e := (*jsonscan.Error)(nil); errors.As(err, &e) {
		err = s.problem(e)
	}
	s.w.Consume(s.Offset())
	s.cause = err
	return err == nil
}

// problems are what is wrong with the byte that was found, by the scanner's causes.
var problems = map[jsonscan.Cause]string{jsonscan.NoObject: " where '{' belongs", jsonscan.NoKey: ` where '"' belongs`,
	jsonscan.NoColon: " where ':' belongs", jsonscan.NoValue: " where a value belongs",
	jsonscan.NoComma: " after a value", jsonscan.NoSplit: " in a nested value", jsonscan.Trailing: " after the object"}

func (s *lineScanner) problem(e *jsonscan.Error) error {
	what := badString
	if after, ok := problems[e.Cause]; ok {
		what = named(e.Found) + after
	} else if e.Cause == jsonscan.TooDeep {
		what = string(e.Cause)
	}
	return s.malformed(what, e.Offset)
}

const badString = "a string ends early, or holds a control character or a bad escape"

// malformed returns the error at an offset in the window.
func (s *lineScanner) malformed(what string, at int) error {
	return fault.Of(cause.Malformed, "malformed JSON: %s, at byte %d of the file", what, s.w.Offset()+int64(at))
}

func named(b byte) string {
	if b == 0 {
		return "the end"
	}
	return "'" + printable(b) + "'"
}

// findField goes to the string of a field of the object that begins here, after its opening quote.
func (s *lineScanner) findField(name string) bool {
	s.look()
	if s.blank = s.Token() == 0 && len(s.Rest()) == 0; s.blank {
		s.w.Consume(s.Offset())
		s.w.Consume(min(1, len(s.w.Unread()))) // "\n"
		return false
	}
	err := s.Object()
	if err == nil {
		err = s.members(name, true)
	}
	return s.leave(err)
}

// finish reads what follows the string of a field that findField found, and the line's end.
func (s *lineScanner) finish(name string) bool {
	s.look()
	err := s.members(name, false)
	if err == nil {
		err = s.End()
	}
	if !s.leave(err) {
		return false
	}
	if len(s.w.Unread()) > 0 {
		s.w.Consume(1) // "\n"
		return true
	}
	return s.w.Failed() == nil
}

// members reads the object's members, the first or what follows one: to the wanted string, or to the
// end of an object that must not have it.
func (s *lineScanner) members(name string, wanted bool) error {
	for first := wanted; ; first = false {
		key, more, err := s.Member(first)
		switch {
		case err != nil:
			return err
		case !more && wanted:
			return &LackError{Field: name, Has: slices.Clone(s.keys)}
		case !more:
			return nil
		case s.IsKey(key, name) && !wanted:
			return s.malformed(fmt.Sprintf("field %q twice in a record that is too long to be held", name), s.Offset())
		case s.IsKey(key, name) && s.Token() != '"':
			return s.malformed(fmt.Sprintf("field %q is not a string", name), s.Offset())
		case s.IsKey(key, name):
			s.Enter()
			return nil
		}
		if len(s.keys) < MaxKeysNamed {
			s.keys = append(s.keys, fmt.Sprintf("%.100s", s.Key(key)))
		}
		if s.HasValue() && len(s.names) < maxNames {
			s.names = append(s.names, string(s.Key(key)))
		}
		if err := s.Skip(); err != nil {
			return err
		}
	}
}
