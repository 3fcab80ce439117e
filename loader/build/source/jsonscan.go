package source

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
)

// JSON has two scanners in dsload. This one follows a record through a window that slides over it,
// for records longer than memory may hold; package example's has the whole record before it, and
// its loops over one slice are what makes reading JSON lines fast. Neither package knows the other.

// A jsonScanner reads one JSON object from a window, a byte at a time, holding nothing but the
// nesting. It is strict as RFC 8259 is, except that NaN and infinities are numbers, and a raw line
// end ends the object wherever it stands: a JSON line has none.
type jsonScanner struct {
	w       *window
	cause   error  // what is wrong, set once
	blank   bool   // the line held white space only
	nesting []byte // the open brackets within the object
	keys    []string
	key     []byte
}

const (
	maxNesting  = 1000
	maxKeyBytes = 4 << 10 // a longer key is not looked at
	maxKeysTold = 20
)

func (s *jsonScanner) begin() {
	s.cause, s.blank, s.nesting, s.keys = nil, false, s.nesting[:0], s.keys[:0]
}

func (s *jsonScanner) fail(format string, args ...any) bool {
	if s.cause == nil {
		s.cause = fault.Of(ErrMalformed, "malformed JSON: %s, at byte %d of the file", fmt.Sprintf(format, args...),
			s.w.offset())
	}
	return false
}

// peek returns the next byte, 0 at the end of the line or of the input.
func (s *jsonScanner) peek() byte {
	if s.w.r == s.w.w && !s.w.fill() {
		return 0
	}
	if b := s.w.buf[s.w.r]; b != '\n' {
		return b
	}
	return 0
}

// token skips white space and returns the byte after it.
func (s *jsonScanner) token() byte {
	for {
		b := s.peek()
		if b != ' ' && b != '\t' && b != '\r' {
			return b
		}
		s.w.consume(1)
	}
}

func (s *jsonScanner) expect(want byte) bool {
	if b := s.token(); b != want {
		return s.fail("%s where %q belongs", named(b), want)
	}
	s.w.consume(1)
	return true
}

func named(b byte) string {
	if b == 0 {
		return "the end"
	}
	return "'" + printable(b) + "'"
}

// findField goes to the string of a field of the object that begins here, after its opening quote.
func (s *jsonScanner) findField(name string) bool {
	b := s.token()
	if b == 0 {
		s.blank = true
		if s.w.r < s.w.w {
			s.w.consume(1)
		}
		return false
	}
	if !s.expect('{') {
		return false
	}
	if s.token() != '}' {
		return s.members(name, true)
	}
	return s.unknown(name)
}

func (s *jsonScanner) unknown(name string) bool {
	s.cause = fault.Of(ErrUnknownField, "no field %q; the record has %s", name, strings.Join(s.keys, ", "))
	return false
}

// finish reads what follows the string of a field that findField found, and the line's end.
func (s *jsonScanner) finish(name string) bool {
	switch s.token() {
	case ',':
		s.w.consume(1)
		if !s.members(name, false) {
			return false
		}
	case '}':
		s.w.consume(1)
	default:
		return s.fail("%s after a value", named(s.peek()))
	}
	if b := s.token(); b != 0 {
		return s.fail("%s after the object", named(b))
	}
	if s.w.r < s.w.w {
		s.w.consume(1) // "\n"
		return true
	}
	return s.w.failed() == nil
}

// members reads the object's members from the first key on: to the wanted string, or to the end of
// an object that must not have it.
func (s *jsonScanner) members(name string, wanted bool) bool {
	for {
		if !s.expect('"') || !s.readKey() || !s.expect(':') {
			return false
		}
		if string(s.key) == name {
			switch {
			case !wanted:
				return s.fail("field %q twice in a record that is too long to be held", name)
			case s.token() != '"':
				return s.fail("field %q is not a string", name)
			}
			s.w.consume(1)
			return true
		}
		if len(s.keys) < maxKeysTold {
			s.keys = append(s.keys, fmt.Sprintf("%.100q", s.key))
		}
		if !s.skipValue() {
			return false
		}
		switch b := s.token(); b {
		case ',':
			s.w.consume(1)
		case '}':
			s.w.consume(1)
			if wanted {
				return s.unknown(name)
			}
			return true
		default:
			return s.fail("%s after a value", named(b))
		}
	}
}

// readKey reads a string to its end and keeps it in key, cut at maxKeyBytes.
func (s *jsonScanner) readKey() bool {
	s.key = s.key[:0]
	for {
		s.w.need(64)
		data := s.w.unread()
		data = data[:min(len(data), 4<<10)]
		var raw int
		var end stringEnd
		s.key, raw, end = decodeString(s.key, data, len(data))
		s.w.consume(raw)
		if len(s.key) > maxKeyBytes {
			s.key = s.key[:maxKeyBytes]
		}
		if end == stringClosed {
			s.w.consume(1)
			return true
		}
		if end == stringBad || raw == 0 {
			return s.fail("a string ends early, or holds a control character or a bad escape")
		}
	}
}

// skipValue reads any value.
func (s *jsonScanner) skipValue() bool {
	base := len(s.nesting)
	for {
		switch b := s.token(); {
		case b == '"':
			s.w.consume(1)
			if !s.readKey() {
				return false
			}
		case b == '{' || b == '[':
			s.w.consume(1)
			if len(s.nesting) == maxNesting {
				return s.fail("nested deeper than %d", maxNesting)
			}
			s.nesting = append(s.nesting, b)
			if s.token() == b+2 {
				break // empty: closed below
			}
			if b == '{' && (!s.expect('"') || !s.readKey() || !s.expect(':')) {
				return false
			}
			continue
		default:
			if !s.scalar() {
				return false
			}
		}
		for {
			if len(s.nesting) == base {
				return true
			}
			open := s.nesting[len(s.nesting)-1]
			b := s.token()
			if b == open+2 {
				s.w.consume(1)
				s.nesting = s.nesting[:len(s.nesting)-1]
				continue
			}
			if b != ',' {
				return s.fail("%s in a nested value", named(b))
			}
			s.w.consume(1)
			if open == '{' && (!s.expect('"') || !s.readKey() || !s.expect(':')) {
				return false
			}
			break
		}
	}
}

// scalar reads a number, true, false or null, or what Python writes for numbers that JSON has none
// for.
func (s *jsonScanner) scalar() bool {
	var word [64]byte
	n := 0
	for ; n < len(word); n++ {
		b := s.peek()
		if !(b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b == 'E' || b == 'N' || b == 'I' || b == '+' ||
			b == '-' || b == '.') {
			break
		}
		word[n] = b
		s.w.consume(1)
	}
	switch w := string(word[:n]); {
	case n == len(word):
		return s.skipDigits()
	case w == "true" || w == "false" || w == "null" || isNumber(w):
		return true
	case w == "NaN" || w == "Infinity" || w == "-Infinity":
		return true // no JSON, but Python writes it
	case n == 0:
		return s.fail("%s where a value belongs", named(s.peek()))
	default:
		return s.fail("%q is not a value", w)
	}
}

// skipDigits reads the rest of a number that is unreasonably long.
func (s *jsonScanner) skipDigits() bool {
	for b := s.peek(); b >= '0' && b <= '9'; b = s.peek() {
		s.w.consume(1)
	}
	return true
}

// isNumber reports whether w is a number in JSON's grammar.
func isNumber(w string) bool {
	digits := func() bool {
		n := len(w)
		w = strings.TrimLeft(w, "0123456789")
		return len(w) < n
	}
	w = strings.TrimPrefix(w, "-")
	if strings.HasPrefix(w, "0") {
		w = w[1:]
	} else if !digits() {
		return false
	}
	if strings.HasPrefix(w, ".") {
		if w = w[1:]; !digits() {
			return false
		}
	}
	if w != "" && (w[0] == 'e' || w[0] == 'E') {
		if w = w[1:]; w != "" && (w[0] == '+' || w[0] == '-') {
			w = w[1:]
		}
		if !digits() {
			return false
		}
	}
	return w == ""
}

type stringEnd int

const (
	stringOpen   stringEnd = iota // data or maxText ended first
	stringClosed                  // the next byte is the closing quote
	stringBad                     // the next byte cannot be part of a string
)

// decodeString appends the text of a JSON string, whose inside data begins with, to dst: at most
// until maxText bytes are appended, and never half of a character or of an escape. raw is how much
// of data it took. Lone surrogates become U+FFFD; ill-formed UTF-8 stays as it is.
func decodeString(dst, data []byte, maxText int) (text []byte, raw int, end stringEnd) {
	limit := len(dst) + maxText
	for raw < len(data) && len(dst) < limit {
		switch b := data[raw]; {
		case b == '"':
			return dst, raw, stringClosed
		case b < ' ':
			return dst, raw, stringBad
		case b != '\\':
			run := data[raw:]
			run = run[:min(len(run), limit-len(dst))]
			for i, c := range run {
				if c < ' ' || c == '"' || c == '\\' {
					run = run[:i]
					break
				}
			}
			dst = append(dst, run...)
			raw += len(run)
		default:
			r, size := decodeEscape(data[raw:])
			if size <= 0 {
				if size < 0 {
					return dst, raw, stringBad
				}
				return dst, raw, stringOpen
			}
			dst = utf8.AppendRune(dst, r)
			raw += size
		}
	}
	if raw < len(data) && data[raw] == '"' {
		return dst, raw, stringClosed
	}
	return dst, raw, stringOpen
}

// decodeEscape decodes the escape at the beginning of data. size is 0 if it goes on after data,
// -1 if it is not an escape.
func decodeEscape(data []byte) (r rune, size int) {
	if len(data) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, data[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	if data[1] != 'u' {
		return 0, -1
	}
	high, size := decodeHex(data)
	if size != 6 || !utf16.IsSurrogate(high) {
		return high, size
	}
	if high >= 0xdc00 {
		return utf8.RuneError, 6
	}
	rest := data[6:]
	if len(rest) > 0 && rest[0] != '\\' || len(rest) > 1 && rest[1] != 'u' {
		return utf8.RuneError, 6
	}
	if len(rest) < 6 {
		return 0, 0 // the other half may follow
	}
	low, size := decodeHex(rest)
	if size != 6 || low < 0xdc00 || low > 0xdfff {
		return utf8.RuneError, 6
	}
	return utf16.DecodeRune(high, low), 12
}

// decodeHex decodes \uXXXX, with sizes as decodeEscape has them.
func decodeHex(data []byte) (r rune, size int) {
	for i := 2; i < 6; i++ {
		if i >= len(data) {
			return 0, 0
		}
		d := strings.IndexByte("0123456789abcdef", data[i]|0x20)
		if d < 0 || data[i] < '0' {
			return 0, -1
		}
		r = r<<4 | rune(d)
	}
	return r, 6
}
