package jsonx

import (
	"math"
	"strconv"
)

// number reads a number's text, checking JSON's grammar.
func (s *Scanner) number() ([]byte, error) {
	s.space()
	rest := s.data[s.pos:]
	n := 0
	if n < len(rest) && rest[n] == '-' {
		n++
	}
	first := n
	if n = digits(rest, n); n == first {
		return nil, s.Errorf("expected a value")
	}
	if rest[first] == '0' {
		n = first + 1
	}
	if n < len(rest) && rest[n] == '.' {
		from := n + 1
		if n = digits(rest, from); n == from {
			return nil, s.Errorf("bad number")
		}
	}
	if n < len(rest) && rest[n]|0x20 == 'e' {
		from := n + 1
		if from < len(rest) && (rest[from] == '+' || rest[from] == '-') {
			from++
		}
		if n = digits(rest, from); n == from {
			return nil, s.Errorf("bad number")
		}
	}
	s.pos += n
	return rest[:n], nil
}

// digits returns the end of the digits that begin at i.
func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	return i
}

// Float reads a number as serde_json does without float_roundtrip: the digits go into a 64-bit
// integer for as long as they fit, which is then divided or multiplied once by a power of ten. Two
// roundings make the result differ from the nearest float64 in the last bit for about a quarter of
// the 17-digit scores found in vocabularies; ties between segmentations depend on it.
func (s *Scanner) Float() (float64, error) {
	raw, err := s.number()
	if err != nil {
		return 0, err
	}
	f, ok := ParseFloat(raw)
	if !ok {
		return 0, s.Errorf("number out of range")
	}
	return f, nil
}

// ParseFloat is Float for the text of a number in JSON's grammar. It returns false if the number is
// out of range.
func ParseFloat(raw []byte) (float64, bool) {
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	var significand uint64
	exponent, i, full, integer := 0, 0, false, true
	push := func(c byte) bool {
		d := uint64(c - '0')
		if significand > math.MaxUint64/10 || significand == math.MaxUint64/10 && d > math.MaxUint64%10 {
			return false
		}
		significand = significand*10 + d
		return true
	}
	for ; i < len(raw) && raw[i]-'0' < 10; i++ {
		if full || !push(raw[i]) {
			full = true
			exponent++
		}
	}
	if i < len(raw) && raw[i] == '.' {
		integer = false
		dropped := false
		for i++; i < len(raw) && raw[i]-'0' < 10; i++ {
			if dropped || !push(raw[i]) {
				dropped = true
				continue
			}
			exponent--
		}
	}
	if i < len(raw) {
		integer = false
		e, err := strconv.Atoi(string(raw[i+1:]))
		if err != nil || e > math.MaxInt32 || e < math.MinInt32 {
			if significand == 0 || raw[i+1] == '-' {
				return sign(0, negative), true
			}
			return 0, false
		}
		exponent += e
	}
	if integer && !full {
		return sign(float64(significand), negative), true
	}
	return scale(significand, exponent, negative)
}

// scale returns significand × 10^exponent, rounded where serde_json rounds: after the significand
// and after each factor. It returns false if that is too large for a float64.
func scale(significand uint64, exponent int, negative bool) (float64, bool) {
	f := float64(significand)
	for exponent < -308 {
		if f == 0 {
			return sign(0, negative), true
		}
		f /= 1e308
		exponent += 308
	}
	switch {
	case exponent > 308:
		if f == 0 {
			return sign(0, negative), true
		}
		return 0, false
	case exponent >= 0:
		f *= pow10[exponent]
		if math.IsInf(f, 0) {
			return 0, false
		}
	default:
		f /= pow10[-exponent]
	}
	return sign(f, negative), true
}

func sign(f float64, negative bool) float64 {
	if negative {
		return -f
	}
	return f
}

// pow10 holds the float64 nearest to each power of ten.
var pow10 = func() (p [309]float64) {
	for i := range p {
		p[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return p
}()
