package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// isFinite reports whether a float is neither infinite nor NaN.
func isFinite(f float64) bool { return math.Abs(f) <= math.MaxFloat64 }

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

// A Decimal is a number that is stored with its decimal digits, such as 1.10. It is written as it is, and computed
// with as a float.
type Decimal string

func (d Decimal) float() float64 {
	f, _ := strconv.ParseFloat(string(d), 64)
	return f
}

// computed returns what is computed with in place of a value.
func computed(v any) any {
	if d, ok := v.(Decimal); ok {
		return d.float()
	}
	return v
}

func filterInt(e *execution, v any, a *arguments) any {
	e.check("int", a, "default", "base")
	absent := a.get(0, "default", int64(0))
	base, ok := toInt(a.get(1, "base", int64(10)))
	if !ok || base == 1 || base < 0 || base > 36 {
		return absent
	}
	switch v := computed(v).(type) {
	case *undefined:
		e.fail("%s", v.why())
	case int64, *big.Int:
		return v
	case bool:
		return int64(btoi(v))
	case float64:
		switch {
		case math.IsNaN(v):
			return absent
		case math.IsInf(v, 0):
			e.fail("cannot convert float infinity to integer")
		}
		n, _ := big.NewFloat(v).Int(nil)
		return small(n)
	}
	s, ok := text(v)
	if !ok {
		return absent
	}
	s = strings.TrimFunc(s, isSpace)
	if n := wholeNumber(s, int(base)); n != nil {
		return small(n)
	}
	if f, ok := decimalNumber(s); ok && !math.IsInf(f, 0) && !math.IsNaN(f) {
		n, _ := big.NewFloat(f).Int(nil)
		return small(n)
	}
	return absent
}

func filterFloat(e *execution, v any, a *arguments) any {
	e.check("float", a, "default")
	e.exists(v)
	if f, ok := toFloat(v); ok {
		return f
	}
	if s, ok := text(v); ok {
		if f, ok := decimalNumber(strings.TrimFunc(s, isSpace)); ok {
			return f
		}
	}
	return a.get(0, "default", 0.0)
}

func filterAbs(e *execution, v any, _ *arguments) any {
	if f, ok := computed(v).(float64); ok {
		return math.Abs(f)
	}
	n := toBig(v)
	if n == nil {
		e.fail("bad operand type for abs(): '%s'", typeName(v))
	}
	return small(new(big.Int).Abs(n))
}

// roundWhole rounds an integer to a multiple of a power of ten, the even one of two that are as near.
func roundWhole(n *big.Int, digits int64) *big.Int {
	scale, rest := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil), new(big.Int)
	quotient, _ := new(big.Int).DivMod(n, scale, rest)
	if c := rest.Lsh(rest, 1).Cmp(scale); c > 0 || c == 0 && quotient.Bit(0) == 1 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient.Mul(quotient, scale)
}

func filterRound(e *execution, v any, a *arguments) any {
	e.check("round", a, "precision", "method")
	v = computed(v)
	precision, ok := toInt(a.get(0, "precision", int64(0)))
	method := e.str(a.get(1, "method", "common"))
	f, isNumber := toFloat(v)
	if !ok || !isNumber || precision < -300 || precision > 300 {
		e.fail("round wants a number and a precision")
	}
	switch method {
	case "common":
		n := toBig(v)
		switch {
		case n != nil && precision >= 0:
			return small(n)
		case n != nil:
			return small(roundWhole(n, -precision))
		case precision < 0:
			scale := math.Pow(10, float64(-precision))
			return math.RoundToEven(f/scale) * scale
		}
		r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
		return r
	case "ceil", "floor":
		scale := math.Pow(10, float64(precision))
		if method == "ceil" {
			return (math.Ceil(f*scale) + 0) / scale // -0.0 too: Python rounds to a whole number
		}
		return (math.Floor(f*scale) + 0) / scale
	}
	e.fail("method must be common, ceil or floor")
	return nil
}
