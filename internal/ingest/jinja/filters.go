package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A filter changes a value: {{ value|name(arguments) }}.
type filter = func(e *execution, v any, a *arguments) any

var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs": filterAbs, "attr": filterAttr, "batch": filterBatch, "capitalize": textFilter(capitalize),
		"count": filterLength, "d": filterDefault, "default": filterDefault, "dictsort": filterDictsort, "e": filterEscape,
		"escape": filterEscape, "first": filterFirst, "float": filterFloat, "format": filterFormat, "groupby": filterGroupby,
		"indent": filterIndent, "int": filterInt, "items": filterItems, "join": filterJoin, "last": filterLast,
		"length": filterLength, "lower": textFilter(lower), "map": filterMap, "max": extreme("max", 1),
		"min": extreme("min", -1), "reject": selecting(false, false), "rejectattr": selecting(false, true),
		"replace": filterReplace, "reverse": filterReverse, "round": filterRound, "select": selecting(true, false),
		"selectattr": selecting(true, true), "slice": filterSlice, "sort": filterSort, "sum": filterSum,
		"title": textFilter(titleWords), "trim": filterTrim, "truncate": filterTruncate, "unique": filterUnique,
		"upper": textFilter(upper), "urlencode": filterUrlencode, "wordcount": filterWordcount,

		"center": func(e *execution, v any, a *arguments) any {
			return e.pad(e.str(v), e.integer(a.get(0, "width", int64(80)), "center wants a whole number"), " ", 0)
		},
		"forceescape": func(e *execution, v any, _ *arguments) any { return markup(e.escape(e.str(v))) },
		"list":        func(e *execution, v any, _ *arguments) any { return &List{Items: e.clone(e.iterate(v))} },
		"safe":        func(e *execution, v any, _ *arguments) any { return markup(e.str(v)) },
		"string":      func(e *execution, v any, _ *arguments) any { return sameKind(v, e.str(v)) },
		"tojson": func(e *execution, v any, a *arguments) any {
			p := printer{e: e}
			e.toJSON(&p, v, a)
			return string(p.out)
		},
	}
}

// captured applies the filters of a block to its text, in order.
func (e *execution) captured(n *filterExpr, v any, s *scope) any {
	if inner, ok := n.of.(*filterExpr); ok {
		v = e.captured(inner, v, s)
	}
	return e.filtered(n, v, s)
}

// filtered applies a filter to a value.
func (e *execution) filtered(n *filterExpr, v any, s *scope) any {
	a := e.takeArguments(&n.arguments, s)
	e.line = n.line
	out := e.filter(n.name, n.run, v, a)
	e.dropArguments(a)
	return out
}

func (e *execution) filter(name string, f filter, v any, a *arguments) any {
	if f == nil {
		e.fail("no filter named '%s'", name)
	}
	e.filtering(name, v, a)
	e.enter()
	out := f(e, v, a)
	e.leave()
	return out
}

func textFilter(change func(string) string) filter {
	return func(e *execution, v any, _ *arguments) any {
		s := e.str(v)
		e.charge(3 * int64(len(s)))
		return sameKind(v, change(s))
	}
}

func (e *execution) escape(s string) string {
	n := int64(len(s))
	for _, c := range "&<>'\"" {
		n += 4 * int64(strings.Count(s, string(c)))
	}
	e.charge(n)
	return htmlEscaper.Replace(s)
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func filterEscape(e *execution, v any, _ *arguments) any {
	if is[markup](v) {
		return v
	}
	return markup(e.escape(e.str(v)))
}

func filterDefault(e *execution, v any, a *arguments) any {
	e.check("default", a, "default_value", "boolean")
	_, isUndefined := v.(*undefined)
	if isUndefined || isTrue(a.get(1, "boolean", false)) && !isTrue(v) {
		return a.get(0, "default_value", "")
	}
	return v
}

func (e *execution) length(v any) int64 {
	switch v := v.(type) {
	case string, markup:
		s, _ := text(v)
		if e.trace != nil && !e.trace.empty {
			e.touchText(s)
		}
		e.step(int64(len(s)) / stepBytes)
		return int64(utf8.RuneCountInString(s))
	case *List:
		e.measured(v)
		return int64(len(v.Items))
	case *Dict:
		return int64(v.Len())
	case *view:
		return int64(v.of.Len())
	case *loop:
		v.counted(e)
		return int64(len(v.items))
	case *undefined:
		return 0
	}
	e.fail("object of type '%s' has no len()", typeName(v))
	return 0
}

func filterLength(e *execution, v any, _ *arguments) any { return e.length(v) }

func filterTrim(e *execution, v any, a *arguments) any {
	e.check("trim", a, "chars")
	out := strip(e, e.str(v), a.get(0, "chars", nil), true, true)
	if is[markup](v) {
		return markup(out)
	}
	return boxed(&e.texts, out)
}

func filterReplace(e *execution, v any, a *arguments) any {
	e.check("replace", a, "old", "new", "count")
	n := int64(-1)
	if c := a.get(2, "count", nil); c != nil {
		n = e.integer(c, "replace wants a whole number as count")
	}
	if len(a.positional)+a.named.Len() < 2 {
		e.fail("replace wants two arguments")
	}
	return e.replace(e.str(v), e.str(a.get(0, "old", nil)), e.str(a.get(1, "new", nil)), n)
}

// titleWords is jinja2's title filter, whose words begin after blanks, dashes and brackets.
func titleWords(s string) string {
	var b strings.Builder
	begins := true
	for _, r := range s {
		separates := isSpace(r) || strings.ContainsRune("-({[<", r)
		switch {
		case separates:
			b.WriteRune(r)
		case begins:
			b.WriteString(upper(string(r)))
		default:
			b.WriteString(lower(string(r)))
		}
		begins = separates
	}
	return b.String()
}

func filterWordcount(e *execution, v any, _ *arguments) any {
	s := e.str(v)
	e.step(int64(len(s)) / 64)
	return int64(len(strings.FieldsFunc(s, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})))
}

func filterIndent(e *execution, v any, a *arguments) any {
	e.check("indent", a, "width", "first", "blank")
	indent, ok := text(a.get(0, "width", int64(4)))
	if !ok {
		indent = e.blanks(e.integer(a.get(0, "width", int64(4)), "indent wants a number or a string"))
	}
	s, isText := text(v)
	if !isText {
		e.fail("indent wants a string, not '%s'", typeName(v))
	}
	lines := splitLines(e, s+"\n", &arguments{}).(*List).Items
	out := &printer{e: e}
	for i, line := range lines {
		if i > 0 {
			out.write("\n")
		}
		l := line.(string)
		if i == 0 && isTrue(a.get(1, "first", false)) || i > 0 && (l != "" || isTrue(a.get(2, "blank", false))) {
			out.write(indent)
		}
		out.write(l)
	}
	return string(out.out)
}

func (e *execution) blanks(n int64) string {
	e.charge(max(0, n))
	return strings.Repeat(" ", int(max(0, n)))
}

func filterTruncate(e *execution, v any, a *arguments) any {
	e.check("truncate", a, "length", "killwords", "end", "leeway")
	s, isText := text(v)
	length, ok := toInt(a.get(0, "length", int64(255)))
	leeway, okLeeway := toInt(a.get(3, "leeway", int64(5)))
	end, okEnd := text(a.get(2, "end", "..."))
	n := int64(len([]rune(end)))
	if !ok || !okLeeway || !okEnd || length < n || leeway < 0 {
		e.fail("truncate wants a length of at least %d", n)
	}
	if e.length(v) <= length+leeway {
		return v
	}
	if !isText {
		e.fail("truncate wants a string, not '%s'", typeName(v))
	}
	e.charge(int64(len(s)))
	s = runeSlice(s, 0, length-n, -1)
	if !isTrue(a.get(1, "killwords", false)) {
		if at := strings.LastIndexByte(s, ' '); at >= 0 {
			s = s[:at]
		}
	}
	return s + end
}

const upperHex = "0123456789ABCDEF"

func filterUrlencode(e *execution, v any, _ *arguments) any {
	pairs, isPairs := v.(*Dict)
	quote := func(v any, safe string) string { // in pairs, a space becomes a plus
		s := e.str(v)
		e.charge(3 * int64(len(s)))
		out := make([]byte, 0, 3*len(s))
		for _, c := range []byte(s) {
			switch {
			case isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_.-~"+safe, c) >= 0:
				out = append(out, c)
			case c == ' ' && safe == "":
				out = append(out, '+')
			default:
				out = append(out, '%', upperHex[c>>4], upperHex[c&15])
			}
		}
		return string(out)
	}
	items, isList := sequence(v)
	switch {
	case isPairs:
		items = (&view{pairs, viewItems}).items(e)
	case !isList:
		return quote(v, "/")
	}
	parts := make([]string, len(items))
	for i, item := range items {
		pair := e.iterate(item)
		if len(pair) != 2 {
			e.fail("urlencode wants pairs, not %d values", len(pair))
		}
		parts[i] = quote(pair[0], "") + "=" + quote(pair[1], "")
	}
	return strings.Join(parts, "&")
}

// toJSON appends what the filter tojson makes.
func (e *execution) toJSON(p *printer, v any, a *arguments) {
	e.check("tojson", a, "ensure_ascii", "indent", "separators", "sort_keys")
	o := &jsonOptions{comma: ", ", colon: ": ", ascii: isTrue(a.get(0, "ensure_ascii", false)),
		sorted: isTrue(a.get(3, "sort_keys", false))}
	switch indent := a.get(1, "indent", nil).(type) {
	case nil:
	case string:
		o.lines, o.indent, o.comma = true, indent, ","
	default:
		n := e.integer(indent, "indent of tojson must be a number or a string")
		o.lines, o.indent, o.comma = true, e.blanks(n), ","
	}
	if given, ok := sequence(a.get(2, "separators", nil)); ok && len(given) == 2 {
		o.comma, o.colon = e.str(given[0]), e.str(given[1])
	}
	p.json(v, o)
}

func filterFormat(e *execution, v any, a *arguments) any {
	if a.named.Len() > 0 {
		if len(a.positional) > 0 {
			e.fail("can't handle positional and keyword arguments at the same time")
		}
		return e.printf(e.str(v), &a.named)
	}
	return e.printf(e.str(v), tupleOf(a.positional...))
}

func filterAttr(e *execution, v any, a *arguments) any {
	name := e.str(e.required("attr", a, 0))
	e.exists(v)
	if m, ok := e.member(v, name); ok {
		return m
	}
	return missing(v, name)
}
