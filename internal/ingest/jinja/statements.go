package jinja

import "slices"

// control says how a list of statements ended.
type control int

const (
	ended control = iota
	broken
	continued
)

func (e *execution) run(body []node, s *scope) control {
	e.enter()
	for _, n := range body {
		e.step(1)
		if c := e.statement(n, s); c != ended {
			e.leave()
			return c
		}
	}
	e.leave()
	return ended
}

// runIn executes statements in a scope of their own.
func (e *execution) runIn(body []node, parent *scope) control {
	s := e.newScope(parent)
	c := e.run(body, s)
	e.release(s)
	return c
}

func (e *execution) statement(n node, s *scope) control {
	switch n := n.(type) {
	case *textNode:
		e.write(n.text)
	case *printNode:
		e.line = n.line
		e.show(n.value, s)
	case *ifNode:
		e.line = n.line
		for i, test := range n.tests {
			if e.isTrue(e.eval(test, s)) {
				return e.run(n.bodies[i], s)
			}
		}
		if n.hasFinal {
			return e.run(n.bodies[len(n.tests)], s)
		}
	case *forNode:
		e.line = n.line
		e.loop(n, e.eval(n.over, s), s, 0)
	case *setNode:
		e.line = n.line
		e.assign(n.target, e.eval(n.value, s), s)
	case *setBlockNode:
		e.line = n.line
		var value any = e.capture(func() { e.runIn(n.body, s) })
		if n.filter != nil {
			value = e.captured(n.filter.(*filterExpr), value, s)
		}
		e.assign(n.target, value, s)
	case *withNode:
		inner := e.newScope(s)
		for i := range n.targets {
			e.assign(n.targets[i], e.eval(n.values[i], s), inner)
		}
		c := e.run(n.body, inner)
		e.release(inner)
		return c
	case *macroNode:
		s.set(n.id, e.macro(n, s))
	case *callNode:
		e.callStatement(n, s)
	case *filterNode:
		e.line = n.line
		text := e.capture(func() { e.runIn(n.body, s) })
		e.write(e.str(e.captured(n.filter.(*filterExpr), text, s)))
	case *generationNode:
		return e.generation(n, s)
	case *blockNode:
		return e.runIn(n.body, s)
	case breakNode:
		return broken
	case continueNode:
		return continued
	}
	return ended
}

func (e *execution) callStatement(n *callNode, s *scope) {
	e.line = n.line
	f := e.eval(n.call.function, s)
	a := e.argumentsOf(&n.call.arguments, s)
	a.named.Set("caller", e.macro(n.macro, s))
	e.line = n.line
	e.write(e.str(e.call(f, a)))
}

// generation surrounds a block's text with marks.
func (e *execution) generation(n *generationNode, s *scope) control {
	e.charge(valueBytes)
	e.write(markStart)
	c := e.runIn(n.body, s)
	e.write(markEnd)
	return c
}

// assign assigns a value to a name, to a member of a namespace, or to several of them.
func (e *execution) assign(target node, value any, s *scope) {
	switch t := target.(type) {
	case *nameExpr:
		s.set(t.id, value)
	case *namespaceRef:
		e.line = t.line
		of, _ := s.get(t.id)
		ns, ok := of.(*namespace)
		if !ok {
			e.fail("cannot assign attribute on non-namespace object")
		}
		if t.attr[0] == '_' {
			e.fail("names in a namespace cannot begin with an underscore, as %q does", t.attr)
		}
		e.charge(entryBytes)
		ns.Set(t.attr, value)
	case *tupleExpr:
		items := e.iterate(value)
		if len(items) != len(t.items) {
			e.fail("cannot unpack %d values into %d names", len(items), len(t.items))
		}
		for i := range items {
			e.assign(t.items[i], items[i], s)
		}
	}
}

func (e *execution) loop(n *forNode, over any, s *scope, depth int) {
	items := e.looped(over)
	if n.test != nil {
		var kept []any
		for _, item := range items {
			inner := e.newScope(s)
			e.assign(n.target, item, inner)
			if e.isTrue(e.eval(n.test, inner)) {
				e.charge(valueBytes)
				kept = append(kept, item)
			}
			e.release(inner)
		}
		items = kept
	}
	if len(items) == 0 {
		e.runIn(n.none, s)
		return
	}
	if n.plain != nil && e.plain(n.plain, items) {
		return
	}
	l := e.takeLoop()
	l.items, l.depth, l.main = items, depth, e.trace != nil && e.trace.main && depth == 0
	if l.main {
		e.trace.main = false // a loop within this one is not
		defer func() { e.trace.main = true }()
	}
	if n.recursive {
		l.again = func(e *execution, over any) any {
			return e.capture(func() { e.loop(n, over, s, depth+1) })
		}
	}
	inner := e.newScope(s)
	for i, item := range items {
		e.step(1)
		if l.at = i; l.main {
			e.trace.current = e.trace.Base + i
			e.begin()
		}
		if i > 0 && e.template.closures {
			inner = e.newScope(s)
		} else if i > 0 {
			inner.clear() // its memory is that of the turn before
		}
		inner.set(loopID, l)
		e.assign(n.target, item, inner)
		if e.run(n.body, inner) == broken {
			if l.main {
				e.trace.Local = false
			}
			break
		}
	}
	e.release(inner)
	if l.pooled {
		*l = loop{pooled: true}
		e.loops = append(e.loops, l)
	}
}

// takeLoop returns the variable of a loop: one that is used again, where nothing can keep it.
func (e *execution) takeLoop() *loop {
	n := len(e.loops)
	switch {
	case e.template.keepsLoops || e.template.closures:
		return &loop{}
	case n == 0:
		return &loop{pooled: true}
	}
	l := e.loops[n-1]
	e.loops = e.loops[:n-1]
	return l
}

func (e *execution) looped(over any) []any {
	if e.trace != nil && e.trace.main {
		items := over.(*List).Items
		e.step(int64(len(items)))
		return items
	}
	return e.iterate(over)
}

// macro returns the function for a macro or for the body of a call block.
func (e *execution) macro(n *macroNode, defined *scope) *function {
	e.charge(scopeBytes)
	return &function{name: n.name, macro: n, defined: defined}
}

// callMacro calls a macro, which keeps none of its arguments.
func (e *execution) callMacro(f *function, a *arguments) any {
	s := e.newScope(f.defined)
	e.bind(f.macro, a, s)
	text := e.capture(func() { e.run(f.macro.body, s) })
	e.release(s)
	return boxed(&e.texts, text)
}

// bind assigns the arguments of a call to the parameters of a macro.
func (e *execution) bind(n *macroNode, a *arguments, s *scope) {
	first, named := len(n.params)-len(n.defaults), 0 // named counts the arguments that are parameters
	for i, name := range n.params {
		given, isNamed := a.named.find(name)
		switch {
		case i < len(a.positional):
			if isNamed {
				e.fail("macro '%s' got multiple values for argument '%s'", n.name, name)
			}
			s.set(n.ids[i], a.positional[i])
		case isNamed:
			s.set(n.ids[i], given)
			named++
		case i >= first:
			s.set(n.ids[i], e.eval(n.defaults[i-first], s))
		default:
			s.set(n.ids[i], &undefined{hint: "parameter '" + name + "' was not provided"})
		}
	}
	if n.caller && n.name != "caller" {
		caller, ok := a.named.find("caller")
		if ok {
			named++
		} else {
			caller = &undefined{hint: "No caller defined"}
		}
		s.set(callerID, caller)
	}
	if n.kwargs || a.named.Len() > named {
		rest := a.named.Clone().Without(func(key string, _ any) bool {
			return slices.Contains(n.params, key) || key == "caller" && n.caller && n.name != "caller"
		})
		if !n.kwargs {
			e.fail("macro '%s' takes no keyword argument '%v'", n.name, rest.entries[0].key)
		}
		s.set(kwargsID, rest)
	}
	more := a.positional[min(len(n.params), len(a.positional)):]
	if n.varargs {
		s.set(varargsID, tupleOf(slices.Clone(more)...))
	} else if len(more) > 0 {
		e.fail("macro '%s' takes not more than %d argument(s)", n.name, len(n.params))
	}
}
