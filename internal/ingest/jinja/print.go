package jinja

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str returns Python's str() of a value, as {{ }} prints it.
func (e *execution) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *undefined:
		if e.strict && v != noElse {
			e.lacks(v)
		}
		return ""
	case int64:
		s := strconv.FormatInt(v, 10)
		e.step(1)
		e.charge(int64(len(s)))
		return s
	case nil:
		if e.strict {
			panic(&RunError{e.line, ErrNull})
		}
	}
	p := printer{e: e}
	p.repr(v)
	return string(p.out)
}

// printer writes values as Python's repr() or json.dumps() does.
type printer struct {
	e     *execution
	out   []byte
	shown bool   // it is written to the text as it is
	marks []Mark // marks of traced strings
}

func (p *printer) write(s string) {
	p.e.charge(int64(len(s)))
	p.out = append(p.out, s...)
}

func (p *printer) repr(v any) {
	p.e.step(1)
	switch v := v.(type) {
	case nil:
		p.write("None")
	case bool:
		p.write([2]string{"False", "True"}[btoi(v)])
	case int64:
		p.write(strconv.FormatInt(v, 10))
	case *big.Int:
		p.write(v.String()) // at most maxBits long
	case float64:
		p.write(floatText(v))
	case string:
		p.quote(v)
	case markup:
		p.write("Markup(")
		p.quote(string(v))
		p.write(")")
	case *undefined:
		p.write("Undefined")
	case *List:
		p.e.asWhole(v)
		p.items("[", v.Items, "]")
	case *tuple:
		if len(v.Items) == 1 {
			p.items("(", v.Items, ",)")
		} else {
			p.items("(", v.Items, ")")
		}
	case *numberRange:
		p.write(v.String())
	case *Dict:
		p.dict(v)
	case *namespace:
		p.e.stateful()
		p.write("<Namespace ")
		p.dict(&v.Dict)
		p.write(">")
	case *view:
		p.write(typeName(v) + "(")
		p.items("[", v.items(p.e), "]")
		p.write(")")
	case *iterator:
		p.write("<generator object " + v.name + ">")
	case *function:
		p.write("<function " + v.name + ">")
	default:
		p.write("<" + typeName(v) + ">")
	}
}

func (p *printer) items(before string, items []any, after string) {
	p.e.enter()
	defer p.e.leave()
	p.write(before)
	for i, item := range items {
		if i > 0 {
			p.write(", ")
		}
		p.repr(item)
	}
	p.write(after)
}

func (p *printer) dict(d *Dict) {
	p.e.enter()
	defer p.e.leave()
	d.readAll()
	p.write("{")
	for i := range d.entries {
		if i > 0 {
			p.write(", ")
		}
		p.repr(d.entries[i].key)
		p.write(": ")
		p.repr(d.entries[i].value)
	}
	p.write("}")
}

// quote writes a string as Python's repr does: in single quotes, unless it contains them and no
// double quotes.
func (p *printer) quote(s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	p.e.touchText(s)
	p.e.charge(int64(len(s)) + 2)
	if len(s) > stepBytes {
		p.out = slices.Grow(p.out, len(s)+len(s)/2)
	}
	p.out = append(p.out, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			p.out = append(p.out, '\\', byte(r))
		case r == '\n':
			p.out = append(p.out, `\n`...)
		case r == '\r':
			p.out = append(p.out, `\r`...)
		case r == '\t':
			p.out = append(p.out, `\t`...)
		case r != ' ' && !printableInPython(r):
			p.e.charge(10)
			switch {
			case r < 0x100:
				p.out = append(append(p.out, `\x`...), hex(r, 2)...)
			case r < 0x10000:
				p.out = append(append(p.out, `\u`...), hex(r, 4)...)
			default:
				p.out = append(append(p.out, `\U`...), hex(r, 8)...)
			}
		default:
			p.out = utf8.AppendRune(p.out, r)
		}
	}
	p.out = append(p.out, quote)
}

func printableInPython(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r < 0x7f
	}
	return unicode.IsPrint(r)
}

func hex(r rune, digits int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// floatText returns Python's repr of a float: the shortest digits that read back as f, with an
// exponent from 1e16 on and below 1e-4.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0:
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e16 || a < 1e-4 {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// jsonOptions holds the arguments of tojson.
type jsonOptions struct {
	ascii, sorted bool
	indent        string
	lines         bool // an indent was given
	comma, colon  string
	depth         int
}

// json writes a value as Python's json.dumps does.
func (p *printer) json(v any, o *jsonOptions) {
	p.e.step(1)
	switch v := v.(type) {
	case nil:
		p.write("null")
	case bool:
		p.write([2]string{"false", "true"}[btoi(v)])
	case int64, *big.Int:
		p.repr(v)
	case float64:
		p.write(jsonFloat(v))
	case string:
		p.jsonString(v, o)
	case markup:
		p.jsonString(string(v), o)
	case *List:
		p.e.asWhole(v)
		p.jsonList(v.Items, o)
	case *tuple:
		p.jsonList(v.Items, o)
	case *Dict:
		p.jsonDict(v, o)
	default:
		p.e.fail("Object of type %s is not JSON serializable", typeName(v))
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatText(f)
}

func (p *printer) newline(o *jsonOptions) {
	if !o.lines {
		return
	}
	p.e.charge(int64(o.depth * len(o.indent)))
	p.write("\n")
	for range o.depth {
		p.out = append(p.out, o.indent...)
	}
}

func (p *printer) jsonList(items []any, o *jsonOptions) {
	if len(items) == 0 {
		p.write("[]")
		return
	}
	p.e.enter()
	defer p.e.leave()
	p.write("[")
	o.depth++
	for i, item := range items {
		if i > 0 {
			p.write(o.comma)
		}
		p.newline(o)
		p.json(item, o)
	}
	o.depth--
	p.newline(o)
	p.write("]")
}

func (p *printer) jsonDict(d *Dict, o *jsonOptions) {
	if d.Len() == 0 {
		p.write("{}")
		return
	}
	p.e.enter()
	defer p.e.leave()
	d.readAll()
	p.write("{")
	o.depth++
	entries := d.entries
	if o.sorted {
		entries = p.e.sortEntries(entries)
	}
	for i := range entries {
		if i > 0 {
			p.write(o.comma)
		}
		p.newline(o)
		switch k := entries[i].key.(type) {
		case string:
			p.jsonString(k, o)
		case markup:
			p.jsonString(string(k), o)
		case nil, bool, int64, *big.Int, float64:
			p.write(`"`)
			p.json(k, o)
			p.write(`"`)
		default:
			p.e.fail("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		p.write(o.colon)
		p.json(entries[i].value, o)
	}
	o.depth--
	p.newline(o)
	p.write("}")
}

func (p *printer) jsonString(s string, o *jsonOptions) {
	p.e.charge(int64(len(s)) + 2)
	if len(s) > stepBytes {
		p.out = slices.Grow(p.out, EscapedLen(s)+2)
	}
	p.out = append(p.out, '"')
	if t := p.e.trace; t != nil {
		if at := t.find(s); at >= 0 && p.shown && !o.ascii {
			p.marks = append(p.marks, Mark{len(p.out), at, at + len(s), true})
		} else if at >= 0 {
			t.Faithful = false
		}
	}
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' && (b < utf8.RuneSelf || !o.ascii) && (b != 0x7f || !o.ascii) {
			i++
			continue
		}
		p.e.charge(12)
		p.out = append(p.out, s[from:i]...)
		size := 1
		switch b {
		case '"', '\\':
			p.out = append(p.out, '\\', b)
		case '\n':
			p.out = append(p.out, `\n`...)
		case '\r':
			p.out = append(p.out, `\r`...)
		case '\t':
			p.out = append(p.out, `\t`...)
		case '\f':
			p.out = append(p.out, `\f`...)
		case '\b':
			p.out = append(p.out, `\b`...)
		case 0x7f:
			p.out = append(p.out, b)
		default:
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r > 0xffff {
				r -= 0x10000
				p.out = append(append(p.out, `\u`...), hex(0xd800+r>>10, 4)...)
				r = 0xdc00 + r&0x3ff
			}
			p.out = append(append(p.out, `\u`...), hex(r, 4)...)
		}
		i += size
		from = i
	}
	p.out = append(append(p.out, s[from:]...), '"')
}
