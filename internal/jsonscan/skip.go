package jsonscan

// Skip reads any value.
func (s *Scanner) Skip() error {
	base := len(s.nesting)
	for {
		switch b := s.Token(); b {
		case '"':
			if _, err := s.String(); err != nil {
				return err
			}
		case '{', '[':
			s.pos++
			if len(s.nesting) == MaxNesting {
				return s.Fail(TooDeep)
			}
			s.nesting = append(s.nesting, b)
			if s.Token() == b+2 {
				break // empty: closed below
			}
			if b == '{' {
				if _, err := s.readKey(); err != nil {
					return err
				}
			}
			continue
		default:
			if err := s.Scalar(); err != nil {
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
func (s *Scanner) close(base int) (more bool, err error) {
	for len(s.nesting) > base {
		open := s.nesting[len(s.nesting)-1]
		b := s.Token()
		if b != open+2 && b != ',' {
			return false, s.Fail(NoSplit)
		}
		s.pos++
		if b == ',' {
			if open == '{' {
				_, err := s.readKey()
				return true, err
			}
			return true, nil
		}
		s.nesting = s.nesting[:len(s.nesting)-1]
	}
	return false, nil
}

// Scalar reads a number, true, false, null, NaN or an infinity.
func (s *Scanner) Scalar() error {
	if s.more != nil {
		for len(s.Rest()) < maxScalar && s.grow() {
		}
	}
	rest := s.Rest()
	if s.more != nil {
		rest = rest[:min(len(rest), maxScalar)]
	}
	if n := wordLen(rest); n > 0 {
		s.pos += n
		return nil
	}
	n, _ := NumberLen(rest)
	if n == 0 {
		return s.Fail(NoValue)
	}
	s.pos += n
	for s.more != nil && n >= maxScalar && (s.pos < len(s.data) || s.grow()) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	return nil
}

// wordLen returns the length of the value that data begins with and that is a word, 0 if there is none.
func wordLen(data []byte) int {
	if len(data) == 0 || data[0] <= '9' && data[0] != '-' {
		return 0
	}
	for _, word := range [...]string{"true", "false", "null", "NaN", "Infinity", "-Infinity"} {
		if len(data) >= len(word) && string(data[:len(word)]) == word {
			return len(word)
		}
	}
	return 0
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// NumberLen returns the length of the JSON number that data begins with, 0 if there is none.
// isFloat reports whether it has a fraction or an exponent.
func NumberLen(data []byte) (n int, isFloat bool) {
	digits := func() bool {
		start := n
		for n < len(data) && isDigit(data[n]) {
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
