package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type dictMethod = func(*execution, *Dict, *arguments) any

var dictMethods = map[string]dictMethod{
	"keys":   func(_ *execution, d *Dict, _ *arguments) any { return &view{d, viewKeys} },
	"values": func(_ *execution, d *Dict, _ *arguments) any { return &view{d, viewValues} },
	"items":  func(_ *execution, d *Dict, _ *arguments) any { return &view{d, viewItems} },
	"copy": func(e *execution, d *Dict, _ *arguments) any {
		e.charge(int64(d.Len()) * entryBytes)
		d.readAll()
		return d.Clone()
	},
	"get": func(e *execution, d *Dict, a *arguments) any {
		if len(a.positional) == 0 || len(a.positional) > 2 || a.named.Len() > 0 {
			e.fail("get expected 1 or 2 arguments, got %d", len(a.positional))
		}
		e.touch(a.positional[0])
		hash, ok := hashOf(a.positional[0])
		if !ok {
			e.fail("unhashable type: '%s'", typeName(a.positional[0]))
		}
		if v, ok := d.find(hash); ok {
			return v
		}
		return a.get(1, "", nil)
	},
}

var listMethods = map[string]func(*execution, []any, *arguments) any{
	"index": func(e *execution, items []any, a *arguments) any {
		want := e.required("index", a, 0)
		for i, item := range items {
			if e.equal(item, want) {
				return int64(i)
			}
		}
		e.fail("%s is not in list", e.str(want))
		return nil
	},
	"count": func(e *execution, items []any, a *arguments) any {
		want, n := e.required("count", a, 0), int64(0)
		for _, item := range items {
			if e.equal(item, want) {
				n++
			}
		}
		return n
	},
	"copy": func(e *execution, items []any, _ *arguments) any { return &List{Items: e.clone(items)} },
}

func (e *execution) required(function string, a *arguments, i int) any {
	if i >= len(a.positional) {
		e.fail("%s expected at least %d argument(s), got %d", function, i+1, len(a.positional))
	}
	return a.positional[i]
}

// textArgument returns the i-th argument, which must be a string.
func (e *execution) textArgument(function string, a *arguments, i int) string {
	v := e.required(function, a, i)
	s, ok := text(v)
	if !ok {
		e.exists(v)
		e.fail("%s wants a string, not '%s'", function, typeName(v))
	}
	e.touchText(s)
	return s
}

type stringMethod = func(*execution, string, *arguments) any

// stringMethods holds the methods of Python's str.
var stringMethods map[string]stringMethod

func init() {
	stringMethods = map[string]stringMethod{
		"strip": stripping("strip", true, true), "lstrip": stripping("lstrip", true, false),
		"rstrip": stripping("rstrip", false, true),
		"split":  splitting("split"), "rsplit": splitting("rsplit"), "splitlines": splitLines,
		"partition": partition("partition", strings.Index), "rpartition": partition("rpartition", strings.LastIndex),
		"startswith": affix("startswith", strings.HasPrefix), "endswith": affix("endswith", strings.HasSuffix),
		"find": finding("find", strings.Index, false), "rfind": finding("rfind", strings.LastIndex, false),
		"index": finding("index", strings.Index, true), "rindex": finding("rindex", strings.LastIndex, true),
		"count": counting, "replace": replacing, "join": joining,
		"format": func(e *execution, s string, a *arguments) any { return e.formatText(s, a, &fieldNumbers{}, 2) },
		"removeprefix": func(e *execution, s string, a *arguments) any {
			return strings.TrimPrefix(s, e.textArgument("removeprefix", a, 0))
		},
		"removesuffix": func(e *execution, s string, a *arguments) any {
			return strings.TrimSuffix(s, e.textArgument("removesuffix", a, 0))
		},
		"upper": changing(upper), "lower": changing(lower), "casefold": changing(casefold), "title": changing(title),
		"capitalize": changing(capitalize), "swapcase": changing(swapcase),
		"isalpha":   every(unicode.IsLetter),
		"isdigit":   every(isDigitRune),
		"isdecimal": every(unicode.IsDigit), "isnumeric": every(unicode.IsNumber),
		"isalnum": every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isspace": every(isSpace), "islower": cased(unicode.IsLower, unicode.IsUpper),
		"isupper": cased(unicode.IsUpper, unicode.IsLower), "isascii": func(_ *execution, s string, _ *arguments) any {
			return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
		},
		"istitle": func(_ *execution, s string, _ *arguments) any { return title(s) == s && strings.ToLower(s) != s },
		"ljust":   justified("ljust", 1), "rjust": justified("rjust", -1), "center": justified("center", 0),
		"zfill":      zeroFilled,
		"expandtabs": expandTabs,
	}
}
