package jinja

import (
	"fmt"
	"maps"
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
	keepsLoops bool // the variable loop may be used after its loop has ended
	marks      bool // its text may hold markStart or markEnd
	tail       int  // the first statement of the body from which all are as isTail has them
	names      map[string]bool
	ids        map[string]int
	free       bool // it reads a variable that it is given
	size       int
}

// Parse parses a template. An error is a *SyntaxError.
func Parse(source string) (*Template, error) {
	return (&Template{names: map[string]bool{}, ids: map[string]int{"loop": loopID, "caller": callerID,
		"kwargs": kwargsID, "varargs": varargsID}}).Parse(source)
}

// Parse parses a template that shares its variables with t, which is not executed before.
func (t *Template) Parse(source string) (parsed *Template, err error) {
	if len(source) > MaxTemplateBytes {
		return nil, &SyntaxError{1, fmt.Sprintf("template of %d bytes; the limit is %d",
			len(source), MaxTemplateBytes)}
	}
	defer func() {
		if r := recover(); r != nil {
			syntax, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			err = syntax
		}
	}()
	p := &parser{tokens: lex(source), used: t.names, ids: t.ids,
		set: map[string]bool{"loop": true, "caller": true, "kwargs": true, "varargs": true}}
	body := p.statements()
	tail := len(body)
	for ; tail > 0 && isTail(body[tail-1]); tail-- {
	}
	return &Template{body: body, generation: p.generation, closures: p.closures, keepsLoops: p.loopNames > p.loopFields,
		marks: p.generation || strings.Contains(source, markStart) || strings.Contains(source, markEnd), tail: tail,
		names: p.used, ids: p.ids, free: p.free, size: len(source)}, nil
}

// HasGeneration reports whether the template marks what the assistant says with {% generation %}.
func (t *Template) HasGeneration() bool { return t.generation }

// Uses reports whether the template reads a variable of that name.
func (t *Template) Uses(name string) bool { return t.names[name] }

// Names returns the sorted names of the variables that the template reads, those that it sets among them.
func (t *Template) Names() []string { return slices.Sorted(maps.Keys(t.names)) }

// IsConstant reports whether the template reads no variable but those that it sets.
func (t *Template) IsConstant() bool { return !t.free }

// Block returns the template of a block that is not inside another statement, nil if there is none. It begins with
// the statements before the block that set variables and macros.
func (t *Template) Block(name string) *Template {
	var before []node
	for _, n := range t.body {
		switch n := n.(type) {
		case *setNode, *setBlockNode, *macroNode:
			before = append(before, n)
		case *blockNode:
			if n.name == name {
				block := *t
				block.body = append(before, n.body...)
				return &block
			}
		}
	}
	return nil
}

// WritesOutside reports whether the template writes anything but white space outside of those blocks.
func (t *Template) WritesOutside() bool {
	return slices.ContainsFunc(t.body, func(n node) bool {
		switch n := n.(type) {
		case *setNode, *setBlockNode, *macroNode, *blockNode:
			return false
		case *textNode:
			return strings.TrimFunc(n.text, isSpace) != ""
		}
		return true
	})
}

// ResidentBytes returns the memory of the parsed template.
func (t *Template) ResidentBytes() int64 { return int64(parsedFactor * t.size) }

type parser struct {
	tokens     []token
	at         int
	depth      int
	loops      int // enclosing for statements
	scopes     int // enclosing statements with a scope of their own
	generation bool
	closures   bool
	used       map[string]bool // names that are read
	set        map[string]bool // names that were set before
	free       bool            // a name was read that was not
	// How often the variable loop is read, and how often only to take a number or a truth value from it.
	loopNames, loopFields int
	ids                   map[string]int // names, in the order of their first use
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
	return &nameExpr{name: name, id: p.id(name), global: globalFunctions[name],
		none: &undefined{hint: "'" + name + "' is undefined", name: name}}
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
