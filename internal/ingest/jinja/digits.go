package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// maxDigits is the length of the longest text that Python's int() reads.
const maxDigits = 4300

// wholeNumber returns the number that Python's int() reads in a text, nil if there is none.
func wholeNumber(s string, base int) *big.Int {
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	if prefix := map[int]string{16: "0x", 8: "0o", 2: "0b"}[base]; prefix != "" && len(s) > 2 &&
		strings.EqualFold(s[:2], prefix) {
		s = strings.TrimPrefix(s[2:], "_")
	}
	if s = asciiNumber(s); s == "" || len(s) > maxDigits || s[0] == '-' || s[0] == '+' {
		return nil
	}
	n, ok := new(big.Int).SetString(sign+s, base)
	if !ok || n.BitLen() > maxBits {
		return nil
	}
	return n
}

// decimalNumber returns the number that Python's float() reads in a text.
func decimalNumber(s string) (float64, bool) {
	s = asciiNumber(s)
	if strings.ContainsAny(s, "xXpP") { // Go reads these
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0)
}

// asciiNumber returns a number with the digits 0 to 9 in place of other scripts' and without the
// underscores between digits, "" where an underscore stands elsewhere.
func asciiNumber(s string) string {
	var b strings.Builder
	digit := false // before this character
	for i, r := range s {
		switch {
		case r == '_':
			next := []rune(s[i+1 : min(len(s), i+5)])
			if !digit || len(next) == 0 || !unicode.IsDigit(next[0]) && !unicode.IsLetter(next[0]) {
				return ""
			}
			digit = false
			continue
		case r > unicode.MaxASCII && unicode.IsDigit(r):
			r = '0' + digitValue(r)
		}
		digit = unicode.IsDigit(r) || unicode.IsLetter(r)
		b.WriteRune(r)
	}
	return b.String()
}

// digitValue returns the value of a decimal digit of any script. The digits of a script follow each
// other from 0 to 9.
func digitValue(r rune) rune {
	n := rune(0)
	for unicode.IsDigit(r - n - 1) {
		n++
	}
	return n % 10
}
