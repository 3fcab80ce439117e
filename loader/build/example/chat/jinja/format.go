package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fieldFormat says how % or format() lays out a number or a text.
type fieldFormat struct {
	left, plus, space, zero, alternate, center, numeric bool
	comma                                               bool
	fill                                                string
	width, precision                                    int64 // precision is -1 if none is given
	verb                                                byte
}

// printf implements Python's format % values.
func (e *execution) printf(format string, values any) string {
	list, isTuple := values.(*Tuple)
	var rest []any
	if isTuple {
		rest = list.Items
	} else {
		rest = []any{values}
	}
	mapped := is[*Dict](values) || is[*List](values) || is[*undefined](values) // unused values are not an error
	take := func() any {
		if len(rest) == 0 {
			e.fail("not enough arguments for format string")
		}
		v := rest[0]
		rest = rest[1:]
		return v
	}
	p := printer{e: e}
	for {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			p.write(format)
			break
		}
		p.write(format[:at])
		format = format[at+1:]
		if strings.HasPrefix(format, "%") {
			p.write("%")
			format = format[1:]
			continue
		}
		var value any
		hasValue := false
		if strings.HasPrefix(format, "(") {
			end := strings.IndexByte(format, ')')
			if end < 0 {
				e.fail("incomplete format key")
			}
			d, ok := values.(*Dict)
			if !ok {
				e.fail("format requires a mapping")
			}
			if value, ok = d.find(format[1:end]); !ok {
				e.fail("no key %q for the format", format[1:end])
			}
			format, hasValue = format[end+1:], true
		}
		var f fieldFormat
		f, format = e.printfSpec(format, take)
		if !hasValue {
			value = take()
		}
		p.write(e.layOut(e.printfValue(&f, value), &f))
	}
	if len(rest) > 0 && !mapped {
		e.fail("not all arguments converted during string formatting")
	}
	return string(p.out)
}

// printfSpec reads flags, width, precision and the letter of a % field.
func (e *execution) printfSpec(s string, take func() any) (fieldFormat, string) {
	f := fieldFormat{precision: -1, fill: " "}
	for s != "" && strings.IndexByte("#0- +", s[0]) >= 0 {
		switch s[0] {
		case '#':
			f.alternate = true
		case '0':
			f.zero = true
		case '-':
			f.left = true
		case ' ':
			f.space = true
		case '+':
			f.plus = true
		}
		s = s[1:]
	}
	number := func() int64 {
		if strings.HasPrefix(s, "*") {
			s = s[1:]
			n, ok := toInt(take())
			if !ok {
				e.fail("* wants int")
			}
			return n
		}
		n := 0
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		v, err := strconv.ParseInt("0"+s[:n], 10, 32)
		if err != nil {
			e.fail("width or precision of a format is too large")
		}
		s = s[n:]
		return v
	}
	if f.width = number(); f.width < 0 {
		f.left, f.width = true, -f.width
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		f.precision = max(0, number())
	}
	s = strings.TrimLeft(s, "hlL")
	if s == "" {
		e.fail("incomplete format")
	}
	f.verb = s[0]
	return f, s[1:]
}

func (e *execution) printfValue(f *fieldFormat, v any) string {
	switch f.verb {
	case 's':
		return e.cut(e.str(v), f.precision)
	case 'r', 'a':
		p := printer{e: e}
		p.repr(v)
		return e.cut(string(p.out), f.precision)
	case 'c':
		if s, ok := text(v); ok && utf8.RuneCountInString(s) == 1 {
			return s
		}
		if n, ok := toInt(v); ok && n >= 0 && n <= utf8.MaxRune {
			return string(rune(n))
		}
		e.fail("%%c requires int or char")
	}
	f.numeric = true
	return e.number(f, v)
}

// cut shortens a string to n characters; a negative n keeps all of it.
func (e *execution) cut(s string, n int64) string {
	if n < 0 || int64(len(s)) <= n {
		return s
	}
	return runeSlice(s, 0, n, int64(utf8.RuneCountInString(s)))
}

// number formats a number without padding, its sign first.
func (e *execution) number(f *fieldFormat, v any) string {
	if u, ok := v.(*undefined); ok {
		e.fail("%s", u.hint)
	}
	sign := func(s string) string {
		switch {
		case s[0] == '-':
		case f.plus:
			s = "+" + s
		case f.space:
			s = " " + s
		}
		return s
	}
	precision := int(f.precision)
	if precision > 1000 {
		e.fail("precision of a format is too large")
	}
	switch f.verb {
	case 'd', 'i', 'u', 'x', 'X', 'o', 'b':
		n := toBig(v)
		if x, ok := v.(float64); ok && f.verb != 'x' && f.verb != 'X' && f.verb != 'o' && f.verb != 'b' {
			n, _ = big.NewFloat(x).Int(nil)
		}
		if n == nil {
			e.fail("%%%c format: a number is required, not %s", f.verb, typeName(v))
		}
		base := map[byte]int{'x': 16, 'X': 16, 'o': 8, 'b': 2}[f.verb]
		s := n.Text(max(base, 2+8*btoi(base == 0)))
		prefix := map[byte]string{'x': "0x", 'X': "0X", 'o': "0o", 'b': "0b"}[f.verb]
		if f.verb == 'X' {
			s = strings.ToUpper(s)
		}
		s, negative := strings.CutPrefix(s, "-")
		if missing := precision - len(s); missing > 0 {
			s = strings.Repeat("0", missing) + s
		}
		if f.comma {
			s = grouped(s)
		}
		if f.alternate {
			s = prefix + s
		}
		if negative {
			s = "-" + s
		}
		return sign(s)
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		x, ok := toFloat(v)
		if !ok {
			e.fail("must be real number, not %s", typeName(v))
		}
		return sign(floatField(f, x, precision))
	}
	e.fail("unsupported format character '%c'", f.verb)
	return ""
}

func floatField(f *fieldFormat, x float64, precision int) string {
	if precision < 0 {
		precision = 6
	}
	var s string
	switch f.verb {
	case 'g', 'G':
		s = fmt.Sprintf("%.*g", max(1, precision), x)
		if f.alternate {
			s = fmt.Sprintf("%#.*g", max(1, precision), x)
		}
	case '%':
		s = strconv.FormatFloat(100*x, 'f', precision, 64) + "%"
	default:
		s = strconv.FormatFloat(x, f.verb|0x20, precision, 64)
	}
	s = strings.NewReplacer("+Inf", "inf", "-Inf", "-inf", "NaN", "nan").Replace(s)
	if f.comma {
		whole, rest, found := strings.Cut(s, ".")
		w, negative := strings.CutPrefix(whole, "-")
		if s = grouped(w); negative {
			s = "-" + s
		}
		if found {
			s += "." + rest
		}
	}
	if f.verb >= 'A' && f.verb <= 'Z' {
		s = strings.ToUpper(s)
	}
	return s
}

func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// layOut pads a field to its width.
func (e *execution) layOut(s string, f *fieldFormat) string {
	switch {
	case f.left:
		return e.pad(s, f.width, f.fill, 1)
	case f.center:
		missing := f.width - int64(utf8.RuneCountInString(s))
		if missing <= 0 {
			return s
		}
		return e.pad(e.pad(s, f.width-missing+missing/2, f.fill, -1), f.width, f.fill, 1)
	case f.zero && f.numeric:
		at := 0
		if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
			at = 1
		}
		return s[:at] + e.pad(s[at:], f.width-int64(at), "0", -1)
	}
	return e.pad(s, f.width, f.fill, -1)
}

// formatMethod implements Python's str.format: {}, {0}, {name}, attributes and items of them, !r,
// !s, and format specifications.
func formatMethod(e *execution, s string, a *arguments) any {
	p := printer{e: e}
	next := 0
	for s != "" {
		e.step(1)
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			p.write(s)
			break
		}
		p.write(s[:at])
		if at+1 < len(s) && s[at+1] == s[at] {
			p.write(s[at : at+1])
			s = s[at+2:]
			continue
		}
		end := strings.IndexByte(s[at:], '}')
		if s[at] == '}' || end < 0 {
			e.fail("Single '%c' encountered in format string", s[at])
		}
		field, spec, _ := strings.Cut(s[at+1:at+end], ":")
		s = s[at+end+1:]
		field, conversion, _ := strings.Cut(field, "!")
		p.write(e.formatted(e.formatField(field, a, &next), conversion, spec))
	}
	return string(p.out)
}

// formatField finds the argument that a field of str.format names.
func (e *execution) formatField(field string, a *arguments, next *int) any {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	name, path := field[:end], field[end:]
	if name == "" {
		name = strconv.Itoa(*next)
		*next++
	}
	var v any
	if n, err := strconv.Atoi(name); err == nil {
		if n >= len(a.positional) {
			e.fail("Replacement index %d out of range for positional args tuple", n)
		}
		v = a.positional[n]
	} else if found, ok := a.named.find(name); ok {
		v = found
	} else {
		e.fail("no argument %q for the format", name)
	}
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			key, after, _ := strings.Cut(rest, "]")
			if n, err := strconv.ParseInt(key, 10, 64); err == nil {
				v = e.item(v, n)
			} else {
				v = e.item(v, key)
			}
			path = after
			continue
		}
		end := strings.IndexAny(path[1:], ".[") + 1
		if end == 0 {
			end = len(path)
		}
		v, path = e.attribute(v, path[1:end]), path[end:]
	}
	return v
}

// formatSpec parses the format specification of str.format.
func (e *execution) formatSpec(spec string, isText bool) fieldFormat {
	f := fieldFormat{precision: -1, fill: " ", numeric: !isText, left: isText}
	if _, size := utf8.DecodeRuneInString(spec); size < len(spec) && strings.IndexByte("<>^=", spec[size]) >= 0 {
		f.fill, spec = spec[:size], spec[size:]
	}
	if spec != "" && strings.IndexByte("<>^=", spec[0]) >= 0 {
		f.left, f.center, f.zero = spec[0] == '<', spec[0] == '^', spec[0] == '='
		spec = spec[1:]
	}
	for spec != "" && strings.IndexByte("+- #0", spec[0]) >= 0 {
		f.plus, f.space = f.plus || spec[0] == '+', f.space || spec[0] == ' '
		f.alternate = f.alternate || spec[0] == '#'
		if spec[0] == '0' {
			f.zero, f.left = true, false
		}
		spec = spec[1:]
	}
	digits := func() int64 {
		n := 0
		for n < len(spec) && isDigit(spec[n]) {
			n++
		}
		v, err := strconv.ParseInt("0"+spec[:n], 10, 32)
		if err != nil {
			e.fail("Too many decimal digits in format string")
		}
		spec = spec[n:]
		return v
	}
	f.width = digits()
	if rest, ok := strings.CutPrefix(spec, ","); ok {
		f.comma, spec = true, rest
	}
	if rest, ok := strings.CutPrefix(spec, "."); ok {
		spec = rest
		f.precision = digits()
	}
	if len(spec) > 1 {
		e.fail("Invalid format specifier")
	}
	if spec != "" {
		f.verb = spec[0]
	}
	return f
}

// formatted lays out a value by the format specification of str.format.
func (e *execution) formatted(v any, conversion, spec string) string {
	if conversion == "r" || conversion == "a" {
		p := printer{e: e}
		p.repr(v)
		v = string(p.out)
	} else if conversion == "s" {
		v = e.str(v)
	}
	if spec == "" {
		return e.str(v)
	}
	_, isText := text(v)
	f := e.formatSpec(spec, isText)
	if f.verb == 's' || f.verb == 0 && !f.numeric {
		return e.layOut(e.cut(e.str(v), f.precision), &f)
	}
	if f.verb == 0 {
		if f.verb = 'd'; is[float64](v) {
			if f.verb = 'g'; f.precision < 0 {
				return e.layOut(e.str(v), &f)
			}
		}
	}
	return e.layOut(e.number(&f, v), &f)
}
