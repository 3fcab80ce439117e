package bytebpe

import (
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// Short names for the classes; "other" is the absence of letter, number and space.
const (
	letter = charclass.ClassLetter
	number = charclass.ClassNumber
	space  = charclass.ClassSpace
	mark   = charclass.ClassMark
	upper  = charclass.ClassUpper
	lower  = charclass.ClassLower
	lns    = letter | number | space
)

// char returns the classes and the size of the character at s[i]; past the end both are zero. A
// byte that is not part of valid UTF-8 is a character without a class.
func (m *Model) char(s []byte, i int) (class uint8, size int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return m.ascii[c&127], 1
	}
	if c := s[i]; c < 0xc2 || c > 0xf4 || i+1 == len(s) || s[i+1]&0xc0 != 0x80 {
		return 0, 1 // a fast path for most bytes of binary data
	}
	r, n := utf8.DecodeRune(s[i:])
	if n == 1 {
		return 0, 1
	}
	return m.class(r), n
}

// tokenEnd returns where the pre-token that begins at s[i] ends. It follows the patterns literally:
// it is the slow, plain scanner, and the others must agree with it.
func (m *Model) tokenEnd(s []byte, i int) int {
	switch m.split {
	case GPT2:
		return m.endGPT2(s, i)
	case CL100K:
		return m.endCL100K(s, i, 3)
	case Qwen2:
		return m.endCL100K(s, i, 1)
	case O200K:
		return m.endO200K(s, i)
	}
	return len(s)
}

// run returns the end of the run of characters from i for which class&mask == want.
func (m *Model) run(s []byte, i int, mask, want uint8) int {
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			if m.ascii[c&127]&mask != want {
				break
			}
			i++
			continue
		}
		k, n := m.char(s, i)
		if k&mask != want {
			break
		}
		i += n
	}
	return i
}

// contraction returns the length of one of 's 't 're 've 'm 'll 'd at s[i], or 0. With fold, case
// does not matter, and U+017F is an s.
func contraction(s []byte, i int, fold bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return 0
	}
	at := func(j int) byte {
		if j >= len(s) {
			return 0
		}
		if c := s[j]; fold && 'A' <= c && c <= 'Z' {
			return c | 0x20
		}
		return s[j]
	}
	switch a, b := at(i+1), at(i+2); {
	case a == 's', a == 't', a == 'm', a == 'd':
		return 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l', fold && a == 0xc5 && b == 0xbf:
		return 3
	}
	return 0
}

// endGPT2: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func (m *Model) endGPT2(s []byte, i int) int {
	if n := contraction(s, i, false); n > 0 {
		return i + n
	}
	k, n := m.char(s, i)
	if s[i] == ' ' && i+1 < len(s) {
		if k2, n2 := m.char(s, i+1); k2&space == 0 {
			return m.run(s, i+1+n2, lns, k2&lns)
		}
	}
	if k&space == 0 {
		return m.run(s, i+n, lns, k&lns)
	}
	return m.endSpaces(s, i)
}

// endSpaces: \s+(?!\S)|\s+
func (m *Model) endSpaces(s []byte, i int) int {
	last := i
	for e := i; ; {
		k, n := m.char(s, e)
		if n == 0 {
			return e
		}
		if k&space == 0 {
			if last == i {
				return e
			}
			return last
		}
		last, e = e, e+n
	}
}

func isNewline(c byte) bool { return c == '\n' || c == '\r' }

// endNewlines: \s*[\r\n]+, or 0.
func (m *Model) endNewlines(s []byte, i int) int {
	end := 0
	for {
		k, n := m.char(s, i)
		if k&space == 0 {
			return end
		}
		if isNewline(s[i]) {
			end = i + 1
		}
		i += n
	}
}

// endOther: ` ?[^\s\p{L}\p{N}]+[\r\n]*`, or 0; with slash, `[\r\n/]*` at the end.
func (m *Model) endOther(s []byte, i int, slash bool) int {
	if s[i] == ' ' {
		i++
	}
	e := m.run(s, i, lns, 0)
	if e == i {
		return 0
	}
	for e < len(s) && (isNewline(s[e]) || slash && s[e] == '/') {
		e++
	}
	return e
}

// endCL100K: (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func (m *Model) endCL100K(s []byte, i, digits int) int {
	if n := contraction(s, i, true); n > 0 {
		return i + n
	}
	k, n := m.char(s, i)
	if k&letter != 0 {
		return m.run(s, i+n, letter, letter)
	}
	if k&number == 0 && !isNewline(s[i]) {
		if k2, n2 := m.char(s, i+n); k2&letter != 0 {
			return m.run(s, i+n+n2, letter, letter)
		}
	}
	return m.endRest(s, i, digits, false)
}

// endRest: \p{N}{1,digits} and what follows it in cl100k and later patterns.
func (m *Model) endRest(s []byte, i, digits int, slash bool) int {
	k, n := m.char(s, i)
	if k&number != 0 {
		for e := i + n; ; e += n {
			digits--
			if k, n = m.char(s, e); k&number == 0 || digits == 0 {
				return e
			}
		}
	}
	if e := m.endOther(s, i, slash); e > 0 {
		return e
	}
	if e := m.endNewlines(s, i); e > 0 {
		return e
	}
	return m.endSpaces(s, i)
}

// Letters of the o200k pattern: upper case may begin a word, lower case may continue it, caseless
// letters and marks do both.
func beginsWord(k uint8) bool    { return k&(letter|lower) == letter || k&mark != 0 }
func continuesWord(k uint8) bool { return k&(letter|upper) == letter || k&mark != 0 }

// endO200K. With P = [^\r\n\p{L}\p{N}]?, U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W =
// [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C the contractions: PU*W+C?|PU+W*C?|\p{N}{1,3}|
// ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func (m *Model) endO200K(s []byte, i int) int {
	k, n := m.char(s, i)
	for alternative := range 2 {
		// The optional character is taken if the rest then matches.
		if k&(letter|number) == 0 && !isNewline(s[i]) {
			if e := m.endCased(s, i+n, alternative); e > 0 {
				return e
			}
		}
		if e := m.endCased(s, i, alternative); e > 0 {
			return e
		}
	}
	return m.endRest(s, i, 3, true)
}

// endCased: U*W+C? or, as alternative 1, U+W*C?; 0 if it does not match.
func (m *Model) endCased(s []byte, i, alternative int) int {
	e, both := i, 0 // both: the end of the last character in U that is also in W
	for e < len(s) {
		k, n := m.char(s, e)
		if !beginsWord(k) {
			break
		}
		e += n
		if continuesWord(k) {
			both = e
		}
	}
	if alternative == 1 && e == i {
		return 0
	}
	w := e
	for w < len(s) {
		k, n := m.char(s, w)
		if !continuesWord(k) {
			break
		}
		w += n
	}
	if alternative == 0 && w == e {
		// U* gives characters back until W+ matches: the last one that is in both.
		if w = both; w == 0 {
			return 0
		}
	}
	return w + contraction(s, w, true)
}
