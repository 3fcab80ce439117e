package filter

import (
	"bytes"
	"cmp"

	"github.com/dsload/dsload/internal/jsonscan"
)

// A bound is a comparison by order. Two numbers are compared as numbers, exactly, with any number of
// digits; else texts are, by their characters.
type bound struct {
	operator string // ">=", "<=", ">" or "<"
	operand
}

// An operand is a text, and the number that it is.
type operand struct {
	text     []byte
	number   number
	isNumber bool
}

func newOperand(text []byte) operand {
	n, isNumber := parseNumber(text)
	return operand{text, n, isNumber}
}

// allows reports whether the bound holds for a value that compares so with it.
func (b *bound) allows(order int) bool {
	switch b.operator {
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order < 0
}

// holdsJSON compares with a JSON value: strings as texts, a number as one if the bound is one. A list
// meets the bound if one of its elements that is not a list does. true, false, null, NaN and objects
// never do.
func (b *bound) holdsJSON(value []byte) bool {
	switch value[0] {
	case '"':
		return b.allows(bytes.Compare(stringText(value), b.text))
	case '[':
		return anyElement(value, b.holdsJSON)
	case '{', 't', 'f', 'n':
		return false
	}
	n, ok := parseNumber(value)
	switch {
	case !ok: // NaN
		return false
	case !b.isNumber:
		return b.allows(bytes.Compare(value, b.text))
	}
	return b.allows(n.compare(&b.number))
}

// anyElement reports whether f holds for an element of a list that is not a list.
func anyElement(list []byte, f func(value []byte) bool) bool {
	var s jsonscan.Scanner
	s.Reset(list)
	s.Token()
	s.Enter()
	for first := true; ; first = false {
		if more, err := s.Element(first); err != nil || !more {
			return false
		}
		kind, start := s.Token(), s.Offset()
		if s.Skip() != nil {
			return false
		}
		if kind != '[' && f(list[start:s.Offset()]) {
			return true
		}
	}
}

// stringText returns the text of a JSON string.
func stringText(value []byte) []byte {
	inside := value[1 : len(value)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	text, _ := jsonscan.Unescape(nil, inside)
	return text
}

// holdsText compares with an untyped text.
func (b *bound) holdsText(text []byte) bool {
	if b.isNumber {
		if n, ok := parseNumber(text); ok {
			return b.allows(n.compare(&b.number))
		}
		if isNaN(text) {
			return false
		}
	}
	return b.allows(bytes.Compare(text, b.text))
}

// A number is a decimal number of any size: sign × 0.d1d2d3… × 10^point, where d1 is not 0. Its digits lie
// in the text that it was parsed from.
type number struct {
	sign            int // -1, 0 or 1
	infinite        bool
	whole, fraction []byte // the digits
	point           int
}

// maxPoint is where exponents end: a larger one counts as this.
const maxPoint = 1 << 40

// parseNumber parses a number as JSON writes it, or with a plus sign, zeros before it, white space around
// it, or no digit on one side of its point; inf and infinity too. ok is false for NaN and other texts.
func parseNumber(text []byte) (n number, ok bool) {
	rest := bytes.TrimSpace(text)
	n.sign = 1
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		if rest[0] == '-' {
			n.sign = -1
		}
		rest = rest[1:]
	}
	if bytes.EqualFold(rest, []byte("inf")) || bytes.EqualFold(rest, []byte("infinity")) {
		n.infinite = true
		return n, true
	}
	n.whole = leadingDigits(rest)
	rest = rest[len(n.whole):]
	if len(rest) > 0 && rest[0] == '.' {
		n.fraction = leadingDigits(rest[1:])
		rest = rest[1+len(n.fraction):]
	}
	if len(n.whole)+len(n.fraction) == 0 {
		return n, false
	}
	exponent, ok := parseExponent(rest)
	if !ok {
		return n, false
	}
	n.whole = bytes.TrimLeft(n.whole, "0")
	n.point = len(n.whole) + exponent
	if len(n.whole) == 0 {
		digits := len(n.fraction)
		n.fraction = bytes.TrimLeft(n.fraction, "0")
		n.point -= digits - len(n.fraction)
	}
	if len(n.whole)+len(n.fraction) == 0 {
		n.sign, n.point = 0, 0
	}
	return n, true
}

// jsonNumber is parseNumber for a number as JSON writes it: ok is false for others, such as 007.
func jsonNumber(text []byte) (n number, ok bool) {
	if length, _ := jsonscan.NumberLen(text); length == 0 || length < len(text) {
		return n, false
	}
	return parseNumber(text)
}

// leadingDigits returns the decimal digits that text begins with.
func leadingDigits(text []byte) []byte {
	return text[:len(text)-len(bytes.TrimLeft(text, "0123456789"))]
}

// parseExponent parses what follows the digits of a number: nothing, or an exponent.
func parseExponent(text []byte) (exponent int, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0]|0x20 != 'e' {
		return 0, false
	}
	sign, digits := 1, text[1:]
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		if digits[0] == '-' {
			sign = -1
		}
		digits = digits[1:]
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		exponent = min(10*exponent+int(d-'0'), maxPoint)
	}
	return sign * exponent, len(digits) > 0
}

func isNaN(text []byte) bool { return bytes.EqualFold(text, []byte("nan")) }

func isNumber(text string) bool {
	_, ok := parseNumber([]byte(text))
	return ok
}

// compare returns -1, 0 or 1 as n is less than, equal to or greater than other.
func (n *number) compare(other *number) int {
	if order := cmp.Compare(n.sign, other.sign); order != 0 || n.sign == 0 {
		return order
	}
	switch {
	case n.infinite && other.infinite:
		return 0
	case n.infinite:
		return n.sign
	case other.infinite:
		return -n.sign
	}
	if order := cmp.Compare(n.point, other.point); order != 0 {
		return n.sign * order
	}
	for i := range max(n.digits(), other.digits()) {
		if order := cmp.Compare(n.digit(i), other.digit(i)); order != 0 {
			return n.sign * order
		}
	}
	return 0
}

func (n *number) digits() int { return len(n.whole) + len(n.fraction) }

// digit returns the i-th digit after the point of the form in which n is kept.
func (n *number) digit(i int) byte {
	switch {
	case i < len(n.whole):
		return n.whole[i]
	case i < n.digits():
		return n.fraction[i-len(n.whole)]
	}
	return '0'
}
