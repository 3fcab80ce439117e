package jinja

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// tuple parses expressions separated by commas: one expression, or a tuple.
func (p *parser) tuple(conditional bool, ends ...string) node {
	first := p.expression(conditional)
	if !p.isOperator(",") {
		return first
	}
	items := []node{first}
	for p.skipOperator(",") {
		if t := p.peek(); t.kind == tokenBlockEnd || t.kind == tokenPrintEnd || p.isOperator(")") || p.isName(ends...) {
			break
		}
		items = append(items, p.expression(conditional))
	}
	return &tupleExpr{items}
}

// expression parses an expression, with "… if … else …" if conditional is set.
func (p *parser) expression(conditional bool) node {
	p.enter()
	defer p.leave()
	n := p.or()
	for conditional && p.skipName("if") {
		c := &condExpr{test: p.or(), yes: n}
		if p.skipName("else") {
			c.no = p.expression(true)
		}
		n = c
	}
	return n
}

func (p *parser) or() node { return p.binary(p.and, "or") }

func (p *parser) and() node { return p.binary(p.not, "and") }

func (p *parser) not() node {
	if p.isName("not") {
		p.enter()
		defer p.leave()
		t := p.next()
		return &unaryExpr{t.line, "not", p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() node {
	first := p.sum()
	var c *compareExpr
	for {
		t := p.peek()
		operator := ""
		switch {
		case t.kind == tokenOperator:
			switch t.text {
			case "==", "!=", ">", ">=", "<", "<=":
				operator = t.text
			}
		case p.isName("in"):
			operator = "in"
		case p.isName("not"):
			if next := p.tokens[p.at+1]; next.kind == tokenName && next.text == "in" {
				p.at++
				operator = "not in"
			}
		}
		if operator == "" {
			break
		}
		p.next()
		if c == nil {
			c = &compareExpr{line: t.line, first: first}
		}
		c.operators, c.rest = append(c.operators, operator), append(c.rest, p.sum())
	}
	if c == nil {
		return first
	}
	c.empty = c.asksForNone()
	return c
}

// asksForNone reports whether a comparison is like "messages|length == 0" or "message.content|trim|length > 0".
func (c *compareExpr) asksForNone() bool {
	f, ok := c.first.(*filterExpr)
	if !ok || f.name != "length" && f.name != "count" || len(c.rest) != 1 || !isPart(f.of) {
		return false
	}
	zero, ok := c.rest[0].(*constExpr)
	return ok && zero.value == int64(0) && strings.Contains("== != >", c.operators[0])
}

// isPart reports whether an expression is a variable or a part of one, which may be trimmed.
func isPart(n node) bool {
	switch n := n.(type) {
	case *nameExpr:
		return true
	case *attributeExpr:
		return isPart(n.of)
	case *itemExpr:
		return is[*constExpr](n.key) && isPart(n.of)
	case *filterExpr:
		return n.name == "trim" && isPart(n.of)
	}
	return false
}

// binary parses operands joined by left-associative operators of one precedence.
func (p *parser) binary(operand func() node, operators ...string) node {
	n := operand()
	for {
		t := p.peek()
		if t.kind != tokenOperator && t.kind != tokenName || !slices.Contains(operators, t.text) {
			return n
		}
		p.next()
		n = &binaryExpr{t.line, t.text, n, operand()}
	}
}

func (p *parser) sum() node { return p.binary(p.concat, "+", "-") }

func (p *parser) concat() node {
	parts := []node{p.product()}
	for p.skipOperator("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concatExpr{parts}
}

func (p *parser) product() node { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() node { return p.binary(func() node { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) node {
	p.enter()
	defer p.leave()
	var n node
	if t := p.peek(); p.isOperator("-") || p.isOperator("+") {
		p.next()
		n = &unaryExpr{t.line, t.text, p.unary(false)}
	} else {
		n = p.primary()
	}
	n = p.postfix(n)
	if filters {
		n = p.filtersAndTests(n)
	}
	return n
}

func (p *parser) primary() node {
	t := p.next()
	switch t.kind {
	case tokenName:
		switch t.text {
		case "true", "True":
			return &constExpr{true}
		case "false", "False":
			return &constExpr{false}
		case "none", "None":
			return &constExpr{nil}
		}
		p.used[t.text] = true
		n := p.name(t.text)
		if n.id == loopID {
			p.loopNames++
		}
		p.free = p.free || !p.set[t.text] && (n.global == nil || !p.isOperator("("))
		return n
	case tokenString:
		s := t.text
		for p.peek().kind == tokenString {
			s += p.next().text
		}
		return &constExpr{s}
	case tokenInteger:
		return &constExpr{p.integer(t)}
	case tokenFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil && f == 0 {
			p.fail(t, "%s is not a number", t.text)
		}
		return &constExpr{f}
	case tokenOperator:
		switch t.text {
		case "(":
			if p.skipOperator(")") {
				return &tupleExpr{}
			}
			n := p.tuple(true)
			p.expectOperator(")")
			return n
		case "[":
			n := &listExpr{}
			p.commas("]", func() { n.items = append(n.items, p.expression(true)) })
			return n
		case "{":
			return p.dict()
		}
	}
	p.fail(t, "expected an expression, found %v", t)
	return nil
}

func (p *parser) integer(t token) any {
	n, ok := new(big.Int).SetString(t.text, 0)
	if len(t.text) > 1 && t.text[0] == '0' && isDigit(t.text[1]) {
		n, ok = new(big.Int).SetString(t.text, 10)
		ok = ok && n.Sign() == 0
	}
	if !ok || n.BitLen() > maxBits {
		p.fail(t, "%.40s is not a number", t.text)
	}
	return small(n)
}

// commas parses elements up to a closing bracket. A comma may follow the last one.
func (p *parser) commas(end string, element func()) {
	for first := true; !p.skipOperator(end); first = false {
		if !first {
			p.expectOperator(",")
			if p.skipOperator(end) {
				return
			}
		}
		element()
	}
}

func (p *parser) dict() node {
	d := &dictExpr{}
	p.commas("}", func() {
		d.keys = append(d.keys, p.expression(true))
		p.expectOperator(":")
		d.values = append(d.values, p.expression(true))
	})
	return d
}
