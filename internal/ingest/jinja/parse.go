package jinja

import (
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
