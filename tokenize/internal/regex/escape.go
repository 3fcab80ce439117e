package regex

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var simpleEscapes = map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1B}

var assertions = map[rune]assertKind{'b': assertWord, 'B': assertNotWord, 'A': assertTextStart, 'z': assertTextEnd,
	'Z': assertTextEndOrNewline}

// escape parses what follows a backslash outside a class.
func (p *parser) escape(start int) *node {
	c := p.next()
	if assert, ok := assertions[c]; ok {
		return &node{kind: nodeAssert, assert: assert, ascii: p.opts.asciiWord}
	}
	switch c {
	case 'R':
		lineEnd := &node{kind: nodeSet, set: runeSet{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}}
		pair := catOf([]*node{{kind: nodeSet, set: runeSet{{'\r', '\r'}}}, {kind: nodeSet, set: runeSet{{'\n', '\n'}}}})
		return &node{kind: nodeAtomic, subs: []*node{altOf([]*node{pair, lineEnd})}}
	case 'X':
		return &node{kind: nodeGrapheme}
	case 'N':
		return &node{kind: nodeSet, set: runeSet{{'\n', '\n'}}.negate()}
	case 'O':
		return &node{kind: nodeSet, set: runeSet{{0, maxRune}}}
	case 'G', 'K', 'k', 'g', 'y', 'Y':
		p.failAt(start, "\\%c is not supported", c)
	}
	if c >= '1' && c <= '9' {
		p.failAt(start, "back-references are not supported")
	}
	if set, ok := p.classEscape(c, start, false); ok {
		return &node{kind: nodeSet, set: set}
	}
	return p.literal(p.charEscape(c, start))
}

// classEscape parses the escapes that stand for a set of characters, inside brackets or not.
func (p *parser) classEscape(c rune, start int, inside bool) (runeSet, bool) {
	var set runeSet
	ascii := false
	switch c {
	case 'w', 'W':
		set, ascii = property("word"), p.opts.asciiWord
		if inside {
			set = bracketWord()
		}
	case 'd', 'D':
		set, ascii = property("digit"), p.opts.asciiDigit
	case 's', 'S':
		set, ascii = property("space"), p.opts.asciiSpace
	case 'h', 'H':
		set = property("xdigit")
	case 'p', 'P':
		if !p.take("{") {
			return nil, false // a literal p, as in Oniguruma
		}
		negate := c == 'P'
		if p.take("^") {
			negate = !negate
		}
		name := p.upTo("}")
		set, ok := userProperty(name)
		if !ok {
			p.failAt(start, "character property %q is not known", name)
		}
		if inside && strings.EqualFold(name, "word") {
			set = bracketWord()
		}
		isName := func(n string) bool { return strings.EqualFold(n, name) }
		if p.opts.asciiPosixBracket && slices.ContainsFunc(posixNames, isName) {
			set = intersect(set, runeSet{{0, 127}})
		}
		if negate {
			set = set.negate()
		}
		return set, true
	default:
		return nil, false
	}
	if ascii {
		set = intersect(set, runeSet{{0, 127}})
	}
	if c < 'a' {
		set = set.negate()
	}
	return set, true
}

// charEscape parses the escapes that stand for one character; any other escaped character is
// literal.
func (p *parser) charEscape(c rune, start int) rune {
	if r, ok := simpleEscapes[c]; ok {
		return r
	}
	switch c {
	case 'x':
		if p.take("{") {
			digits := p.digits(16, 8)
			if digits == "" || !p.take("}") {
				p.failAt(start, "\\x{...} must hold one character")
			}
			return p.codePoint(digits, 16, start)
		}
		digits := p.digits(16, 2)
		if digits == "" {
			p.failAt(start, "\\x without digits is not supported")
		}
		r := p.codePoint(digits, 16, start)
		if r >= 0x80 {
			return p.rawBytes(byte(r), start)
		}
		return r
	case 'u':
		digits := p.digits(16, 4)
		if len(digits) != 4 {
			p.failAt(start, "\\u needs four digits")
		}
		return p.codePoint(digits, 16, start)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		p.pos-- // the first digit counts
		if c == '0' {
			p.pos++
			return p.codePoint("0"+p.digits(8, 2), 8, start)
		}
		r := p.codePoint(p.digits(8, 3), 8, start)
		if r >= 0x80 {
			p.failAt(start, "octal escapes above \\177 are not supported")
		}
		return r
	case 'c', 'C', 'M':
		if c == 'M' || c == 'C' && !p.take("-") {
			p.failAt(start, "\\%c is not supported", c)
		}
		r := p.next()
		if r >= 0x80 || r == '\\' {
			p.failAt(start, "control escape is not supported")
		}
		return r & 0x1F
	}
	return c
}

// rawBytes continues \xE3 with the escapes of the other bytes of one UTF-8 character.
func (p *parser) rawBytes(first byte, start int) rune {
	raw := []byte{first}
	for !utf8.FullRune(raw) && p.take("\\x") {
		digits := p.digits(16, 2)
		if len(digits) != 2 {
			break
		}
		raw = append(raw, byte(p.codePoint(digits, 16, start)))
	}
	r, n := utf8.DecodeRune(raw)
	if n != len(raw) || r == utf8.RuneError && n == 1 {
		p.failAt(start, "byte escapes are not one UTF-8 character")
	}
	return r
}

func (p *parser) digits(base, most int) string {
	from := p.pos
	for p.more() && p.pos-from < most {
		c := p.pattern[p.pos]
		if !(c >= '0' && c <= '7' || base == 16 && (c >= '8' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f')) {
			break
		}
		p.pos++
	}
	return p.pattern[from:p.pos]
}

func (p *parser) codePoint(digits string, base, start int) rune {
	n, _ := strconv.ParseUint(digits, base, 64) // the parser took nothing but digits
	if n > maxRune || n >= 0xD800 && n < 0xE000 {
		p.failAt(start, "%#x is not a character", n)
	}
	return rune(n)
}
