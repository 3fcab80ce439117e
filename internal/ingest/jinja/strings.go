package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

func stripping(name string, left, right bool) stringMethod {
	return func(e *execution, s string, a *arguments) any {
		e.check(name, a, "chars")
		return strip(e, s, a.get(0, "chars", nil), left, right)
	}
}

// strip removes characters from the ends of a string, white space if chars is None.
func strip(e *execution, s string, chars any, left, right bool) string {
	match := isSpace
	if chars != nil {
		set, ok := text(chars)
		if !ok {
			e.fail("strip arg must be None or str")
		}
		match = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	given := s
	if left {
		s = strings.TrimLeftFunc(s, match)
	}
	if right {
		s = strings.TrimRightFunc(s, match)
	}
	e.kept(given, s)
	return s
}

// listOf returns a list of strings.
func (e *execution) listOf(parts []string) *List {
	e.charge(int64(len(parts)) * valueBytes)
	items := make([]any, len(parts))
	for i, p := range parts {
		items[i] = p
	}
	return &List{Items: items}
}

func splitting(name string) stringMethod {
	return func(e *execution, s string, a *arguments) any {
		e.check(name, a, "sep", "maxsplit")
		most := e.integer(a.get(1, "maxsplit", int64(-1)), "%s wants a whole number as maxsplit", name)
		separator := a.get(0, "sep", nil)
		reversed := name == "rsplit"
		if separator == nil {
			e.touchText(s)
			return e.listOf(splitSpace(e, s, most, reversed))
		}
		sep, ok := text(separator)
		if !ok {
			e.fail("must be str or None, not %s", typeName(separator))
		}
		if sep == "" {
			e.fail("empty separator")
		}
		n := strings.Count(s, sep)
		e.splits(s, sep)
		e.charge(int64(n+1) * valueBytes)
		if most < 0 || most >= int64(n) {
			return e.listOf(strings.Split(s, sep))
		}
		if !reversed {
			return e.listOf(strings.SplitN(s, sep, int(most)+1))
		}
		parts := make([]string, most+1)
		for i := most; i > 0; i-- {
			at := strings.LastIndex(s, sep)
			parts[i], s = s[at+len(sep):], s[:at]
		}
		parts[0] = s
		return e.listOf(parts)
	}
}

// splits notes that a string is split at each separator in it.
func (e *execution) splits(s, sep string) {
	if e.trace == nil || !e.trace.traced(s) {
		return
	}
	for at := 0; ; at += len(sep) {
		n := strings.Index(s[at:], sep)
		if n < 0 {
			return
		}
		if at += n; !e.trace.apart(s, at, len(sep)) {
			e.trace.Faithful = false
			return
		}
	}
}

// splitSpace splits at runs of white space.
func splitSpace(e *execution, s string, most int64, reversed bool) (parts []string) {
	e.charge(int64(len(s)) * valueBytes / 2)
	if most < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	if !reversed {
		s = strings.TrimLeftFunc(s, isSpace)
		for s != "" {
			end := strings.IndexFunc(s, isSpace)
			if end < 0 || int64(len(parts)) == most {
				return append(parts, s)
			}
			parts = append(parts, s[:end])
			s = strings.TrimLeftFunc(s[end:], isSpace)
		}
		return parts
	}
	s = strings.TrimRightFunc(s, isSpace)
	for s != "" {
		start := strings.LastIndexFunc(s, isSpace)
		if start < 0 || int64(len(parts)) == most {
			parts = append(parts, s)
			break
		}
		_, size := utf8.DecodeRuneInString(s[start:])
		parts = append(parts, s[start+size:])
		s = strings.TrimRightFunc(s[:start], isSpace)
	}
	slices.Reverse(parts)
	return parts
}

func splitLines(e *execution, s string, a *arguments) any {
	e.check("splitlines", a, "keepends")
	keep := isTrue(a.get(0, "keepends", false))
	var parts []string
	for s != "" {
		e.step(1)
		at := strings.IndexFunc(s, isLineEnd)
		if at < 0 {
			parts = append(parts, s)
			break
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		if strings.HasPrefix(s[at:], "\r\n") {
			size = 2
		}
		if keep {
			parts = append(parts, s[:at+size])
		} else {
			parts = append(parts, s[:at])
		}
		e.charge(valueBytes)
		s = s[at+size:]
	}
	return e.listOf(parts)
}

func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

func partition(name string, index func(s, sep string) int) stringMethod {
	return func(e *execution, s string, a *arguments) any {
		sep := e.textArgument(name, a, 0)
		if sep == "" {
			e.fail("empty separator")
		}
		e.charge(3 * valueBytes)
		at := index(s, sep)
		switch {
		case at >= 0:
			return tupleOf(s[:at], sep, s[at+len(sep):])
		case name == "partition":
			return tupleOf(s, "", "")
		}
		return tupleOf("", "", s)
	}
}

// window returns the part of a string that the start and end arguments select, and its beginning in
// characters.
func window(e *execution, s string, a *arguments, first int) (part string, from int64) {
	if len(a.positional) <= first {
		return s, 0
	}
	length := int64(utf8.RuneCountInString(s))
	bound := func(i int) (int64, bool) {
		if i >= len(a.positional) || a.positional[i] == nil {
			return 0, false
		}
		return e.integer(a.positional[i], "slice indices must be integers or None"), true
	}
	start, hasStart := bound(first)
	stop, hasStop := bound(first + 1)
	if hasStart && start > length {
		return "", -1
	}
	from, to := sliceBounds(start, hasStart, stop, hasStop, 1, length)
	return runeSlice(s, from, to, length), from
}

func affix(name string, has func(s, part string) bool) stringMethod {
	return func(e *execution, s string, a *arguments) any {
		want := e.required(name, a, 0)
		part, from := window(e, s, a, 1)
		if from < 0 || len(a.positional) > 1 {
			e.touchText(s)
		}
		if from < 0 {
			return false
		}
		if typeName(want) == "tuple" {
			for _, item := range want.(*List).Items {
				if one, ok := text(item); ok && has(part, one) {
					e.touchText(s)
					return true
				}
			}
			return false
		}
		one, ok := text(want)
		if !ok {
			e.exists(want)
			e.fail("%s first arg must be str or a tuple of str, not %s", name, typeName(want))
		}
		if has(part, one) {
			e.touchText(s)
			return true
		}
		return false
	}
}

func finding(name string, index func(s, part string) int, must bool) stringMethod {
	return func(e *execution, s string, a *arguments) any {
		want := e.textArgument(name, a, 0)
		part, from := window(e, s, a, 1)
		at := -1
		if from >= 0 {
			at = index(part, want)
		}
		if at < 0 {
			if must {
				e.fail("substring not found")
			}
			return int64(-1)
		}
		return from + int64(utf8.RuneCountInString(part[:at]))
	}
}

func counting(e *execution, s string, a *arguments) any {
	want := e.textArgument("count", a, 0)
	part, from := window(e, s, a, 1)
	if from < 0 {
		return int64(0)
	}
	return int64(strings.Count(part, want))
}

func replacing(e *execution, s string, a *arguments) any {
	e.check("replace", a, "old", "new", "count")
	from, to := e.textArgument("replace", a, 0), e.textArgument("replace", a, 1)
	return e.replace(s, from, to, e.integer(a.get(2, "count", int64(-1)), "replace wants a whole number as count"))
}

// replace replaces up to n occurrences. It charges the result before it makes it.
func (e *execution) replace(s, from, to string, n int64) string {
	found := int64(strings.Count(s, from))
	if n >= 0 {
		found = min(found, n)
	}
	if from == "" || found > 0 || n == 0 {
		e.touchText(s)
	}
	if found == 0 {
		return s
	}
	e.charge(int64(len(s)))
	if grows := int64(len(to) - len(from)); grows > 0 {
		if found > e.left.Bytes/grows {
			e.charge(e.left.Bytes + 1)
		}
		e.charge(found * grows)
	}
	return strings.Replace(s, from, to, int(found))
}

func joining(e *execution, s string, a *arguments) any {
	items := e.iterate(e.required("join", a, 0))
	n := int64(0)
	parts := make([]string, len(items))
	for i, item := range items {
		part, ok := text(item)
		if !ok {
			e.fail("sequence item %d: expected str instance, %s found", i, typeName(item))
		}
		parts[i], n = part, n+int64(len(part)+len(s))
		e.charge(valueBytes)
	}
	e.charge(n)
	return strings.Join(parts, s)
}

// pad pads a string to a width. side is 1 to align it left, -1 right, 0 to center it.
func (e *execution) pad(s string, width int64, fill string, side int) string {
	missing := width - int64(utf8.RuneCountInString(s))
	if missing <= 0 {
		return s
	}
	if missing > e.left.Bytes/int64(len(fill)) {
		e.charge(e.left.Bytes + 1)
	}
	e.charge(int64(len(s)) + missing*int64(len(fill)))
	left := int64(0)
	switch side {
	case -1:
		left = missing
	case 0:
		left = missing/2 + missing&width&1 // what CPython does
	}
	return strings.Repeat(fill, int(left)) + s + strings.Repeat(fill, int(missing-left))
}

func justified(name string, side int) stringMethod {
	return func(e *execution, s string, a *arguments) any {
		width, ok := toInt(e.required(name, a, 0))
		fill, isText := text(a.get(1, "fillchar", " "))
		if !ok || !isText || utf8.RuneCountInString(fill) != 1 {
			e.fail("%s wants a width and one character", name)
		}
		return e.pad(s, width, fill, side)
	}
}

func zeroFilled(e *execution, s string, a *arguments) any {
	width := e.integer(e.required("zfill", a, 0), "zfill wants a whole number")
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1] + e.pad(s[1:], width-1, "0", -1)
	}
	return e.pad(s, width, "0", -1)
}

func expandTabs(e *execution, s string, a *arguments) any {
	size := e.integer(a.get(0, "tabsize", int64(8)), "expandtabs wants a whole number")
	var out []byte
	column := int64(0)
	for _, r := range s {
		switch {
		case r == '\t' && size > 0:
			n := size - column%size
			if n > e.left.Bytes {
				e.charge(n)
			}
			e.charge(n)
			out = append(out, strings.Repeat(" ", int(n))...)
			column += n
		case r == '\t':
		default:
			e.charge(4)
			out = utf8.AppendRune(out, r)
			if column++; r == '\n' || r == '\r' {
				column = 0
			}
		}
	}
	return string(out)
}
