package jinja

import "slices"

// plainLoopFields are the attributes of a loop from which nothing leads back to it.
var plainLoopFields = []string{"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"}

// postfix parses attributes, subscripts and calls.
func (p *parser) postfix(n node) node {
	for {
		t := p.peek()
		switch {
		case p.skipOperator("."):
			name := p.next()
			switch name.kind {
			case tokenName:
				if of, ok := n.(*nameExpr); ok && of.id == loopID && slices.Contains(plainLoopFields, name.text) {
					p.loopFields++
				}
				a := &attributeExpr{line: t.line, of: n, name: name.text, text: stringMethods[name.text],
					dict: dictMethods[name.text]}
				a.field = a.dict == nil && !forbidden(name.text, changingDicts...)
				n = a
			case tokenInteger:
				n = &itemExpr{line: t.line, of: n, key: &constExpr{p.integer(name)}}
			default:
				p.fail(name, "expected a name or a number after a dot, found %v", name)
			}
		case p.skipOperator("["):
			n = &itemExpr{line: t.line, of: n, key: p.subscript()}
		case p.isOperator("("):
			n = &callExpr{t.line, n, p.arguments()}
		default:
			return n
		}
	}
}

func (p *parser) subscript() node {
	var items []node
	for !p.skipOperator("]") {
		if len(items) > 0 {
			p.expectOperator(",")
		}
		items = append(items, p.subscribed())
	}
	switch len(items) {
	case 0:
		p.fail(p.peek(), "an empty subscript")
	case 1:
		return items[0]
	}
	return &tupleExpr{items}
}

// subscribed parses an index or a slice.
func (p *parser) subscribed() node {
	var s sliceExpr
	ends := func() bool { return p.isOperator(":") || p.isOperator("]") || p.isOperator(",") }
	if !p.isOperator(":") {
		s.start = p.expression(true)
		if !p.isOperator(":") {
			return s.start
		}
	}
	p.expectOperator(":")
	if !ends() {
		s.stop = p.expression(true)
	}
	if p.skipOperator(":") && !ends() {
		s.step = p.expression(true)
	}
	return &s
}

// filtersAndTests parses what may follow an operand: |filter, is test, and calls of their results.
func (p *parser) filtersAndTests(n node) node {
	for {
		switch {
		case p.isOperator("|"):
			n = p.filter(n, false)
		case p.isName("is"):
			n = p.test(n)
		case p.isOperator("("):
			n = &callExpr{p.peek().line, n, p.arguments()}
		default:
			return n
		}
	}
}

func (p *parser) dottedName() string {
	name := p.expectName()
	for p.skipOperator(".") {
		name += "." + p.expectName()
	}
	return name
}

// filter parses a sequence of filters. inline means that the first has no "|" before it.
func (p *parser) filter(n node, inline bool) node {
	for inline || p.isOperator("|") {
		if !inline {
			p.next()
		}
		f := &filterExpr{line: p.peek().line, of: n, name: p.dottedName()}
		f.run = filters[f.name]
		if f.name == "default" || f.name == "d" {
			allowLack(n)
		}
		if p.isOperator("(") {
			f.arguments = p.arguments()
		}
		f.fixed = f.arguments.list == nil && f.arguments.dict == nil && constant(f.arguments.positional) &&
			constant(f.arguments.named)
		n, inline = f, false
	}
	return n
}

// allowLack notes that an expression may be a value that does not exist.
func allowLack(n node) {
	if n, ok := n.(interface{ allow() }); ok {
		n.allow()
	}
}

func constant(list []node) bool {
	for _, n := range list {
		if !is[*constExpr](n) {
			return false
		}
	}
	return true
}

func (p *parser) test(of node) node {
	line := p.next().line
	negated := p.skipName("not")
	t := &testExpr{line: line, of: of, name: p.dottedName()}
	t.predicate = predicates[t.name]
	if t.name == "defined" || t.name == "undefined" {
		allowLack(of)
		if name, ok := of.(*nameExpr); ok {
			name.asked = true
		}
	}
	next := p.peek()
	switch {
	case p.isOperator("("):
		t.arguments = p.arguments()
	case p.isName("is"):
		p.fail(next, `tests cannot be chained by "is"`)
	case next.kind == tokenName && !p.isName("else", "or", "and"), next.kind == tokenString,
		next.kind == tokenInteger, next.kind == tokenFloat, p.isOperator("["), p.isOperator("{"):
		if p.isName("if", "not", "in", "recursive") {
			break // the test takes no argument
		}
		t.arguments.positional = []node{p.postfix(p.primary())}
	}
	if negated {
		return &unaryExpr{line, "not", t}
	}
	return t
}

func (p *parser) arguments() (a argumentList) {
	p.expectOperator("(")
	p.commas(")", func() {
		t := p.peek()
		next := p.tokens[min(p.at+1, len(p.tokens)-1)]
		switch {
		case p.skipOperator("*"):
			a.list = p.expression(true)
		case p.skipOperator("**"):
			a.dict = p.expression(true)
		case t.kind == tokenName && next.kind == tokenOperator && next.text == "=":
			p.at += 2
			a.names, a.named = append(a.names, t.text), append(a.named, p.expression(true))
		case len(a.names) > 0 || a.dict != nil || a.list != nil:
			p.fail(t, "an argument without a name follows one with a name")
		default:
			a.positional = append(a.positional, p.expression(true))
		}
	})
	return a
}
