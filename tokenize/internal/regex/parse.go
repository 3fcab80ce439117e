package regex

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parser turns a pattern into nodes. Errors travel as panics of *SyntaxError, which Compile catches.
type parser struct {
	pattern string
	pos     int
	opts    options
	depth   int
	folds   int // alternatives made for strings that equal characters
	size    int // approximate size of the nodes in bytes
}

// Limits of a pattern, so that a tokenizer file of any size compiles in a few MiB. The longest
// patterns in use are about 2 KB.
const (
	maxPattern    = 32 << 10 // bytes
	maxParseBytes = 6 << 20  // the node tree and its sets
	nodeBytes     = 160
	rangeBytes    = 8
)

// grow counts a node and its set against maxParseBytes.
func (p *parser) grow(n *node) *node {
	if p.size += nodeBytes + rangeBytes*len(n.set); p.size > maxParseBytes {
		panic(&SyntaxError{Pattern: p.pattern, Offset: p.pos, Reason: tooLarge, TooLarge: true})
	}
	return n
}

// maxDepth limits how deeply groups and classes nest: look-around and atomic groups recurse at
// match time.
const maxDepth = 100

func parse(pattern string) *node {
	p := &parser{pattern: pattern}
	if len(pattern) > maxPattern {
		panic(&SyntaxError{Pattern: pattern, Reason: fmt.Sprintf("it has %d bytes; the limit is %d", len(pattern),
			maxPattern), TooLarge: true})
	}
	if !utf8.ValidString(pattern) {
		p.fail("pattern is not UTF-8")
	}
	root := finishFold(p.alternation())
	if p.pos < len(p.pattern) {
		p.fail("unmatched )")
	}
	return root
}

func (p *parser) failAt(offset int, format string, args ...any) {
	panic(&SyntaxError{Pattern: p.pattern, Offset: offset, Reason: fmt.Sprintf(format, args...)})
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.pos, format, args...) }

func (p *parser) more() bool { return p.pos < len(p.pattern) }

func (p *parser) looking(s string) bool { return strings.HasPrefix(p.pattern[p.pos:], s) }

func (p *parser) take(s string) bool {
	if p.looking(s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *parser) next() rune {
	if !p.more() {
		p.fail("ends too early")
	}
	c, n := utf8.DecodeRuneInString(p.pattern[p.pos:])
	p.pos += n
	return c
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested more than %d deep", maxDepth)
	}
}

// alternation parses up to a closing parenthesis or the end. Options set inside end with it.
func (p *parser) alternation() *node {
	p.enter()
	saved := p.opts
	var branches []*node
	for more := true; more; more = p.take("|") {
		branches = append(branches, p.branch())
	}
	p.opts = saved
	p.depth--
	if len(branches) > 1 {
		for i, b := range branches {
			branches[i] = finishFold(b)
		}
	}
	return altOf(branches)
}

func (p *parser) branch() *node {
	var items []*node
	for p.more() && !p.looking("|") && !p.looking(")") {
		if p.opts.extended && p.skipExtended() {
			continue
		}
		if p.take("(?#") {
			end := strings.IndexByte(p.pattern[p.pos:], ')')
			if end < 0 {
				p.fail("comment does not end")
			}
			p.pos += end + 1
			continue
		}
		start := p.pos
		if rest := p.isolatedOptions(); rest != nil {
			items = append(items, rest)
			break
		}
		items = append(items, p.grow(p.quantified(p.grow(p.atom()), start)))
	}
	if len(items) == 1 {
		return items[0] // a foldable literal may still join its neighbours outside the group
	}
	return catOf(p.joinFolds(items))
}

func (p *parser) atom() *node {
	start := p.pos
	switch c := p.next(); c {
	case '(':
		return p.group(start)
	case '[':
		return p.class(start)
	case '.':
		if p.opts.dotAll {
			return &node{kind: nodeSet, set: runeSet{{0, maxRune}}}
		}
		return &node{kind: nodeSet, set: runeSet{{'\n', '\n'}}.negate()}
	case '^':
		return &node{kind: nodeAssert, assert: assertLineStart}
	case '$':
		return &node{kind: nodeAssert, assert: assertLineEnd}
	case '*', '+', '?':
		p.failAt(start, "nothing to repeat before %q", c)
	case '{':
		if _, _, ok := p.interval(); ok {
			p.failAt(start, "nothing to repeat before {")
		}
		return p.literal('{')
	case '\\':
		return p.escape(start)
	default:
		return p.literal(c)
	}
	return nil
}

func (p *parser) literal(c rune) *node {
	if !p.opts.ignoreCase {
		return &node{kind: nodeSet, set: runeSet{{c, c}}}
	}
	return &node{kind: nodeSet, set: foldedChar(c), foldable: true, literal: c}
}

func (p *parser) group(start int) *node {
	n := &node{kind: nodeEmpty}
	inner, plain := p.opts, false
	switch {
	case !p.looking("?"): // a capturing group: captures are not used
	case p.take("?:"):
		plain = true
	case p.take("?="):
		n = &node{kind: nodeLook}
	case p.take("?!"):
		n = &node{kind: nodeLook, negate: true}
	case p.take("?<="):
		n = &node{kind: nodeLook, behind: true}
	case p.take("?<!"):
		n = &node{kind: nodeLook, behind: true, negate: true}
	case p.take("?>"):
		n = &node{kind: nodeAtomic}
	case p.looking("?<"), p.looking("?'"):
		closing := ">"
		if p.pattern[p.pos+1] == '\'' {
			closing = "'"
		}
		p.pos += 2
		name := p.upTo(closing)
		if name == "" || strings.ContainsAny(name, "()[]{} ") {
			p.failAt(start, "group has no valid name")
		}
	default:
		p.pos++
		opts, ok := p.optionLetters()
		if !ok || !p.take(":") {
			p.failAt(start, "group option %q is not supported", p.pattern[start:min(start+4, len(p.pattern))])
		}
		inner = opts
	}
	saved := p.opts
	p.opts = inner
	body := p.alternation()
	p.opts = saved
	if !p.take(")") {
		p.failAt(start, "group is not closed")
	}
	if n.kind == nodeEmpty {
		if !plain {
			body = finishFold(body) // it does not join its neighbours
		}
		return body
	}
	n.subs = []*node{finishFold(body)}
	if n.behind && body.onlyForward() {
		p.failAt(start, "look-around, atomic groups and possessive repeats inside look-behind are not supported")
	}
	return n
}

// upTo returns the text before closing and skips both. It returns "" if there is no closing.
func (p *parser) upTo(closing string) string {
	end := strings.Index(p.pattern[p.pos:], closing)
	if end < 0 {
		return ""
	}
	s := p.pattern[p.pos : p.pos+end]
	p.pos += end + len(closing)
	return s
}

// onlyForward reports whether n contains something that cannot be matched from right to left.
func (n *node) onlyForward() bool {
	switch n.kind {
	case nodeLook, nodeAtomic, nodeGrapheme:
		return true
	case nodeRepeat:
		if n.mode == possessive {
			return true
		}
	}
	return slices.ContainsFunc(n.subs, (*node).onlyForward)
}

// maxRepeat is Oniguruma's limit for the bounds of an interval.
const maxRepeat = 100000

// interval parses {m}, {m,}, {,n} and {m,n} after the brace; anything else leaves the brace a
// literal.
func (p *parser) interval() (lo, hi int, ok bool) {
	start := p.pos
	number := func() int {
		n, from := 0, p.pos
		for p.more() && p.pattern[p.pos] >= '0' && p.pattern[p.pos] <= '9' {
			if n = n*10 + int(p.pattern[p.pos]-'0'); n > maxRepeat {
				p.fail("repeat count above %d", maxRepeat)
			}
			p.pos++
		}
		if p.pos == from {
			return -1
		}
		return n
	}
	lo = number()
	hi = lo
	if p.take(",") {
		hi = number()
		if lo < 0 && hi < 0 {
			p.pos = start
			return 0, 0, false
		}
		lo = max(lo, 0)
		if hi < 0 {
			hi = infinite
		}
	}
	if lo < 0 || !p.take("}") {
		p.pos = start
		return 0, 0, false
	}
	return lo, hi, true
}

// quantified parses the quantifiers after an atom. A plus after an interval is another quantifier
// and does not make it possessive, and {n}? is an optional {n}, as in Ruby.
func (p *parser) quantified(n *node, start int) *node {
	for p.more() {
		if p.opts.extended && p.skipExtended() {
			continue
		}
		var lo, hi int
		isInterval := false
		switch {
		case p.take("*"):
			lo, hi = 0, infinite
		case p.take("+"):
			lo, hi = 1, infinite
		case p.take("?"):
			lo, hi = 0, 1
		case p.looking("{"):
			p.pos++
			var ok bool
			if lo, hi, ok = p.interval(); !ok {
				p.pos--
				return n
			}
			isInterval = true
			if hi != infinite && hi < lo {
				p.failAt(start, "interval whose lower bound is above the upper one is not supported")
			}
		default:
			return n
		}
		if n.kind == nodeAssert || n.kind == nodeLook {
			p.failAt(start, "repeat of an assertion is not supported")
		}
		r := &node{kind: nodeRepeat, subs: []*node{n}, min: lo, max: hi}
		switch {
		case isInterval && lo == hi && p.take("?"):
			r = &node{kind: nodeRepeat, subs: []*node{r}, min: 0, max: 1}
		case p.take("?"):
			r.mode = lazy
		case !isInterval && p.take("+"):
			r.mode = possessive
		}
		r.subs[0] = finishFold(r.subs[0])
		n = r
	}
	return n
}
