package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// changing returns a method for a function whose result is at most three times as long as its
// argument.
func changing(f func(string) string) stringMethod {
	return func(e *execution, s string, _ *arguments) any {
		e.charge(3 * int64(len(s)))
		return f(s)
	}
}

// expansions maps the letters whose upper case is several letters.
var expansions = strings.NewReplacer("ß", "SS", "ŉ", "ʼN", "ǰ", "J̌", "ΐ", "Ϊ́", "ΰ", "Ϋ́", "և", "ԵՒ", "ẖ", "H̱",
	"ẗ", "T̈", "ẘ", "W̊", "ẙ", "Y̊", "ẚ", "Aʾ", "ﬀ", "FF", "ﬁ", "FI", "ﬂ", "FL", "ﬃ", "FFI", "ﬄ", "FFL", "ﬅ", "ST",
	"ﬆ", "ST", "ﬓ", "ՄՆ", "ﬔ", "ՄԵ", "ﬕ", "ՄԻ", "ﬖ", "ՎՆ", "ﬗ", "ՄԽ")

func upper(s string) string { return strings.ToUpper(expansions.Replace(s)) }

func lower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r == 'İ':
			b.WriteString("i̇")
		case r == 'Σ' && i > 0 && unicode.IsLetter(runes[i-1]) && (i+1 == len(runes) || !unicode.IsLetter(runes[i+1])):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

func casefold(s string) string {
	return strings.ToLower(strings.ReplaceAll(expansions.Replace(s), "ς", "σ"))
}

// title implements Python's str.title: it puts the first letter of each run of letters in upper
// case.
func title(s string) string {
	var b strings.Builder
	inside := false
	for _, r := range s {
		cased := unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r)
		if inside {
			b.WriteString(lower(string(r)))
		} else if long := expansions.Replace(string(r)); r == 'ŉ' {
			b.WriteString(long)
		} else if first, size := utf8.DecodeRuneInString(long); size < len(long) {
			b.WriteString(string(first) + strings.ToLower(long[size:]))
		} else {
			b.WriteRune(unicode.ToTitle(r))
		}
		inside = cased
	}
	return b.String()
}

func capitalize(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return title(string(r)) + lower(s[size:])
}

func swapcase(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteString(lower(string(r)))
		} else {
			b.WriteString(upper(string(r)))
		}
	}
	return b.String()
}

func isDigitRune(r rune) bool {
	return unicode.IsDigit(r) || strings.ContainsRune("²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", r)
}

func every(is func(rune) bool) stringMethod {
	return func(_ *execution, s string, _ *arguments) any {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
	}
}

func cased(wanted, other func(rune) bool) stringMethod {
	return func(_ *execution, s string, _ *arguments) any {
		return strings.IndexFunc(s, wanted) >= 0 && strings.IndexFunc(s, other) < 0 &&
			strings.IndexFunc(s, unicode.IsTitle) < 0
	}
}
