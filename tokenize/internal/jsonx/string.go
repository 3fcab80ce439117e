package jsonx

import (
	"unicode/utf8"
)

// String reads a string.
func (s *Scanner) String() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start := s.pos
	rest := s.data[start:]
	n := verbatim(rest)
	switch {
	case n == len(rest):
		s.pos = len(s.data)
		return nil, s.Errorf("string without an end")
	case rest[n] == '"':
		s.pos = start + n + 1
		return rest[:n:n], nil
	case rest[n] == '\\':
		return s.escaped(start, start+n)
	}
	s.pos = start + n
	return nil, s.Errorf("control character in a string")
}

// special marks the bytes that do not stand for themselves in a string.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// verbatim returns how many bytes of a string stand for themselves.
func verbatim(rest []byte) int {
	for i, c := range rest {
		if special[c] {
			return i
		}
	}
	return len(rest)
}

// escaped reads the rest of a string whose first backslash is at i.
func (s *Scanner) escaped(start, i int) ([]byte, error) {
	s.buf = append(s.buf[:0], s.data[start:i]...)
	for i < len(s.data) {
		n := verbatim(s.data[i:])
		s.buf = append(s.buf, s.data[i:i+n]...)
		if i += n; i == len(s.data) {
			break
		}
		c := s.data[i]
		i++
		switch {
		case c == '"':
			s.pos = i
			return s.buf, nil
		case c < 0x20:
			s.pos = i - 1
			return nil, s.Errorf("control character in a string")
		}
		if i == len(s.data) {
			break
		}
		c = s.data[i]
		i++
		switch c {
		case '"', '\\', '/':
			s.buf = append(s.buf, c)
		case 'b':
			s.buf = append(s.buf, '\b')
		case 'f':
			s.buf = append(s.buf, '\f')
		case 'n':
			s.buf = append(s.buf, '\n')
		case 'r':
			s.buf = append(s.buf, '\r')
		case 't':
			s.buf = append(s.buf, '\t')
		case 'u':
			r, n, ok := s.unicode(i)
			if !ok {
				s.pos = i - 2
				return nil, s.Errorf("bad \\u escape")
			}
			i += n
			s.buf = utf8.AppendRune(s.buf, r)
		default:
			s.pos = i - 2
			return nil, s.Errorf("bad escape")
		}
	}
	s.pos = len(s.data)
	return nil, s.Errorf("string without an end")
}

func (s *Scanner) hex4(i int) (rune, bool) {
	if i+4 > len(s.data) {
		return 0, false
	}
	var r rune
	for _, c := range s.data[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unicode reads the digits after \u, and the second half of a surrogate pair.
func (s *Scanner) unicode(i int) (rune, int, bool) {
	r, ok := s.hex4(i)
	if !ok || r < 0xD800 || r > 0xDFFF {
		return r, 4, ok
	}
	if r >= 0xDC00 || i+6 > len(s.data) || s.data[i+4] != '\\' || s.data[i+5] != 'u' {
		return 0, 0, false
	}
	lo, ok := s.hex4(i + 6)
	if !ok || lo < 0xDC00 || lo > 0xDFFF {
		return 0, 0, false
	}
	return 0x10000 + (r-0xD800)<<10 + (lo - 0xDC00), 10, true
}
