package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/lazy"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenData
	tokenPrint    // {{
	tokenPrintEnd // }}
	tokenBlock    // {%
	tokenBlockEnd // %}
	tokenName
	tokenString
	tokenInteger
	tokenFloat
	tokenOperator
)

type token struct {
	kind tokenKind
	text string // a name, an operator, the decoded string, the digits
	line int
}

func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the template"
	case tokenPrintEnd:
		return `"}}"`
	case tokenBlockEnd:
		return `"%}"`
	case tokenData:
		return "text"
	}
	return strconv.Quote(t.text)
}

// A SyntaxError says why a template cannot be parsed.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// lexer splits a template into tokens, with the white space control of trim_blocks and
// lstrip_blocks.
type lexer struct {
	src    string
	at     int
	line   int
	tokens []token
}

func (l *lexer) fail(format string, args ...any) {
	panic(&SyntaxError{l.line, fmt.Sprintf(format, args...)})
}

// lex returns the tokens of a template. It panics with a *SyntaxError.
func lex(source string) []token {
	source = strings.ReplaceAll(source, "\r\n", "\n")
	source = strings.ReplaceAll(source, "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	l := &lexer{src: source, line: 1}
	for l.at < len(l.src) {
		l.data()
	}
	l.emit(tokenEnd, "")
	return l.tokens
}

func (l *lexer) emit(k tokenKind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// advance moves past n bytes.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.at:l.at+n], "\n")
	l.at += n
}

// data reads text up to the next tag, and the tag.
func (l *lexer) data() {
	rest := l.src[l.at:]
	n, tag := 0, ""
	for {
		i := strings.IndexByte(rest[n:], '{')
		if i < 0 || n+i+1 >= len(rest) {
			l.emit(tokenData, rest)
			l.advance(len(rest))
			return
		}
		n += i
		if c := rest[n+1]; c == '{' || c == '%' || c == '#' {
			tag = rest[n : n+2]
			break
		}
		n++
	}
	sign := rest[n+2 : min(n+3, len(rest))]
	if sign != "-" && sign != "+" {
		sign = ""
	}
	if text := l.before(rest[:n], sign, tag != "{{"); text != "" {
		l.emit(tokenData, text)
	}
	l.advance(n + 2 + len(sign))
	switch tag {
	case "{#":
		l.comment()
	case "{%":
		if l.raw() {
			return
		}
		l.emit(tokenBlock, "")
		l.code("%}", tokenBlockEnd)
	default:
		l.emit(tokenPrint, "")
		l.code("}}", tokenPrintEnd)
	}
}

// before returns the text before a tag: without its white space after a "-", and without the blanks
// that begin the line of a block.
func (l *lexer) before(text, sign string, block bool) string {
	if sign == "-" {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == "+" || !block {
		return text
	}
	start := strings.LastIndexByte(text, '\n') + 1
	lineStarts := l.at == 0 || l.src[l.at-1] == '\n'
	if (start > 0 || lineStarts) && strings.TrimLeftFunc(text[start:], isSpace) == "" {
		return text[:start]
	}
	return text
}

// closing skips what follows the end of a block or comment that has the given sign.
func (l *lexer) closing(sign string) {
	switch {
	case sign == "-":
		l.skipSpace()
	case sign == "+":
	case strings.HasPrefix(l.src[l.at:], "\n"):
		l.advance(1)
	}
}

// skipSpace skips white space and returns what follows it.
func (l *lexer) skipSpace() string {
	rest := strings.TrimLeftFunc(l.src[l.at:], isSpace)
	l.advance(len(l.src) - l.at - len(rest))
	return rest
}

func (l *lexer) comment() {
	end := strings.Index(l.src[l.at:], "#}")
	if end < 0 {
		l.fail("a comment is not closed by #}")
	}
	sign := l.src[l.at+max(0, end-1) : l.at+end]
	l.advance(end + 2)
	l.closing(sign)
}

// rawBegin and rawEnd match what follows the {% of a raw block, and the tag that ends it, with their signs.
var (
	rawBegin = lazy.Regexp(`^` + space + `raw` + space + `(-?)%}`)
	rawEnd   = lazy.Regexp(`\{%([-+]?)` + space + `endraw` + space + `([-+]?)%}`)
)

// space matches what isSpace does.
const space = `[\s\v\x1c-\x1f\x{85}\pZ]*`

// raw reads {% raw %}…{% endraw %} if the block begins one.
func (l *lexer) raw() bool {
	begin := rawBegin().FindStringSubmatch(l.src[l.at:])
	if begin == nil {
		return false
	}
	l.advance(len(begin[0]))
	if begin[1] != "" {
		l.skipSpace()
	}
	body := l.src[l.at:]
	end := rawEnd().FindStringSubmatchIndex(body)
	if end == nil {
		l.fail("{%% raw %%} is not closed by {%% endraw %%}")
	}
	if text := l.before(body[:end[0]], body[end[2]:end[3]], true); text != "" {
		l.emit(tokenData, text)
	}
	l.advance(end[1])
	l.closing(body[end[4]:end[5]])
	return true
}

// operators lists the operators of expressions, longer ones first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{",
	"}", ">", "<", "=", ".", ":", "|", ",", ";"}

// code reads the inside of a tag up to its end.
func (l *lexer) code(end string, kind tokenKind) {
	var open []byte // brackets
	for {
		rest := l.skipSpace()
		if rest == "" {
			l.fail("a tag is not closed by %s", end)
		}
		if len(open) == 0 {
			sign := ""
			if rest[0] == '-' || rest[0] == '+' && kind == tokenBlockEnd {
				sign = rest[:1]
			}
			if strings.HasPrefix(rest[len(sign):], end) {
				l.emit(kind, "")
				l.advance(len(sign) + 2)
				if sign == "-" || kind == tokenBlockEnd {
					l.closing(sign)
				}
				return
			}
		}
		switch r, _ := utf8.DecodeRuneInString(rest); {
		case r == '\'' || r == '"':
			l.stringLiteral(rest)
		case r >= '0' && r <= '9':
			l.number(rest)
		case r == '_' || unicode.IsLetter(r):
			n := len(rest) - len(strings.TrimLeftFunc(rest, isNamePart))
			l.emit(tokenName, rest[:n])
			l.advance(n)
		default:
			open = l.operator(rest, open)
		}
	}
}

func isNamePart(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

func (l *lexer) operator(rest string, open []byte) []byte {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			if open = append(open, op[0]); len(open) > maxDepth {
				l.fail("brackets are nested deeper than %d", maxDepth)
			}
		case ")", "]", "}":
			if len(open) == 0 || strings.IndexByte("([{", open[len(open)-1]) != strings.Index(")]}", op) {
				l.fail("unexpected %q", op)
			}
			open = open[:len(open)-1]
		}
		l.emit(tokenOperator, op)
		l.advance(len(op))
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	l.fail("unexpected character %q", r)
	return nil
}

// number matches an integer with a prefix; or one without, and its fraction and its exponent.
var number = lazy.Regexp(`(?i)^(?:0[xob][\da-f_]*|(\d(?:_?\d)*)((?:\.\d(?:_?\d)*)?(?:e[-+]?\d(?:_?\d)*)?))`)

// number reads an integer, or a number with a fraction or an exponent.
func (l *lexer) number(rest string) {
	m := number().FindStringSubmatch(rest)
	text, kind, plain := m[0], tokenInteger, strings.ReplaceAll(m[0], "_", "")
	switch {
	case m[1] == "":
		plain = text
	case l.src[l.at-1] == '.': // the name is an attribute's
		text, plain = m[1], strings.ReplaceAll(m[1], "_", "")
	case m[2] != "":
		kind = tokenFloat
	}
	l.emit(kind, plain)
	l.advance(len(text))
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// stringLiteral reads a quoted string and decodes its escapes as Python's "unicode-escape" does.
func (l *lexer) stringLiteral(rest string) {
	var out []byte
	for i := 1; i < len(rest); i++ {
		switch b := rest[i]; {
		case b == rest[0]:
			l.emit(tokenString, string(out))
			l.advance(i + 1)
			return
		case b != '\\':
			out = append(out, b)
		case i+1 < len(rest):
			var n int
			out, n = l.escape(out, rest[i+1:])
			i += n
		}
	}
	l.fail("a string is not closed")
}

// escape appends what the escape after a backslash stands for, and returns its length.
func (l *lexer) escape(out []byte, s string) ([]byte, int) {
	if i := strings.IndexByte(`\'"abfnrtv`, s[0]); i >= 0 {
		return append(out, "\\'\"\a\b\f\n\r\t\v"[i]), 1
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	switch {
	case s[0] == '\n':
		return out, 1
	case digits > 0:
		if len(s) <= digits {
			l.fail(`\%c needs %d digits`, s[0], digits)
		}
		n, err := strconv.ParseUint(s[1:1+digits], 16, 32)
		if err != nil || n > unicode.MaxRune {
			l.fail(`\%s is not a character`, s[:1+digits])
		}
		return utf8.AppendRune(out, rune(n)), 1 + digits
	case s[0] == 'N':
		l.fail(`\N{…}, a character by its name, is not supported`)
	case s[0] >= '0' && s[0] <= '7':
		n, v := 0, rune(0)
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			v = v<<3 | rune(s[n]-'0')
			n++
		}
		return utf8.AppendRune(out, v), n
	}
	r, size := utf8.DecodeRuneInString(s)
	return utf8.AppendRune(append(out, '\\'), r), size
}

// isSpace reports whether r is white space to Python's \s and str.isspace.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
