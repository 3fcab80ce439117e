package jinja

import "fmt"

// numberRange is a Python range: its numbers, and how it is written.
type numberRange struct {
	start, stop, step int64
	items             []any
}

func rangeFunction(e *execution, a *arguments) any {
	bounds := [3]int64{0, 0, 1}
	for i, v := range a.positional {
		n, ok := toInt(v)
		if !ok || i > 2 {
			e.fail("range wants up to 3 whole numbers")
		}
		bounds[i] = n
	}
	switch len(a.positional) {
	case 0:
		e.fail("range expected at least 1 argument, got 0")
	case 1:
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		e.fail("range() arg 3 must not be zero")
	}
	out := &numberRange{start: start, stop: stop, step: step}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(out.items) == maxRange {
			e.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
		}
		e.charge(valueBytes)
		out.items = append(out.items, i)
		if i > 0 && step > 0 && i > (1<<62) || i < 0 && step < 0 && i < -(1<<62) {
			break
		}
	}
	return out
}

func (r *numberRange) String() string {
	if r.step == 1 {
		return fmt.Sprintf("range(%d, %d)", r.start, r.stop)
	}
	return fmt.Sprintf("range(%d, %d, %d)", r.start, r.stop, r.step)
}

// slice returns the range of the given items, which were taken from one place to another by step.
func (r *numberRange) slice(items []any, from, to, step int64) *numberRange {
	return &numberRange{start: r.start + from*r.step, stop: r.start + to*r.step, step: r.step * step, items: items}
}
