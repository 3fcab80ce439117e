package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// MaxTemplateBytes is the length of the longest template in bytes.
	MaxTemplateBytes = 1 << 20
	// maxDepth bounds the nesting of expressions, blocks and calls.
	maxDepth = 200
	// parsedFactor is the memory of a parsed template per byte of its source.
	parsedFactor = 64
)

// Template is a parsed template. It is immutable.
type Template struct {
	body       []node
	generation bool
	closures   bool // blocks may be run after the scope in which they stand has ended
	marks      bool // its text may hold markStart or markEnd
	tail       int  // from which statement of the body on all are as isTail has them
	names      map[string]bool
	ids        map[string]int
	size       int
}

// Parse parses a template. An error is a *SyntaxError.
func Parse(source string) (t *Template, err error) {
	if len(source) > MaxTemplateBytes {
		return nil, &SyntaxError{1, fmt.Sprintf("%d bytes are too long for a template, whose limit is %d",
			len(source), MaxTemplateBytes)}
	}
	defer func() {
		if r := recover(); r != nil {
			syntax, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			t, err = nil, syntax
		}
	}()
	p := &parser{tokens: lex(source), used: map[string]bool{}, ids: map[string]int{"loop": loopID,
		"caller": callerID, "kwargs": kwargsID, "varargs": varargsID}}
	t = &Template{size: len(source)}
	t.body = p.statements()
	t.generation, t.closures, t.names, t.ids = p.generation, p.closures, p.used, p.ids
	for t.tail = len(t.body); t.tail > 0 && isTail(t.body[t.tail-1]); t.tail-- {
	}
	t.marks = p.generation || strings.Contains(source, markStart) || strings.Contains(source, markEnd)
	return t, nil
}

// HasGeneration reports whether the template marks what the assistant says with {% generation %}.
func (t *Template) HasGeneration() bool { return t.generation }

// Uses reports whether the template reads a variable of that name.
func (t *Template) Uses(name string) bool { return t.names[name] }

// ResidentBytes returns the memory of the parsed template.
func (t *Template) ResidentBytes() int64 { return int64(parsedFactor * t.size) }

type parser struct {
	tokens     []token
	at         int
	depth      int
	loops      int // enclosing for statements
	generation bool
	closures   bool
	used       map[string]bool // names that are read
	ids        map[string]int  // of names, in the order of their first use
}

// The ids of names that statements set.
const (
	loopID = iota
	callerID
	kwargsID
	varargsID
)

// id returns the number by which scopes know a name.
func (p *parser) id(name string) int {
	id, ok := p.ids[name]
	if !ok {
		id = len(p.ids)
		p.ids[name] = id
	}
	return id
}

func (p *parser) name(name string) *nameExpr {
	return &nameExpr{name: name, id: p.id(name), global: globalFunctions[name], hint: "'" + name + "' is undefined"}
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

func (p *parser) fail(t token, format string, args ...any) {
	panic(&SyntaxError{t.line, fmt.Sprintf(format, args...)})
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek(), "nested deeper than %d", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) isOperator(text string) bool {
	t := p.peek()
	return t.kind == tokenOperator && t.text == text
}

func (p *parser) isName(names ...string) bool {
	t := p.peek()
	return t.kind == tokenName && slices.Contains(names, t.text)
}

func (p *parser) skipOperator(text string) bool {
	if p.isOperator(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expectOperator(text string) {
	if !p.skipOperator(text) {
		p.fail(p.peek(), "expected %q, found %v", text, p.peek())
	}
}

func (p *parser) expectName() string {
	t := p.next()
	if t.kind != tokenName {
		p.fail(t, "expected a name, found %v", t)
	}
	return t.text
}

func (p *parser) expect(k tokenKind) {
	if t := p.next(); t.kind != k {
		p.fail(t, "expected %v, found %v", token{kind: k}, t)
	}
}

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
	body := p.statements(ends...)
	return body, p.next().text
}

var errNotLoaded = errors.New("loads another template, which a chat template cannot")

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
		n = p.macroStatement(t)
	case "call":
		n = p.callStatement(t)
	case "filter":
		f := p.filter(nil, true)
		body, _ := p.block("endfilter")
		n = &filterNode{t.line, f, body}
	case "generation":
		p.generation = true
		body, _ := p.block("endgeneration")
		n = &generationNode{t.line, body}
	case "block":
		name := p.expectName()
		p.skipName("scoped")
		p.skipName("required")
		body, _ := p.block("endblock")
		p.skipName(name)
		n = &scopeNode{body}
	case "print":
		list = p.printStatement(t)
	case "break", "continue":
		if p.loops == 0 {
			p.fail(t, "%s outside a loop", t.text)
		}
		if n = node(breakNode{}); t.text == "continue" {
			n = continueNode{}
		}
	case "include", "import", "from", "extends":
		p.fail(t, "{%% %s %%} %v", t.text, errNotLoaded)
	default:
		p.fail(t, "unknown statement %q", t.text)
	}
	p.expect(tokenBlockEnd)
	if n != nil {
		list = append(list, n)
	}
	return list
}

func (p *parser) printStatement(t token) (list []node) {
	for p.peek().kind != tokenBlockEnd {
		if len(list) > 0 {
			p.expectOperator(",")
		}
		list = append(list, &printNode{t.line, p.expression(true)})
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
	p.loops++
	body, end := p.block("endfor", "else")
	p.loops--
	if n.body = body; end == "else" {
		n.none, _ = p.block("endfor")
	}
	return n
}

func (p *parser) setStatement(t token) node {
	target := p.target(true)
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
	n.body, _ = p.block("endwith")
	return n
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

func (p *parser) macroStatement(t token) node {
	m := &macroNode{line: t.line, name: p.expectName()}
	m.id = p.id(m.name)
	p.signature(m)
	p.macroBody(m, "endmacro")
	return m
}

// macroBody parses the body of a macro and records which special variables it uses.
func (p *parser) macroBody(m *macroNode, end string) {
	p.closures = true
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
		m.params = append(m.params, p.expectName())
		m.ids = append(m.ids, p.id(m.params[len(m.params)-1]))
		if p.skipOperator("=") {
			m.defaults = append(m.defaults, p.expression(true))
		} else if len(m.defaults) > 0 {
			p.fail(t, "parameter %q has no default, and one before it has", t.text)
		}
	}
}

func (p *parser) callStatement(t token) node {
	m := &macroNode{line: t.line, name: "caller"}
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
