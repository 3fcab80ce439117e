package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// printf implements Python's format % values.
func (e *execution) printf(format string, values any) string {
	rest, kind := []any{values}, typeName(values)
	if kind == "tuple" {
		rest = values.(*List).Items
	}
	mapped := kind == "dict" || kind == "list" || kind == "Undefined" // unused values are not an error
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
			return e.integer(take(), "* wants int")
		}
		var n int64
		n, s = e.size(s, "width or precision of a format is too large")
		return n
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

// size reads a width or a precision, 0 if there is none.
func (e *execution) size(s, tooLarge string) (n int64, rest string) {
	digits := digitsOf(s)
	n, err := strconv.ParseInt("0"+s[:digits], 10, 32)
	if err != nil {
		e.fail("%s", tooLarge)
	}
	return n, s[digits:]
}

// digitsOf returns how many digits a text begins with.
func digitsOf(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func (e *execution) printfValue(f *fieldFormat, v any) string {
	switch f.verb {
	case 's':
		return e.cut(e.str(v), f.precision)
	case 'r':
		return e.cut(e.repr(v), f.precision)
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
