package jinja

// arguments holds the arguments of a call.
type arguments struct {
	positional []any
	named      Dict
}

// get returns the i-th positional argument or the one with that name, or absent if neither is
// given.
func (a *arguments) get(i int, name string, absent any) any {
	if i >= 0 && i < len(a.positional) {
		return a.positional[i]
	}
	if v, ok := a.named.find(name); ok {
		return v
	}
	return absent
}

// check fails if a function does not take one of the arguments.
func (e *execution) check(function string, a *arguments, names ...string) {
	if len(a.positional) > len(names) {
		e.fail("%s takes at most %d arguments, not %d", function, len(names), len(a.positional))
	}
	for i := range a.named.entries {
		known := false
		for j, name := range names {
			known = known || name == a.named.entries[i].key && j >= len(a.positional)
		}
		if !known {
			e.fail("%s takes no argument '%v' here", function, a.named.entries[i].key)
		}
	}
}

// eval returns the value of an expression.
func (e *execution) eval(n node, s *scope) (v any) {
	e.enter()
	e.step(1)
	switch n := n.(type) {
	case *constExpr:
		v = n.value
	case *nameExpr:
		v = e.there(e.name(n, s), n.lacks)
	case *attributeExpr:
		v = e.attributeExpr(n, e.eval(n.of, s))
	case *itemExpr:
		v = e.itemExpr(n, s)
	case *callExpr:
		v = e.callExpr(n, s)
	case *filterExpr:
		v = e.filtered(n, e.eval(n.of, s), s)
	case *testExpr:
		v = e.test(n, e.eval(n.of, s), s)
	case *unaryExpr:
		v = e.unary(n, e.eval(n.of, s))
	case *binaryExpr:
		v = e.binaryExpr(n, s)
	case *compareExpr:
		v = e.comparison(n, s)
	case *condExpr:
		v = e.conditional(n, s)
	case *concatExpr:
		base := len(e.parts)
		e.concat(n, s)
		v = e.joinParts(base)
	case *listExpr:
		v = &List{Items: e.evalAll(n.items, s)}
	case *tupleExpr:
		v = tupleOf(e.evalAll(n.items, s)...)
	case *dictExpr:
		d := &Dict{}
		for i := range n.keys {
			e.put(d, e.eval(n.keys[i], s), e.eval(n.values[i], s))
		}
		v = d
	default:
		e.fail("unexpected %T", n)
	}
	e.leave()
	return v
}

func (e *execution) attributeExpr(n *attributeExpr, of any) any {
	e.line = n.line
	d, ok := of.(*Dict)
	if !ok || !n.field {
		return e.there(e.attribute(of, n.name), n.lacks)
	}
	if v, ok := d.Get(n.name); ok {
		return v
	}
	return e.there(e.missingField(n.name), n.lacks)
}

func (e *execution) itemExpr(n *itemExpr, s *scope) any {
	of := e.eval(n.of, s)
	if slice, ok := n.key.(*sliceExpr); ok {
		return e.slice(of, slice, s)
	}
	key := e.eval(n.key, s)
	e.line = n.line
	return e.there(e.item(of, key), n.lacks)
}

func (e *execution) conditional(n *condExpr, s *scope) any {
	if e.isTrue(e.eval(n.test, s)) {
		return e.eval(n.yes, s)
	}
	if n.no != nil {
		return e.eval(n.no, s)
	}
	return noElse
}

// noElse is the value of an inline if whose test fails and that has no else.
var noElse = &undefined{hint: "the inline if-expression evaluated to false and no else section was defined."}

// put sets a key of a dict that is being made.
func (e *execution) put(d *Dict, key, value any) {
	hash, ok := hashOf(key)
	if !ok {
		e.fail("unhashable type: '%s'", typeName(key))
	}
	e.touch(key)
	e.charge(entryBytes)
	d.put(key, hash, value)
}

func (e *execution) evalAll(list []node, s *scope) []any {
	e.charge(int64(len(list)) * valueBytes)
	items := make([]any, len(list))
	for i := range list {
		items[i] = e.eval(list[i], s)
	}
	return items
}

func (e *execution) name(n *nameExpr, s *scope) any {
	if n.id == e.prompt && !e.trace.looped && !n.asked {
		e.trace.Local = false
	}
	if v, ok := s.get(n.id); ok {
		return v
	}
	if n.global != nil && (n.name != "strftime_now" || !e.now.IsZero()) {
		return n.global
	}
	return n.none
}

// there returns a value, which must exist under Options.Strict unless it may lack.
func (e *execution) there(v any, mayLack bool) any {
	if u, ok := v.(*undefined); ok && e.strict && !mayLack {
		e.lacks(u)
	}
	return v
}

// lacks ends an execution that uses a value that does not exist.
func (e *execution) lacks(u *undefined) {
	panic(&RunError{e.line, &UndefinedError{Name: u.name, why: u.why()}})
}

func (e *execution) argumentsOf(list *argumentList, s *scope) *arguments {
	a := &arguments{}
	e.fill(a, list, s)
	if list.list != nil {
		a.positional = append(a.positional, e.iterate(e.eval(list.list, s))...)
	}
	if list.dict != nil {
		d, ok := e.eval(list.dict, s).(*Dict)
		if !ok {
			e.fail("the argument after ** must be a mapping")
		}
		d.readAll()
		for i := range d.entries {
			key, ok := d.entries[i].key.(string)
			if !ok {
				e.fail("keywords must be strings")
			}
			e.charge(entryBytes)
			a.named.Set(key, d.entries[i].value)
		}
	}
	return a
}

// callExpr evaluates a call. A method of text or of a dict is called without making a function of it.
func (e *execution) callExpr(n *callExpr, s *scope) any {
	var f any
	if attribute, ok := n.function.(*attributeExpr); ok {
		e.enter()
		e.step(1)
		of := e.eval(attribute.of, s)
		e.line = attribute.line
		text, isText := of.(string)
		dict, isDict := of.(*Dict)
		if isText && attribute.text != nil || isDict && attribute.dict != nil {
			e.leave()
			a := e.takeArguments(&n.arguments, s)
			e.line = n.line
			e.enter()
			var out any
			if isDict {
				out = attribute.dict(e, dict, a)
			} else {
				e.step(int64(len(text)) / stepBytes)
				e.method(attribute.name, text, a)
				out = attribute.text(e, text, a)
			}
			e.leave()
			e.dropArguments(a)
			return out
		}
		f = e.attribute(of, attribute.name)
		e.leave()
	} else {
		f = e.eval(n.function, s)
	}
	if macro, ok := f.(*function); !ok || macro.macro == nil {
		a := e.argumentsOf(&n.arguments, s)
		e.line = n.line
		return e.call(f, a)
	}
	a := e.takeArguments(&n.arguments, s)
	e.line = n.line
	out := e.call(f, a)
	e.dropArguments(a)
	return out
}

// call calls a function.
func (e *execution) call(f any, a *arguments) any {
	e.enter()
	defer e.leave()
	switch f := f.(type) {
	case *function:
		if f.macro != nil {
			return e.callMacro(f, a)
		}
		return f.call(e, a)
	case *undefined:
		e.fail("%s", f.why())
	case *loop:
		if f.again == nil {
			e.fail("the loop must have the 'recursive' marker to be called")
		}
		return f.again(e, a.get(0, "iterable", nil))
	}
	e.fail("'%s' object is not callable", typeName(f))
	return nil
}

// iterate returns the elements of a value.
func (e *execution) iterate(v any) []any {
	var items []any
	switch v := v.(type) {
	case *List:
		e.asWhole(v)
		items = v.Items
	case *Dict:
		e.charge(int64(v.Len()) * valueBytes)
		for i := range v.entries {
			items = append(items, v.entries[i].key)
		}
	case *view:
		items = v.items(e)
	case *iterator:
		e.stateful()
		items, v.items = v.items, nil
	case *undefined:
	case string, markup:
		s, _ := text(v)
		e.touchText(s)
		e.charge(int64(len(s)) * valueBytes)
		for _, c := range characters(s) {
			items = append(items, c)
		}
	case *loop:
		v.counted(e)
		e.charge(int64(len(v.items)-v.at) * valueBytes)
		for i := v.at; i < len(v.items); i++ {
			items = append(items, tupleOf(v.items[i], v))
		}
	default:
		e.fail("'%s' object is not iterable", typeName(v))
	}
	e.step(int64(len(items)))
	return items
}

func (v *view) items(e *execution) []any {
	e.charge(int64(v.of.Len()) * valueBytes)
	if v.kind != viewKeys {
		v.of.readAll()
	}
	items := make([]any, 0, v.of.Len())
	for i := range v.of.entries {
		entry := &v.of.entries[i]
		switch v.kind {
		case viewKeys:
			items = append(items, entry.key)
		case viewValues:
			items = append(items, entry.value)
		default:
			e.charge(2 * valueBytes)
			items = append(items, tupleOf(entry.key, entry.value))
		}
	}
	return items
}

func (e *execution) comparison(n *compareExpr, s *scope) any {
	if e.trace != nil {
		e.trace.empty = n.empty
	}
	left := e.eval(n.first, s)
	if e.trace != nil {
		e.trace.empty = false
	}
	for i, operator := range n.operators {
		right := e.eval(n.rest[i], s)
		e.line = n.line
		if !e.compares(operator, left, right) {
			return false
		}
		left = right
	}
	return true
}

// compares applies an operator of comparisons to two values.
func (e *execution) compares(operator string, a, b any) bool {
	switch operator {
	case "==":
		return e.equal(a, b)
	case "!=":
		return !e.equal(a, b)
	case "in":
		return e.contains(b, a)
	case "not in":
		return !e.contains(b, a)
	}
	if isNaN(a) || isNaN(b) {
		return false
	}
	c := e.compare(a, b, operator)
	switch operator {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func isNaN(v any) bool {
	f, ok := v.(float64)
	return ok && f != f
}

func (e *execution) binaryExpr(n *binaryExpr, s *scope) any {
	if n.operator == "+" {
		base := len(e.parts)
		v, length := e.sum(n, s)
		if length >= 0 {
			return e.joinParts(base)
		}
		return v
	}
	left := e.eval(n.left, s)
	switch n.operator {
	case "and":
		if !e.isTrue(left) {
			return left
		}
		return e.eval(n.right, s)
	case "or":
		if e.isTrue(left) {
			return left
		}
		return e.eval(n.right, s)
	}
	right := e.eval(n.right, s)
	e.line = n.line
	return e.arithmetic(n.operator, left, right)
}
