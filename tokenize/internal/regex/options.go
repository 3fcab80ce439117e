package regex

import (
	"strings"
)

// options are the settings that (?i) and the like change for the rest of a group.
type options struct {
	ignoreCase, dotAll, extended                         bool
	asciiWord, asciiDigit, asciiSpace, asciiPosixBracket bool
}

// skipExtended skips white space or a comment, which (?x) allows.
func (p *parser) skipExtended() bool {
	switch c := p.pattern[p.pos]; {
	case c == ' ' || c >= '\t' && c <= '\r':
		p.pos++
		return true
	case c == '#':
		end := strings.IndexByte(p.pattern[p.pos:], '\n')
		if end < 0 {
			p.pos = len(p.pattern)
		} else {
			p.pos += end + 1
		}
		return true
	}
	return false
}

// isolatedOptions parses (?i) and the like, which apply to the end of the group, alternatives
// included: a(?i)b|c is a(?i:b|c).
func (p *parser) isolatedOptions() *node {
	if !p.looking("(?") {
		return nil
	}
	start := p.pos
	p.pos += 2
	opts, ok := p.optionLetters()
	if !ok || !p.take(")") {
		p.pos = start
		return nil
	}
	saved := p.opts
	p.opts = opts
	rest := p.alternation()
	p.opts = saved
	return rest
}

// optionLetters parses the letters of a group's options; ok is false if there are none or if one is
// unknown.
func (p *parser) optionLetters() (opts options, ok bool) {
	opts = p.opts
	on := true
	for start := p.pos; p.more(); p.pos++ {
		switch p.pattern[p.pos] {
		case 'i':
			opts.ignoreCase = on
		case 'm':
			opts.dotAll = on
		case 'x':
			opts.extended = on
		case 'W':
			opts.asciiWord = on
		case 'D':
			opts.asciiDigit = on
		case 'S':
			opts.asciiSpace = on
		case 'P':
			opts.asciiWord, opts.asciiDigit, opts.asciiSpace, opts.asciiPosixBracket = on, on, on, on
		case '-':
			on = false
		default:
			return opts, p.pos > start
		}
	}
	return opts, false
}
