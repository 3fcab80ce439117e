package jinja

import (
	"cmp"
	"math/big"
	"slices"
	"unsafe"
)

// The values of a template are these Go values: nil for None, bool, int64, *big.Int for larger
// integers, float64, string, *List, *Dict, and the types below.
type (
	// A List is a Python list, or a tuple or a range.
	List struct {
		Items   []any
		kind    listKind
		numbers *[3]int64 // the start, the stop and the step of a range
	}

	// undefined is a variable, attribute or item that does not exist. hint is the error of using it; or it is an
	// attribute of a dict, as most are. name is that of a variable.
	undefined struct{ hint, attribute, name string }
	// markup is a string that "safe" or "escape" made: text added to it is escaped.
	markup string
	// iterator is a Python generator: it can be read once.
	iterator struct {
		items []any
		name  string
	}
	// view is the keys, values or items of a Dict.
	view struct {
		of   *Dict
		kind viewKind
	}
	namespace struct{ Dict }
	// function is anything that can be called: Go code, or a macro with the scope in which it stands.
	function struct {
		name    string
		call    func(*execution, *arguments) any
		macro   *macroNode
		defined *scope
	}
	// loop is the variable of that name within a for statement.
	loop struct {
		items   []any
		at      int
		depth   int
		changed *List
		again   func(*execution, any) any // a recursive loop
		main    bool                      // it is traced
		pooled  bool
	}
	cycler struct {
		items []any
		at    int
	}
)

type listKind uint8

const (
	ofList listKind = iota
	ofTuple
	ofGroup // a tuple that groupby made: its items are also called grouper and list
	ofRange
)

func tupleOf(items ...any) *List { return &List{Items: items, kind: ofTuple} }

// ofParts returns the kind of what is made of parts of a list of this kind.
func (k listKind) ofParts() listKind {
	if k == ofGroup {
		return ofTuple
	}
	return k
}

type viewKind int

const (
	viewKeys viewKind = iota
	viewValues
	viewItems
)

// typeName returns Python's name of a value's type.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case Decimal:
		return "Decimal"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *List:
		return [...]string{"list", "tuple", "tuple", "range"}[v.kind]
	case *Dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *view:
		return [...]string{"dict_keys", "dict_values", "dict_items"}[v.kind]
	case *iterator:
		return "generator"
	case *namespace:
		return "Namespace"
	case *loop:
		return "LoopContext"
	}
	return "function"
}

// why returns the error of using a value that does not exist.
func (u *undefined) why() string {
	if u.hint == "" {
		u.hint = missing(&Dict{}, u.attribute).hint
	}
	return u.hint
}

func (e *execution) exists(values ...any) {
	for _, v := range values {
		if u, ok := v.(*undefined); ok {
			e.fail("%s", u.why())
		}
	}
}

// objectName returns jinja2's name for a value in the error for a missing attribute.
func objectName(v any) string {
	if v == nil {
		return "None"
	}
	return "'" + typeName(v) + " object'"
}

func isTrue(v any) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case Decimal:
		return v.float() != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	case *view:
		return v.of.Len() > 0
	}
	return true
}

// text returns v as a string, if it is one.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// equal implements Python's ==.
func (e *execution) equal(a, b any) bool {
	e.step(1)
	if s, ok := text(a); ok {
		t, ok := text(b)
		e.step(int64(min(len(s), len(t))) / stepBytes)
		if ok = ok && s == t; ok && unsafe.StringData(s) != unsafe.StringData(t) {
			e.touchText(s)
			e.touchText(t)
		}
		return ok
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *List:
		e.asWhole(a)
		e.asWhole(b)
		b, ok := b.(*List)
		return ok && typeName(a) == typeName(b) && e.equalItems(a.Items, b.Items)
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || a.Len() != b.Len() {
			return false
		}
		e.enter()
		defer e.leave()
		for i := range a.entries {
			other, ok := b.find(a.entries[i].hash)
			if !ok || !e.equal(a.entries[i].value, other) {
				return false
			}
		}
		return true
	case bool, int64, *big.Int, float64, Decimal:
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	}
	return a == b
}

func (e *execution) equalItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	e.enter()
	defer e.leave()
	for i := range a {
		if !e.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// compareNumbers compares two numbers. ok is false if a value is not a number or is NaN.
func compareNumbers(a, b any) (order int, ok bool) {
	if isNaN(a) || isNaN(b) {
		return 0, false
	}
	if x, ok := toInt(a); ok {
		if y, ok := toInt(b); ok {
			return cmp.Compare(x, y), true
		}
	}
	x, y := toBigFloat(a), toBigFloat(b)
	if x == nil || y == nil {
		return 0, false
	}
	return x.Cmp(y), true
}

func toInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		return int64(btoi(v)), true
	}
	return 0, false
}

// integer returns an argument that must be a whole number. complaint is the error if it is none.
func (e *execution) integer(v any, complaint string, args ...any) int64 {
	n, ok := toInt(v)
	if !ok {
		e.fail(complaint, args...)
	}
	return n
}

func toBigFloat(v any) *big.Float {
	switch v := v.(type) {
	case float64:
		return big.NewFloat(v) // no NaN
	case *big.Int:
		return new(big.Float).SetInt(v)
	case Decimal:
		return big.NewFloat(v.float())
	}
	if n, ok := toInt(v); ok {
		return new(big.Float).SetInt64(n)
	}
	return nil
}

// compare returns the order of two values for <, > and sorting.
func (e *execution) compare(a, b any, operator string) int {
	e.step(1)
	if s, ok := text(a); ok {
		if t, ok := text(b); ok {
			e.touchText(s)
			e.touchText(t)
			e.step(int64(min(len(s), len(t))) / stepBytes)
			return cmp.Compare(s, t) // UTF-8 sorts in the order of code points
		}
	}
	if c, ok := compareNumbers(a, b); ok {
		return c
	}
	e.exists(a, b)
	e.asWhole(a)
	e.asWhole(b)
	x, okX := sequence(a)
	y, okY := sequence(b)
	if !okX || !okY || typeName(a) != typeName(b) {
		e.fail("'%s' not supported between instances of '%s' and '%s'", operator, typeName(a), typeName(b))
	}
	e.enter()
	defer e.leave()
	for i := range min(len(x), len(y)) {
		if !e.equal(x[i], y[i]) {
			return e.compare(x[i], y[i], operator)
		}
	}
	return len(x) - len(y)
}

func (e *execution) clone(items []any) []any {
	e.charge(int64(len(items)) * valueBytes)
	return slices.Clone(items)
}

// sequence returns the items of a list or tuple.
func sequence(v any) ([]any, bool) {
	list, ok := v.(*List)
	if !ok || list.kind == ofRange {
		return nil, false
	}
	return list.Items, true
}

// HasValue reports whether a value says anything: None, and empty text, lists and dicts do not.
func HasValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	}
	return true
}
