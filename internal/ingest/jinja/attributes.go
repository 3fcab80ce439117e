package jinja

import (
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// attribute evaluates a.name: Python's attribute of that name, else the item with that key, else
// undefined.
func (e *execution) attribute(of any, name string) any {
	switch of.(type) {
	case *loop, *cycler:
		e.stateful()
	}
	if v, ok := e.member(of, name); ok {
		return v
	}
	switch of := of.(type) {
	case *undefined:
		e.fail("%s", of.why())
	case *Dict:
		if v, ok := of.find(name); ok {
			return v
		}
	case *namespace:
		e.stateful()
		if v, ok := of.find(name); ok {
			return v
		}
	}
	return missing(of, name)
}

// item evaluates a[key].
func (e *execution) item(of, key any) any {
	switch of := of.(type) {
	case *undefined:
		e.fail("%s", of.why())
	case *Dict:
		e.touch(key)
		if hash, ok := hashOf(key); ok {
			if v, ok := of.find(hash); ok {
				return v
			}
		}
	case *List:
		if i, ok := toInt(key); ok {
			e.indexed(of, i)
			items := of.Items
			if i < 0 {
				i += int64(len(items))
			}
			if i >= 0 && i < int64(len(items)) {
				return items[i]
			}
			return missing(of, key)
		}
	case string, markup:
		if i, ok := toInt(key); ok {
			s, _ := text(of)
			if c, ok := e.character(s, i); ok {
				return sameKind(of, c)
			}
			return missing(of, key)
		}
	}
	if name, ok := text(key); ok {
		if v, ok := e.member(of, name); ok {
			return v
		}
	}
	return missing(of, key)
}

// missing returns the value of an attribute or item that does not exist.
func missing(of, key any) *undefined {
	name, ok := text(key)
	switch {
	case !ok:
		p := printer{e: &execution{left: Limits{Steps: 1 << 10, Bytes: 1 << 10}}}
		switch key.(type) {
		case int64, float64, bool, nil, *big.Int:
			p.repr(key)
		default:
			p.out = []byte(typeName(key))
		}
		return &undefined{hint: objectName(of) + " has no element " + string(p.out)}
	case len(name) > 100:
		name = name[:100] + "…"
	}
	return &undefined{hint: objectName(of) + " has no attribute '" + name + "'"}
}

// sameKind returns a part of a string with the string's type.
func sameKind(of any, s string) any {
	if _, ok := of.(markup); ok {
		return markup(s)
	}
	return s
}

// character returns the i-th character of a string, counted from the end if i is negative.
func (e *execution) character(s string, i int64) (string, bool) {
	e.touchText(s)
	e.step(int64(len(s)) / stepBytes)
	if i < 0 {
		i += int64(utf8.RuneCountInString(s))
	}
	if i < 0 || i >= int64(len(s)) {
		return "", false
	}
	for at, n := 0, int64(0); at < len(s); n++ {
		_, size := utf8.DecodeRuneInString(s[at:])
		if n == i {
			return s[at : at+size], true
		}
		at += size
	}
	return "", false
}

// characters splits a string into its characters.
func characters(s string) []string {
	out := make([]string, 0, len(s))
	for len(s) > 0 {
		_, size := utf8.DecodeRuneInString(s)
		out = append(out, s[:size])
		s = s[size:]
	}
	return out
}

// member returns an attribute that values have in Python: a method, or a field of a loop.
func (e *execution) member(of any, name string) (any, bool) {
	var f func(*execution, *arguments) any
	switch v := of.(type) {
	case string, markup:
		s, _ := text(v)
		f = stringMember(v, s, name)
	case *Dict:
		if m := dictMethods[name]; m != nil {
			f = func(e *execution, a *arguments) any { return m(e, v, a) }
		} else if forbidden(name, changingDicts...) {
			return refused(of, name), true
		}
	case *List:
		e.asWhole(v)
		if i := slices.Index([]string{"start", "stop", "step"}, name); i >= 0 && v.kind == ofRange {
			return v.numbers[i], true
		}
		if v.kind == ofGroup && (name == "grouper" || name == "list") {
			return v.Items[btoi(name == "list")], true
		}
		if m := listMethods[name]; m != nil {
			f = func(e *execution, a *arguments) any { return m(e, v.Items, a) }
		} else if v.kind == ofList && forbidden(name, "append", "clear", "extend", "insert", "pop", "remove", "reverse",
			"sort") {
			return refused(of, name), true
		}
	case *loop:
		switch name {
		case "revindex", "revindex0", "last", "length", "nextitem":
			v.counted(e)
		}
		return v.field(name)
	case *cycler:
		return v.member(name)
	case float64:
		if name == "is_integer" {
			f = func(*execution, *arguments) any { return v == float64(int64(v)) }
		}
	case int64:
		if name == "bit_length" {
			f = func(*execution, *arguments) any { return int64(big.NewInt(v).BitLen()) }
		}
	}
	if f == nil {
		return nil, false
	}
	return &function{name: name, call: f}, true
}

// stringMember returns a method of a string or markup whose text is s, nil if there is none.
func stringMember(of any, s, name string) func(*execution, *arguments) any {
	m := stringMethods[name]
	if m == nil {
		return nil
	}
	return func(e *execution, a *arguments) any {
		e.step(int64(len(s)) / stepBytes)
		e.method(name, s, a)
		out := m(e, s, a)
		if t, ok := out.(string); ok {
			return sameKind(of, t)
		}
		return out
	}
}

// changingDicts are the methods of dicts that the sandbox forbids.
var changingDicts = []string{"clear", "pop", "popitem", "setdefault", "update"}

func forbidden(name string, names ...string) bool {
	return slices.Contains(names, name) || strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

// refused returns what the sandbox returns instead of a method that would change a value.
func refused(of any, name string) *undefined {
	return &undefined{hint: "access to attribute '" + name + "' of '" + typeName(of) + "' object is unsafe."}
}

// field returns an attribute of the variable loop.
func (l *loop) field(name string) (any, bool) {
	n := int64(len(l.items))
	i := int64(l.at)
	neighbour := func(at int64, what string) any {
		if at < 0 || at >= n {
			return &undefined{hint: "there is no " + what + " item"}
		}
		return l.items[at]
	}
	switch name {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(l.depth) + 1, true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		return neighbour(i-1, "previous"), true
	case "nextitem":
		return neighbour(i+1, "next"), true
	case "cycle":
		return &function{name: name, call: func(e *execution, a *arguments) any {
			if len(a.positional) == 0 {
				e.fail("no items for cycling given")
			}
			return a.positional[l.at%len(a.positional)]
		}}, true
	case "changed":
		return &function{name: name, call: func(e *execution, a *arguments) any {
			now := tupleOf(a.positional...)
			if l.changed != nil && e.equal(l.changed, now) {
				return false
			}
			l.changed = now
			return true
		}}, true
	}
	return nil, false
}

// member returns an attribute of what cycler() makes.
func (c *cycler) member(name string) (any, bool) {
	switch name {
	case "current":
		return c.items[c.at], true
	case "next":
		return &function{name: name, call: func(*execution, *arguments) any {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{name: name, call: func(*execution, *arguments) any { c.at = 0; return nil }}, true
	}
	return nil, false
}
