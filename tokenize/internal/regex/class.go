package regex

import (
	"slices"
	"strings"
)

// class parses a character class after its opening bracket. Under (?i) case folding is applied to
// the positive set before a leading ^ negates it, and a character of the set that equals a string
// (U+00DF) adds that string as an alternative.
func (p *parser) class(start int) *node {
	set, negate := p.classSet(start)
	if !p.opts.ignoreCase {
		if negate {
			set = set.negate()
		}
		return &node{kind: nodeSet, set: set}
	}
	plain := set
	set = set.fold()
	if negate {
		return &node{kind: nodeSet, set: set.negate()}
	}
	alternatives := []*node{{kind: nodeSet, set: set}}
	for _, e := range expansions() {
		if plain.has(e.char) {
			alternatives = append(alternatives, foldedText(e.text))
		}
	}
	return altOf(alternatives)
}

// classSet parses up to the closing bracket. negate reports a leading ^, which set does not
// include.
func (p *parser) classSet(start int) (set runeSet, negate bool) {
	p.enter()
	defer func() { p.depth-- }()
	negate = p.take("^")
	var left runeSet // what precedes the last &&
	hasLeft := false
	first := true
	for ; ; first = false {
		if !p.more() {
			p.failAt(start, "character class is not closed")
		}
		if p.looking("]") && !(first && strings.IndexByte(p.pattern[p.pos+1:], ']') >= 0) {
			p.pos++
			break
		}
		if p.take("&&") {
			set = set.normalize()
			if hasLeft {
				set = intersect(left, set)
			}
			left, hasLeft, set = set, true, nil
			continue
		}
		set = append(set, p.classItem()...)
	}
	set = set.normalize()
	if hasLeft {
		set = intersect(left, set)
	}
	return set, negate
}

// classItem parses a nested class, a set, or a character or range.
func (p *parser) classItem() runeSet {
	at := p.pos
	if p.take("[:") {
		if set, ok := p.posixBracket(); ok {
			return set
		}
		p.pos = at
	}
	if p.take("[") {
		set, negate := p.classSet(at)
		if negate {
			set = set.negate()
		}
		return set
	}
	lo, set := p.classChar()
	if set != nil {
		if p.looking("-") && !p.looking("-]") && !p.looking("-&&") && !p.looking("-[") {
			p.fail("range that begins with a set is not supported")
		}
		return set
	}
	if !p.looking("-") || p.looking("-]") || p.looking("-&&") {
		return runeSet{{lo, lo}}
	}
	if p.looking("-[") {
		p.fail("range that ends with a class is not supported")
	}
	p.pos++
	hi, set := p.classChar()
	if set != nil {
		p.failAt(at, "range that ends with a set")
	}
	if hi < lo {
		p.failAt(at, "empty range")
	}
	if p.looking("-") && !p.looking("-]") {
		p.pos++
		return runeSet{{lo, hi}, {'-', '-'}} // a dash after a range is literal
	}
	return runeSet{{lo, hi}}
}

// classChar parses one character or an escape that stands for a set.
func (p *parser) classChar() (rune, runeSet) {
	start := p.pos
	c := p.next()
	if c != '\\' {
		return c, nil
	}
	c = p.next()
	switch c {
	case 'b':
		return '\b', nil
	case 'R', 'X':
		p.failAt(start, "\\%c in a character class is not supported", c)
	}
	if set, ok := p.classEscape(c, start, true); ok {
		if set == nil {
			set = runeSet{}
		}
		return 0, set
	}
	return p.charEscape(c, start), nil
}

// bracketWord returns the set that \w stands for inside brackets. Unlike \w elsewhere and \b, it
// lacks the superscripts and fractions of Latin-1.
func bracketWord() runeSet {
	return intersect(property("word"), runeSet{{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}}.negate())
}

var posixNames = []string{"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
	"space", "upper", "word", "xdigit"}

// posixBracket parses [:name:] after its opening. If it returns false, a nested class begins there.
func (p *parser) posixBracket() (runeSet, bool) {
	at := p.pos
	negate := p.take("^")
	end := strings.Index(p.pattern[p.pos:], ":]")
	if end < 0 {
		return nil, false
	}
	name := p.pattern[p.pos : p.pos+end]
	if !slices.Contains(posixNames, name) {
		p.failAt(at, "POSIX bracket %q is not known", name)
	}
	p.pos += end + 2
	set := property(name)
	switch name {
	case "punct":
		set = property("posixpunct") // with symbols, which \p{punct} lacks
	case "word":
		set = bracketWord()
	}
	if p.opts.asciiPosixBracket || p.opts.asciiWord && name == "word" || p.opts.asciiDigit && name == "digit" ||
		p.opts.asciiSpace && name == "space" {
		set = intersect(set, runeSet{{0, 127}})
	}
	if negate {
		set = set.negate()
	}
	return set, true
}
