package jinja

import (
	"math/big"
	"strings"
)

// test evaluates "value is name(arguments)".
func (e *execution) test(n *testExpr, v any, s *scope) any {
	a := e.takeArguments(&n.arguments, s)
	e.line = n.line
	var ok bool
	if n.predicate != nil {
		e.step(1)
		ok = n.predicate(v)
	} else {
		ok = e.testBy(n.name, v, a)
	}
	e.dropArguments(a)
	return ok
}

// testBy runs a test by its name.
func (e *execution) testBy(name string, v any, a *arguments) bool {
	e.step(1)
	if p := predicates[name]; p != nil {
		return p(v)
	}
	other := func() any { return e.required(name, a, 0) }
	if operator := comparisons[name]; operator != "" {
		return e.compares(operator, v, other())
	}
	switch name {
	case "sameas":
		e.touch(v, other())
		return same(v, other())
	case "odd", "even", "divisibleby":
		by, rest := any(int64(2)), int64(0)
		switch name {
		case "odd":
			rest = 1
		case "divisibleby":
			by = other()
		}
		return e.equal(e.arithmetic("%", v, by), rest)
	case "lower":
		e.touch(v)
		return stringMethods["islower"](e, e.str(v), a).(bool)
	case "upper":
		e.touch(v)
		return stringMethods["isupper"](e, e.str(v), a).(bool)
	case "filter":
		return filters[e.str(v)] != nil
	case "test":
		return predicates[e.str(v)] != nil || comparisons[e.str(v)] != "" ||
			strings.Contains(" sameas odd even divisibleby lower upper filter test ", " "+e.str(v)+" ")
	}
	e.fail("no test named '%s'", name)
	return false
}

// comparisons holds the tests that are operators.
var comparisons = map[string]string{"==": "==", "eq": "==", "equalto": "==", "!=": "!=", "ne": "!=", "<": "<", "lt": "<",
	"lessthan": "<", "<=": "<=", "le": "<=", ">": ">", "gt": ">", "greaterthan": ">", ">=": ">=", "ge": ">=", "in": "in"}

// predicates holds the tests without arguments.
var predicates = map[string]func(any) bool{
	"defined":   func(v any) bool { return !is[*undefined](v) },
	"undefined": is[*undefined],
	"none":      func(v any) bool { return v == nil },
	"boolean":   is[bool],
	"true":      func(v any) bool { return v == true },
	"false":     func(v any) bool { return v == false },
	"integer":   func(v any) bool { return is[int64](v) || is[*big.Int](v) },
	"float":     is[float64],
	"number": func(v any) bool {
		return is[int64](v) || is[*big.Int](v) || is[float64](v) || is[bool](v) || is[Decimal](v)
	},
	"string":  func(v any) bool { return is[string](v) || is[markup](v) },
	"mapping": is[*Dict],
	"sequence": func(v any) bool {
		return is[string](v) || is[markup](v) || is[*List](v) || is[*Dict](v) || is[*undefined](v)
	},
	"iterable": func(v any) bool {
		switch v.(type) {
		case nil, bool, int64, float64, *big.Int, *function, *namespace, *cycler:
			return false
		}
		return true
	},
	"callable": func(v any) bool { return is[*function](v) || is[*undefined](v) || is[*loop](v) },
	"escaped":  is[markup],
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// same implements Python's "is" for values that have an identity here.
func same(a, b any) bool {
	if typeName(a) != typeName(b) {
		return false
	}
	if x, ok := a.(*big.Int); ok {
		return x.Cmp(b.(*big.Int)) == 0
	}
	return a == b
}
