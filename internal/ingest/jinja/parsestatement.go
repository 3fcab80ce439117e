package jinja

import (
	"slices"
	"strings"
)

// statements parses up to a tag with one of these names, which it does not consume, or to the end.
func (p *parser) statements(ends ...string) []node {
	p.enter()
	defer p.leave()
	var body []node
	for {
		t := p.next()
		switch t.kind {
		case tokenEnd:
			if len(ends) > 0 {
				end := ends[slices.IndexFunc(ends, func(s string) bool { return strings.HasPrefix(s, "end") })]
				p.fail(t, "expected {%% %s %%}, found the end of the template", end)
			}
			return body
		case tokenData:
			body = append(body, &textNode{t.text})
		case tokenPrint:
			body = append(body, &printNode{t.line, p.tuple(true)})
			p.expect(tokenPrintEnd)
		default:
			if p.isName(ends...) {
				return body
			}
			body = append(body, p.statement()...)
		}
	}
}

// block parses the end of a statement's tag and its body, up to and including the name of the
// closing tag.
func (p *parser) block(ends ...string) ([]node, string) {
	p.skipOperator(":")
	p.expect(tokenBlockEnd)
	if !slices.Contains(ends, "endif") {
		p.scopes++
		defer func() { p.scopes-- }()
	}
	body := p.statements(ends...)
	return body, p.next().text
}

// statement parses a statement after its {%, including the closing %}.
func (p *parser) statement() (list []node) {
	t := p.next()
	if t.kind != tokenName {
		p.fail(t, "expected the name of a statement, found %v", t)
	}
	var n node
	switch t.text {
	case "if":
		n = p.ifStatement(t)
	case "for":
		n = p.forStatement(t)
	case "set":
		n = p.setStatement(t)
	case "with":
		n = p.withStatement()
	case "macro":
		n = p.macroStatement()
	case "call":
		n = p.callStatement(t)
	case "filter":
		f := p.filter(nil, true)
		body, _ := p.block("endfilter")
		n = &filterNode{t.line, f, body}
	case "generation":
		p.generation = true
		body, _ := p.block("endgeneration")
		n = &generationNode{body}
	case "block":
		name := p.expectName()
		p.skipName("scoped")
		p.skipName("required")
		body, _ := p.block("endblock")
		p.skipName(name)
		n = &blockNode{name, body}
	case "print":
		for p.peek().kind != tokenBlockEnd {
			if len(list) > 0 {
				p.expectOperator(",")
			}
			list = append(list, &printNode{t.line, p.expression(true)})
		}
	case "break", "continue":
		if p.loops == 0 {
			p.fail(t, "%s outside a loop", t.text)
		}
		if n = node(breakNode{}); t.text == "continue" {
			n = continueNode{}
		}
	case "include", "import", "from", "extends":
		p.fail(t, "{%% %s %%} loads another template, which is not possible here", t.text)
	default:
		p.fail(t, "unknown statement %q", t.text)
	}
	p.expect(tokenBlockEnd)
	if n != nil {
		list = append(list, n)
	}
	return list
}

func (p *parser) ifStatement(t token) node {
	n := &ifNode{line: t.line}
	for {
		n.tests = append(n.tests, p.tuple(false))
		body, end := p.block("elif", "else", "endif")
		n.bodies = append(n.bodies, body)
		switch end {
		case "elif":
			continue
		case "else":
			body, _ := p.block("endif")
			n.bodies, n.hasFinal = append(n.bodies, body), true
		}
		return n
	}
}

func (p *parser) forStatement(t token) node {
	n := &forNode{line: t.line, target: p.target(false, "in")}
	if !p.skipName("in") {
		p.fail(p.peek(), `expected "in", found %v`, p.peek())
	}
	n.over = p.tuple(false, "recursive")
	if p.skipName("if") {
		n.test = p.expression(true)
	}
	n.recursive = p.skipName("recursive")
	p.closures = p.closures || n.recursive
	p.sets(n.target)
	p.loops++
	body, end := p.block("endfor", "else")
	p.loops--
	if n.body = body; end == "else" {
		n.none, _ = p.block("endfor")
	}
	n.plain = plainBody(n)
	return n
}

func (p *parser) setStatement(t token) node {
	target := p.target(true)
	defer p.sets(target)
	if p.skipOperator("=") {
		return &setNode{t.line, target, p.tuple(true)}
	}
	filter := p.filter(nil, false)
	body, _ := p.block("endset")
	return &setBlockNode{t.line, target, filter, body}
}

func (p *parser) withStatement() node {
	n := &withNode{}
	for p.peek().kind != tokenBlockEnd {
		if len(n.targets) > 0 {
			p.expectOperator(",")
		}
		n.targets = append(n.targets, p.target(false))
		p.expectOperator("=")
		n.values = append(n.values, p.expression(true))
	}
	p.sets(n.targets...)
	n.body, _ = p.block("endwith")
	return n
}

// sets notes that the targets of assignments are set.
func (p *parser) sets(targets ...node) {
	for _, n := range targets {
		switch n := n.(type) {
		case *nameExpr:
			p.set[n.name] = true
		case *tupleExpr:
			p.sets(n.items...)
		}
	}
}

// target parses the target of an assignment: one or several names or members of namespaces.
func (p *parser) target(inNamespace bool, ends ...string) node {
	var items []node
	tuple := false
	for {
		t := p.peek()
		switch {
		case len(items) > 0 && (p.isName(ends...) || t.kind == tokenBlockEnd || p.isOperator("=")):
		case p.skipOperator("("):
			items = append(items, p.target(inNamespace))
			p.expectOperator(")")
		case t.kind == tokenName:
			p.next()
			if inNamespace && p.skipOperator(".") {
				p.used[t.text] = true
				items = append(items, &namespaceRef{t.line, t.text, p.expectName(), p.id(t.text)})
			} else if slices.Contains([]string{"true", "false", "none", "True", "False", "None"}, t.text) {
				p.fail(t, "cannot assign to %q", t.text)
			} else {
				items = append(items, p.name(t.text))
			}
		default:
			p.fail(t, "cannot assign to %v", t)
		}
		if !p.skipOperator(",") {
			break
		}
		tuple = true
		if p.isName(ends...) || p.isOperator("=") || p.isOperator(")") || p.peek().kind == tokenBlockEnd {
			break
		}
	}
	if len(items) == 1 && !tuple {
		return items[0]
	}
	return &tupleExpr{items}
}

func (p *parser) macroStatement() node {
	m := &macroNode{name: p.expectName()}
	m.id = p.id(m.name)
	p.set[m.name] = true
	p.signature(m)
	p.macroBody(m, "endmacro")
	return m
}

// macroBody parses the body of a macro and records which special variables it uses.
func (p *parser) macroBody(m *macroNode, end string) {
	p.closures = p.closures || p.scopes > 0
	outer, loops := p.used, p.loops
	p.used, p.loops = map[string]bool{}, 0
	m.body, _ = p.block(end)
	m.varargs, m.kwargs, m.caller = p.used["varargs"], p.used["kwargs"], p.used["caller"]
	for name := range p.used {
		outer[name] = true
	}
	p.used, p.loops = outer, loops
}

func (p *parser) signature(m *macroNode) {
	p.expectOperator("(")
	for !p.skipOperator(")") {
		if len(m.params) > 0 {
			p.expectOperator(",")
		}
		t := p.peek()
		name := p.expectName()
		m.params, m.ids, p.set[name] = append(m.params, name), append(m.ids, p.id(name)), true
		if p.skipOperator("=") {
			m.defaults = append(m.defaults, p.expression(true))
		} else if len(m.defaults) > 0 {
			p.fail(t, "parameter %q has no default, and one before it has", t.text)
		}
	}
}

func (p *parser) callStatement(t token) node {
	m := &macroNode{name: "caller"}
	if p.isOperator("(") {
		p.signature(m)
	}
	call, ok := p.expression(true).(*callExpr)
	if !ok {
		p.fail(t, "{%% call %%} wants a call")
	}
	p.macroBody(m, "endcall")
	return &callNode{t.line, call, m}
}
