package jinja

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// maxBits bounds integers: about 4,300 digits, as many as Python prints.
const maxBits = 14_000

// small returns an integer as an int64 if it fits.
func small(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

func toBig(v any) *big.Int {
	switch v := v.(type) {
	case *big.Int:
		return v
	case int64:
		return big.NewInt(v)
	case bool:
		return big.NewInt(int64(btoi(v)))
	}
	return nil
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case Decimal:
		return v.float(), true
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f, true
	}
	n, ok := toInt(v)
	return float64(n), ok
}

// arithmetic applies a binary operator to two values.
func (e *execution) arithmetic(operator string, a, b any) any {
	if v, ok := e.joined(operator, a, b); ok {
		return v
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			if z, ok := e.smallWhole(operator, x, y); ok {
				return z
			}
		}
	}
	e.exists(a, b)
	if x, y := toBig(a), toBig(b); x != nil && y != nil {
		return e.whole(operator, x, y)
	}
	x, okX := toFloat(a)
	y, okY := toFloat(b)
	if !okX || !okY {
		if _, isText := text(a); isText && operator == "+" {
			e.fail(`can only concatenate str (not "%s") to str`, typeName(b))
		}
		e.fail("unsupported operand type(s) for %s: '%s' and '%s'", operator, typeName(a), typeName(b))
	}
	if !isFinite(x) && toBig(a) != nil || !isFinite(y) && toBig(b) != nil {
		e.fail("int too large to convert to float")
	}
	switch operator {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		if x == 0 && y < 0 {
			e.fail("0.0 cannot be raised to a negative power")
		}
		power := math.Pow(x, y)
		if isFinite(x) && isFinite(y) && !isFinite(power) { // finite numbers have neither an infinite result nor a complex one
			e.fail("the result of ** is out of range")
		}
		return power
	}
	if y == 0 {
		e.fail("division by zero")
	}
	if operator == "/" {
		return x / y
	}
	return floored(operator, x, y)
}

// floored returns what the operators // and % give, where the quotient is rounded down.
func floored(operator string, x, y float64) float64 {
	m := math.Mod(x, y)
	quotient := (x - m) / y // nearly whole, which x / y is not where it is large
	switch {
	case m == 0:
		m = math.Copysign(0, y)
	case (m < 0) != (y < 0):
		m += y
		quotient--
	}
	switch {
	case operator == "%":
		return m
	case quotient == 0:
		return math.Copysign(0, x/y)
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor
}

// smallWhole adds and subtracts integers far from the bounds of an int64.
func (e *execution) smallWhole(operator string, x, y int64) (z int64, ok bool) {
	const bound = 1 << 62
	if x <= -bound || x >= bound || y <= -bound || y >= bound {
		return 0, false
	}
	switch operator {
	case "+":
		z = x + y
	case "-":
		z = x - y
	default:
		return 0, false
	}
	e.charge(int64(bits.Len64(uint64(max(z, -z)))/8) + 8)
	return z, true
}

// whole applies a binary operator to integers.
func (e *execution) whole(operator string, x, y *big.Int) any {
	z := new(big.Int)
	switch operator {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "**":
		if y.Sign() < 0 {
			fx, _ := toFloat(small(x))
			fy, _ := toFloat(small(y))
			return e.arithmetic("**", fx, fy)
		}
		if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxBits || int64(x.BitLen())*y.Int64() > 2*maxBits) {
			e.fail("%w: a number of more than %d bits", ErrLimit, maxBits)
		}
		if x.BitLen() <= 1 && !y.IsInt64() {
			y = new(big.Int).And(y, big.NewInt(1)) // powers of 0, 1 and -1 depend only on whether y is odd
		}
		z.Exp(x, y, nil)
	default:
		if y.Sign() == 0 {
			e.fail("division by zero")
		}
		if operator == "/" {
			f, _ := new(big.Rat).SetFrac(x, y).Float64()
			if f == 0 && y.Sign() < 0 {
				f = math.Copysign(0, -1)
			}
			return f
		}
		m := new(big.Int)
		z.DivMod(x, y, m)
		if m.Sign() != 0 && y.Sign() < 0 { // Go's is Euclidean, Python's rounds down
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if operator == "%" {
			z = m
		}
	}
	if z.BitLen() > maxBits {
		e.fail("%w: a number of more than %d bits", ErrLimit, maxBits)
	}
	e.charge(int64(z.BitLen()/8) + 8)
	return small(z)
}

// joined applies an operator to text, lists and tuples.
func (e *execution) joined(operator string, a, b any) (any, bool) {
	switch operator {
	case "+":
		s, okS := text(a)
		t, okT := text(b)
		if okS && okT {
			_, safeA := a.(markup)
			_, safeB := b.(markup)
			e.touchText(s)
			e.touchText(t)
			switch {
			case safeA && !safeB:
				t = e.escape(t)
			case safeB && !safeA:
				s = e.escape(s)
			}
			e.charge(int64(len(s) + len(t)))
			if safeA || safeB {
				return markup(s + t), true
			}
			return s + t, true
		}
		x, okX := sequence(a)
		y, okY := sequence(b)
		if okX && okY && typeName(a) == typeName(b) {
			e.asWhole(a)
			e.asWhole(b)
			e.charge(int64(len(x)+len(y)) * valueBytes)
			all := append(append(make([]any, 0, len(x)+len(y)), x...), y...)
			return &List{Items: all, kind: a.(*List).kind.ofParts()}, true
		}
	case "*":
		e.touch(a, b)
		if n, ok := toInt(a); ok {
			return e.repeated(b, n)
		}
		if n, ok := toInt(b); ok {
			return e.repeated(a, n)
		}
	case "%":
		e.touch(a, b)
		if s, ok := a.(string); ok {
			return e.printf(s, b), true
		}
		if s, ok := a.(markup); ok {
			return markup(e.printf(string(s), b)), true
		}
	}
	return nil, false
}

func (e *execution) repeated(v any, n int64) (any, bool) {
	n = max(0, n)
	room := func(size int) {
		if size > 0 && n > e.left.Bytes/int64(size) {
			e.charge(e.left.Bytes + 1)
		}
		e.charge(n * int64(size))
	}
	switch v := v.(type) {
	case string:
		room(len(v))
		return strings.Repeat(v, int(n)), true
	case markup:
		room(len(v))
		return markup(strings.Repeat(string(v), int(n))), true
	}
	items, ok := sequence(v)
	if !ok {
		return nil, false
	}
	room(len(items) * valueBytes)
	var all []any
	if len(items) > 0 {
		for range n {
			all = append(all, items...)
		}
	}
	return &List{Items: all, kind: v.(*List).kind.ofParts()}, true
}

func (e *execution) unary(n *unaryExpr, v any) any {
	e.line = n.line
	if n.operator == "not" {
		return !e.isTrue(v)
	}
	e.exists(v)
	v = computed(v)
	if f, ok := v.(float64); ok {
		if n.operator == "-" {
			f = -f
		}
		return f
	}
	if i, ok := v.(int64); ok && i != math.MinInt64 {
		if n.operator == "-" {
			i = -i
		}
		return i
	}
	z := toBig(v)
	if z == nil {
		e.fail("bad operand type for unary %s: '%s'", n.operator, typeName(v))
	}
	if n.operator == "-" {
		z = new(big.Int).Neg(z)
	}
	return small(z)
}

// contains implements "item in container".
func (e *execution) contains(container, item any) bool {
	switch c := container.(type) {
	case string, markup:
		s, _ := text(c)
		t, ok := text(item)
		if !ok {
			if u, isUndefined := item.(*undefined); isUndefined {
				e.fail("'in <string>' requires string as left operand, not Undefined (%s)", u.why())
			}
			e.fail("'in <string>' requires string as left operand, not %s", typeName(item))
		}
		e.step(int64(len(s)) / stepBytes)
		found := strings.Contains(s, t)
		if e.touchText(t); found && e.trace != nil &&
			!e.trace.apart(s, strings.Index(s, t), len(t)) && !e.trace.apart(s, strings.LastIndex(s, t), len(t)) {
			e.touchText(s)
		}
		return found
	case *Dict:
		return e.hasKey(c, item)
	case *namespace:
		e.stateful()
		return e.hasKey(&c.Dict, item)
	case *view:
		if c.kind == viewKeys {
			return e.hasKey(c.of, item)
		}
	case nil, bool, int64, float64, *big.Int, *function:
		e.fail("argument of type '%s' is not iterable", typeName(container))
	}
	for _, member := range e.iterate(container) {
		if e.equal(member, item) {
			return true
		}
	}
	return false
}

func (e *execution) hasKey(d *Dict, key any) bool {
	hash, ok := hashOf(key)
	if !ok {
		e.fail("unhashable type: '%s'", typeName(key))
	}
	e.touch(key)
	_, ok = d.find(hash)
	return ok
}
