package columnar

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/jsonscan"
)

// Values as JSON. Times are written as in ISO 8601, bytes as a string of the same bytes.

// appendTyped appends text whose column says that it is JSON: as it is, or as a string if it is none.
func appendTyped(dst, text []byte) []byte {
	if !jsonscan.Valid(text) {
		return jsonscan.AppendString(dst, text)
	}
	return append(dst, text...)
}

// appendFloat appends a number as Python writes it, which reads it as one that is no integer. Python knows doubles
// alone, so one of 32 or 16 bits has all digits of the double that it becomes there.
func appendFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	format, whole := byte('f'), v == math.Trunc(v)
	if a := math.Abs(v); a >= 1e16 || a < 1e-4 && a > 0 {
		format, whole = 'e', false
	}
	if dst = strconv.AppendFloat(dst, v, format, -1, 64); whole {
		dst = append(dst, ".0"...)
	}
	return dst
}

// halfFloat returns the value of a 16-bit IEEE 754 number.
func halfFloat(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&0x1f), float64(h&0x3ff)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 0x1f:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// appendTime appends an instant of v units since 1970, of which a second has perSecond. utc says that it is one
// of UTC, not of a clock somewhere.
func appendTime(dst []byte, v, perSecond int64, utc bool) []byte {
	seconds, rest := v/perSecond, v%perSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+perSecond
	}
	t := time.Unix(seconds, rest*(1e9/perSecond)).UTC()
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, "2006-01-02T15:04:05.999999999")
	if utc {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
}

func appendDate(dst []byte, days int64) []byte {
	return append(time.Unix(days*86400, 0).UTC().AppendFormat(append(dst, '"'), "2006-01-02"), '"')
}

// appendClock appends a time of day.
func appendClock(dst []byte, v, perSecond int64) []byte {
	t := time.Unix(v/perSecond, v%perSecond*(1e9/perSecond)).UTC()
	return append(t.AppendFormat(append(dst, '"'), "15:04:05.999999999"), '"')
}

// appendDecimal appends a number that is stored without its point.
func appendDecimal(dst []byte, v *big.Int, scale int) []byte {
	digits := new(big.Int).Abs(v).String()
	if v.Sign() < 0 {
		dst = append(dst, '-')
	}
	if scale <= 0 || scale > 1000 {
		dst = append(dst, digits...)
		return append(dst, strings.Repeat("0", max(0, min(-scale, 1000)*v.Sign()*v.Sign()))...)
	}
	for len(digits) <= scale {
		digits = "0" + digits
	}
	dst = append(dst, digits[:len(digits)-scale]...)
	return append(append(dst, '.'), digits[len(digits)-scale:]...)
}

// bigEndian returns the number in two's complement, the highest byte first.
func bigEndian(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

func appendUUID(dst, b []byte) []byte {
	dst = append(dst, '"')
	for i := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, b[i:i+1])
	}
	return append(dst, '"')
}

// julianDay is the day of 1970-01-01 in the day count of 96-bit times.
const julianDay = 2440588

// appendJSON appends a value of a parquet column.
func (n *node) appendJSON(dst, v []byte) []byte {
	le := binary.LittleEndian
	switch n.kind {
	case typeBoolean:
		return strconv.AppendBool(dst, v[0] != 0)
	case typeInt32:
		if n.mean == meansUnsigned {
			return strconv.AppendUint(dst, uint64(le.Uint32(v)), 10)
		}
		return n.appendInteger(dst, int64(int32(le.Uint32(v))))
	case typeInt64:
		if n.mean == meansUnsigned {
			return strconv.AppendUint(dst, le.Uint64(v), 10)
		}
		return n.appendInteger(dst, int64(le.Uint64(v)))
	case typeInt96:
		days := int64(le.Uint32(v[8:])) - julianDay
		return appendTime(dst, days*86400*1e9+int64(le.Uint64(v)), 1e9, false)
	case typeFloat:
		return appendFloat(dst, float64(math.Float32frombits(le.Uint32(v))))
	case typeDouble:
		return appendFloat(dst, math.Float64frombits(le.Uint64(v)))
	}
	switch {
	case n.mean == meansJSON:
		return appendTyped(dst, v)
	case n.mean == meansDecimal:
		return appendDecimal(dst, bigEndian(v), n.scale)
	case n.mean == meansFloat16 && len(v) == 2:
		return appendFloat(dst, halfFloat(le.Uint16(v)))
	case n.mean == meansUUID && len(v) == 16:
		return appendUUID(dst, v)
	}
	return jsonscan.AppendString(dst, v)
}

func (n *node) appendInteger(dst []byte, v int64) []byte {
	perSecond := [...]int64{1e3, 1e6, 1e9}
	switch m := n.mean; {
	case m == meansDecimal:
		return appendDecimal(dst, big.NewInt(v), n.scale)
	case m == meansDate:
		return appendDate(dst, v)
	case meansTimeMillis <= m && m <= meansTimeNanos:
		return appendClock(dst, v, perSecond[m-meansTimeMillis])
	case meansMillis <= m && m <= meansNanos:
		return appendTime(dst, v, perSecond[m-meansMillis], n.utc)
	}
	return strconv.AppendInt(dst, v, 10)
}
