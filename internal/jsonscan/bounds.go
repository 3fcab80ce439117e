package jsonscan

import (
	"bytes"
)

// A Bounds finds the end of a value, piece by piece, by its brackets and strings alone. It checks nothing
// inside the value.
type Bounds struct {
	depth    int
	inString bool
	escaped  bool // the next byte of the string is part of an escape
	scalar   bool
	Ended    bool // the end was found
	Bad      bool // no value begins here
}

// Skip returns how much of data belongs to the value.
func (s *Bounds) Skip(data []byte) int {
	for p := 0; p < len(data); p++ {
		b := data[p]
		if s.inString {
			if p = s.string(data, p); s.inString {
				return p
			}
			if s.depth == 0 {
				s.Ended = true
				return p + 1
			}
			continue
		}
		switch {
		case b == '"' && !s.scalar:
			s.inString = true
		case (b == '{' || b == '[') && !s.scalar:
			s.depth++
		case b == '}' || b == ']':
			if s.depth == 0 {
				s.Ended, s.Bad = s.scalar, !s.scalar
				return p
			}
			if s.depth--; s.depth == 0 {
				s.Ended = true
				return p + 1
			}
		case s.depth == 0 && (b == ',' || b == ' ' || b == '\t' || b == '\r' || b == '\n'):
			s.Ended, s.Bad = s.scalar, !s.scalar
			return p
		case s.depth == 0:
			s.scalar = true
		}
	}
	return len(data)
}

// string skips the inside of a string from p on: to its closing quote, or to the end of data.
func (s *Bounds) string(data []byte, p int) int {
	for quote := -1; p < len(data); { // quote is the next one, and stays for many escapes
		if s.escaped {
			s.escaped = false
			p++
			continue
		}
		if quote < p {
			n := bytes.IndexByte(data[p:], '"')
			if quote = p + n; n < 0 {
				quote = len(data)
			}
		}
		if i := bytes.IndexByte(data[p:quote], '\\'); i >= 0 {
			p += i + 1
			s.escaped = true
			continue
		}
		s.inString = quote == len(data)
		return quote
	}
	return p
}

// Finish reports whether the end of the input ends the value.
func (s *Bounds) Finish() bool { return s.Ended || s.scalar && s.depth == 0 && !s.inString }
