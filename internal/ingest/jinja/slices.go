package jinja

import (
	"unicode/utf8"
)

// slice evaluates a[start:stop:step].
func (e *execution) slice(of any, n *sliceExpr, s *scope) any {
	start, hasStart := e.evalBound(n.start, s)
	stop, hasStop := e.evalBound(n.stop, s)
	step, hasStep := e.evalBound(n.step, s)
	if !hasStep {
		step = 1
	}
	if step == 0 {
		e.fail("slice step cannot be zero")
	}
	switch of := of.(type) {
	case *undefined:
		e.fail("%s", of.why())
	case string, markup:
		str, _ := text(of)
		e.touchText(str)
		e.step(int64(len(str)) / stepBytes)
		length := int64(utf8.RuneCountInString(str))
		from, to := sliceBounds(start, hasStart, stop, hasStop, step, length)
		if step == 1 {
			return sameKind(of, runeSlice(str, from, to, length))
		}
		e.charge(int64(len(str)) * valueBytes)
		chars := characters(str)
		var out []byte
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			out = append(out, chars[i]...)
		}
		return sameKind(of, string(out))
	case *List:
		items := of.Items
		from, to := sliceBounds(start, hasStart, stop, hasStop, step, int64(len(items)))
		var out []any
		if step == 1 {
			e.charge(max(0, to-from) * valueBytes)
			out = append(out, items[from:max(from, to)]...)
		} else {
			e.charge(int64(len(items)) * valueBytes)
			out = make([]any, 0, max(0, (to-from)/step+1))
			for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
				out = append(out, items[i])
			}
		}
		result := &List{Items: out, kind: of.kind.ofParts()}
		e.sliced(of, from, step == 1 && !hasStop && start >= 0, result)
		if n := of.numbers; of.kind == ofRange {
			result.numbers = &[3]int64{n[0] + from*n[2], n[0] + to*n[2], n[2] * step}
		}
		return result
	}
	e.fail("'%s' object cannot be sliced", typeName(of))
	return nil
}

// evalBound evaluates a bound of a slice. given is false if there is none.
func (e *execution) evalBound(n node, s *scope) (bound int64, given bool) {
	if n == nil {
		return 0, false
	}
	switch v := e.eval(n, s).(type) {
	case nil:
		return 0, false
	case int64:
		return v, true
	case bool:
		return int64(btoi(v)), true
	default:
		e.fail("slice indices must be integers or None, not %s", typeName(v))
		return 0, false
	}
}

// sliceBounds resolves the bounds of a slice as Python does.
func sliceBounds(start int64, hasStart bool, stop int64, hasStop bool, step, length int64) (from, to int64) {
	low, high := int64(0), length
	if step < 0 {
		low, high = -1, length-1
	}
	resolve := func(v int64) int64 {
		if v < 0 {
			v += length
		}
		return min(max(v, low), high)
	}
	from, to = low, high
	if step < 0 {
		from, to = high, low
	}
	if hasStart {
		from = resolve(start)
	}
	if hasStop {
		to = resolve(stop)
	}
	return from, to
}

func runeSlice(s string, from, to, length int64) string {
	if from >= to {
		return ""
	}
	if length == int64(len(s)) {
		return s[from:to]
	}
	n, start := int64(0), -1
	for at := range s {
		if n == from {
			start = at
		}
		if n == to {
			return s[start:at]
		}
		n++
	}
	return s[start:]
}
