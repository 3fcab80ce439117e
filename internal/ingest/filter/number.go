package filter

import (
	"bytes"
	"strconv"
)

// maxExponentDigits bounds the exponents that are compared by value.
const maxExponentDigits = 9

// canonicalNumber returns a text that is equal for JSON numbers of equal value: the digits without
// zeros at either end, and the power of ten of the last digit. 1, 1.0 and 10e-1 are all "1e0". It
// is exact for any number of digits. ok is false for anything but a JSON number, such as 007.
func canonicalNumber(text []byte) (canonical string, ok bool) {
	rest := text
	sign := ""
	if len(rest) > 0 && rest[0] == '-' {
		sign, rest = "-", rest[1:]
	}
	whole := leadingDigits(rest)
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return "", false
	}
	digits := bytes.Clone(whole)
	rest = rest[len(whole):]
	exponent := 0
	if len(rest) > 0 && rest[0] == '.' {
		fraction := leadingDigits(rest[1:])
		if len(fraction) == 0 {
			return "", false
		}
		digits, exponent, rest = append(digits, fraction...), -len(fraction), rest[1+len(fraction):]
	}
	if len(rest) > 0 && rest[0]|0x20 == 'e' {
		power := rest[1:]
		down := len(power) > 0 && power[0] == '-'
		if down || len(power) > 0 && power[0] == '+' {
			power = power[1:]
		}
		n, err := strconv.Atoi(string(power))
		if err != nil || len(power) > maxExponentDigits || len(leadingDigits(power)) < len(power) {
			return "", false
		}
		if down {
			n = -n
		}
		exponent, rest = exponent+n, nil
	}
	if len(rest) > 0 {
		return "", false
	}
	digits = bytes.TrimLeft(digits, "0")
	trimmed := bytes.TrimRight(digits, "0")
	if len(trimmed) == 0 {
		return "0", true
	}
	exponent += len(digits) - len(trimmed)
	return sign + string(trimmed) + "e" + strconv.Itoa(exponent), true
}

// leadingDigits returns the decimal digits that text begins with.
func leadingDigits(text []byte) []byte {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return text[:n]
}
