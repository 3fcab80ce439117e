package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

func filterInt(e *execution, v any, a *arguments) any {
	e.check("int", a, "default", "base")
	absent := a.get(0, "default", int64(0))
	base, ok := toInt(a.get(1, "base", int64(10)))
	if !ok || base == 1 || base < 0 || base > 36 {
		return absent
	}
	switch v := v.(type) {
	case *undefined:
		e.fail("%s", v.why())
	case int64, *big.Int:
		return v
	case bool:
		return int64(btoi(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return absent
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
	if f, ok := v.(float64); ok {
		return math.Abs(f)
	}
	n := toBig(v)
	if n == nil {
		e.fail("bad operand type for abs(): '%s'", typeName(v))
	}
	return small(new(big.Int).Abs(n))
}

func filterRound(e *execution, v any, a *arguments) any {
	e.check("round", a, "precision", "method")
	precision, ok := toInt(a.get(0, "precision", int64(0)))
	method := e.str(a.get(1, "method", "common"))
	f, isNumber := toFloat(v)
	if !ok || !isNumber || precision < -300 || precision > 300 {
		e.fail("round wants a number and a precision")
	}
	switch method {
	case "common":
		if _, isFloat := v.(float64); !isFloat && precision >= 0 {
			return small(toBig(v))
		}
		if precision < 0 {
			scale := math.Pow(10, float64(-precision))
			r := math.RoundToEven(f/scale) * scale
			if _, isFloat := v.(float64); !isFloat {
				n, _ := big.NewFloat(r).Int(nil)
				return small(n)
			}
			return r
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
