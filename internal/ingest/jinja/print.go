package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// str returns Python's str() of a value, as {{ }} prints it.
func (e *execution) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case Decimal:
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
	case *List, *Dict:
		e.Printed = true
	}
	return e.repr(v)
}

// repr returns Python's repr() of a value.
func (e *execution) repr(v any) string {
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
	case Decimal:
		p.write("Decimal('" + string(v) + "')")
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
		switch {
		case v.kind == ofList:
			p.items("[", v.Items, "]")
		case v.kind == ofRange && v.numbers[2] == 1:
			p.write(fmt.Sprintf("range(%d, %d)", v.numbers[0], v.numbers[1]))
		case v.kind == ofRange:
			p.write(fmt.Sprintf("range(%d, %d, %d)", v.numbers[0], v.numbers[1], v.numbers[2]))
		case len(v.Items) == 1:
			p.items("(", v.Items, ",)")
		default:
			p.items("(", v.Items, ")")
		}
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
	p.elements(before, len(items), after, nil, func(i int) { p.repr(items[i]) })
}

func (p *printer) dict(d *Dict) {
	d.readAll()
	p.elements("{", d.Len(), "}", nil, func(i int) {
		p.repr(d.entries[i].key)
		p.write(": ")
		p.repr(d.entries[i].value)
	})
}

// elements writes brackets and the n elements between them. o is nil for what is no JSON.
func (p *printer) elements(before string, n int, after string, o *jsonOptions, element func(i int)) {
	p.e.enter()
	defer p.e.leave()
	p.write(before)
	comma := ", "
	if o != nil {
		comma = o.comma
		o.depth++
	}
	for i := range n {
		if i > 0 {
			p.write(comma)
		}
		p.newline(o)
		element(i)
	}
	if o != nil {
		if o.depth--; n > 0 {
			p.newline(o)
		}
	}
	p.write(after)
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
		case !unicode.IsPrint(r):
			p.e.charge(10)
			switch {
			case r < 0x100:
				p.out = fmt.Appendf(p.out, `\x%02x`, r)
			case r < 0x10000:
				p.out = fmt.Appendf(p.out, `\u%04x`, r)
			default:
				p.out = fmt.Appendf(p.out, `\U%08x`, r)
			}
		default:
			p.out = utf8.AppendRune(p.out, r)
		}
	}
	p.out = append(p.out, quote)
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
	case Decimal:
		p.write(string(v))
	case string:
		p.jsonString(v, o)
	case markup:
		p.jsonString(string(v), o)
	case *Dict:
		p.jsonDict(v, o)
	default:
		items, ok := sequence(v)
		if !ok {
			p.e.fail("Object of type %s is not JSON serializable", typeName(v))
		}
		p.e.asWhole(v)
		p.elements("[", len(items), "]", o, func(i int) { p.json(items[i], o) })
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
	if o == nil || !o.lines {
		return
	}
	p.e.charge(int64(o.depth * len(o.indent)))
	p.write("\n")
	for range o.depth {
		p.out = append(p.out, o.indent...)
	}
}

func (p *printer) jsonDict(d *Dict, o *jsonOptions) {
	d.readAll()
	entries := d.entries
	if o.sorted {
		p.e.charge(int64(len(entries)) * entryBytes)
		entries = slices.Clone(entries)
		slices.SortStableFunc(entries, func(a, b entry) int { return p.e.compare(a.key, b.key, "<") })
	}
	p.elements("{", len(entries), "}", o, func(i int) {
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
	})
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
		} else if t.traced(s) {
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
				var high rune
				high, r = utf16.EncodeRune(r)
				p.out = fmt.Appendf(p.out, `\u%04x`, high)
			}
			p.out = fmt.Appendf(p.out, `\u%04x`, r)
		}
		i += size
		from = i
	}
	p.out = append(append(p.out, s[from:]...), '"')
}
