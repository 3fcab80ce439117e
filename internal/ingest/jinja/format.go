package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fieldFormat says how % or format() lays out a number or a text.
type fieldFormat struct {
	left, plus, space, zero, alternate, center, numeric bool
	group                                               string // what separates groups of digits
	fill                                                string
	width, precision                                    int64 // precision is -1 if none is given
	verb                                                byte
}

// signed puts the sign before a number that a field asks for.
func (f *fieldFormat) signed(s string) string {
	switch {
	case s[0] == '-':
	case f.plus:
		s = "+" + s
	case f.space:
		s = " " + s
	}
	return s
}

// number formats a number without padding, its sign first.
func (e *execution) number(f *fieldFormat, v any) string {
	e.exists(v)
	v = computed(v)
	sign := f.signed
	precision := int(f.precision)
	if precision > 1000 {
		e.fail("precision of a format is too large")
	}
	switch f.verb {
	case 'd', 'i', 'u', 'x', 'X', 'o', 'b':
		n := toBig(v)
		if x, ok := v.(float64); ok && isFinite(x) && f.verb != 'x' && f.verb != 'X' && f.verb != 'o' && f.verb != 'b' {
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
		if f.group != "" {
			s = grouped(s, f.group, 3+btoi(base > 0))
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
	s = groupedFloat(s, f.group)
	if f.verb >= 'A' && f.verb <= 'Z' {
		s = strings.ToUpper(s)
	}
	return s
}

// plainFloat formats a number without a letter: as it is printed, or with a precision as by g, but
// with a digit after the point.
func plainFloat(f *fieldFormat, x float64) string {
	s := floatText(x)
	if p := max(1, int(f.precision)); f.precision >= 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
		_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', p-1, 64), "e")
		n, _ := strconv.Atoi(exponent)
		s = fmt.Sprintf("%.*g", p, x)
		if n == p-1 && n >= 0 { // there is no room for a digit after the point
			digits, e, _ := strings.Cut(strconv.FormatFloat(x, 'e', p-1, 64), "e")
			if strings.Contains(digits, ".") {
				digits = strings.TrimRight(strings.TrimRight(digits, "0"), ".")
			}
			s = digits + "e" + e
		} else if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
	}
	return groupedFloat(s, f.group)
}

// groupedFloat separates the groups of digits before the point.
func groupedFloat(s, separator string) string {
	if separator == "" {
		return s
	}
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = s[:1], s[1:]
	}
	n := digitsOf(s)
	return sign + grouped(s[:n], separator, 3) + s[n:]
}

func grouped(digits, separator string, size int) string {
	for i := len(digits) - size; i > 0; i -= size {
		digits = digits[:i] + separator + digits[i:]
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

// fieldNumbers counts the fields of str.format that have no number; all or none of them have one.
type fieldNumbers struct {
	next   int
	manual bool
}

// formatText implements Python's str.format: {}, {0}, {name}, attributes and items of them, !r, !s, and format
// specifications, which may hold fields themselves, nested at most depth deep.
func (e *execution) formatText(s string, a *arguments, numbers *fieldNumbers, depth int) string {
	if depth == 0 {
		e.fail("Max string recursion exceeded")
	}
	p := printer{e: e}
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
		end := closing(s[at:])
		if s[at] == '}' || end < 0 {
			e.fail("Single '%c' encountered in format string", s[at])
		}
		field, spec, _ := strings.Cut(s[at+1:at+end], ":")
		s = s[at+end+1:]
		field, conversion, _ := strings.Cut(field, "!")
		v := e.formatField(field, a, numbers)
		if strings.ContainsAny(spec, "{}") {
			spec = e.formatText(spec, a, numbers, depth-1)
		}
		p.write(e.formatted(v, conversion, spec))
	}
	return string(p.out)
}

// closing returns where the brace is that closes the one with which s begins, -1 if there is none.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// formatField finds the argument that a field of str.format names.
func (e *execution) formatField(field string, a *arguments, numbers *fieldNumbers) any {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	name, path := field[:end], field[end:]
	n, err := 0, error(nil)
	if name != "" {
		n, err = strconv.Atoi(name)
	}
	if numbered := err == nil && name != ""; name == "" || numbered {
		if numbered && numbers.next > 0 || !numbered && numbers.manual {
			e.fail("a format string has fields with a number and fields without one")
		}
		if numbers.manual = numbered; !numbered {
			n = numbers.next
			numbers.next++
		}
	}
	var v any
	if err == nil {
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
	const tooLarge = "Too many decimal digits in format string"
	f.width, spec = e.size(spec, tooLarge)
	if spec != "" && (spec[0] == ',' || spec[0] == '_') {
		f.group, spec = spec[:1], spec[1:]
	}
	if rest, ok := strings.CutPrefix(spec, "."); ok {
		f.precision, spec = e.size(rest, tooLarge)
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
	switch conversion {
	case "":
	case "r":
		v = e.repr(v)
	case "s":
		v = e.str(v)
	default:
		e.fail("conversion !%s is not supported in a format string", conversion)
	}
	if spec == "" {
		return e.str(v)
	}
	_, isText := text(v)
	f := e.formatSpec(spec, isText)
	_, isFloat := computed(v).(float64)
	isWhole := toBig(v) != nil
	switch {
	case isText && (f.plus || f.space || f.group != ""), !isText && !isWhole && !isFloat,
		isWhole && (f.verb == 's' || f.precision >= 0 && strings.IndexByte("\x00dboxX", f.verb) >= 0),
		isFloat && strings.IndexByte("sdboxX", f.verb) >= 0:
		e.fail("the format %q is not for values of type %s", spec, typeName(v))
	}
	if f.verb == 's' || f.verb == 0 && !f.numeric {
		return e.layOut(e.cut(e.str(v), f.precision), &f)
	}
	if f.verb == 0 {
		if x, ok := computed(v).(float64); ok && f.precision <= 1000 {
			return e.layOut(f.signed(plainFloat(&f, x)), &f)
		}
		f.verb = 'd'
	}
	return e.layOut(e.number(&f, v), &f)
}
