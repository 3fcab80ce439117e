package example

import (
	"regexp"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/lazy"
)

// goAction matches what only Go's templates have between braces: a field after a dot, a variable with a dollar sign, a
// comment, a definition, or a function with one of these.
var goAction = lazy.Regexp(`\{\{-?\s*(?:\.|\$|/\*|(?:define|template|block)\s+"|` +
	`(?:if|else if|with|range|len|not|and|or|[en]e|eq|l[et]|g[et]|index|slice|print|printf|println|html|js|urlquery|trim|` +
	`lower|upper|inc|join)\s+(?:(?:not|and|or|[en]e|eq|l[et]|g[et]|len)\s+)*(?:"[^"]*"\s+)?\(*[.$])`)

// isGoTemplate reports whether a text is a template in the language of Go, which has no {%.
func isGoTemplate(text string) bool {
	return !strings.Contains(text, "{%") && goAction().MatchString(text)
}

// goTemplateError says what to write in place of a Go template.
func goTemplateError(option fault.Option, text, given string) error {
	if jinja, ok := fromGo(strings.TrimSuffix(text, "\n")); ok && len(jinja) <= maxTranslated {
		return badTemplate(option, given, "it is a Go template, and templates are written in Jinja; in Jinja it is '%s'",
			escaped.Replace(jinja))
	}
	return badTemplate(option, given, "it is a Go template, and templates are written in Jinja: a field as {{ title }}, "+
		"a loop as {%% for tag in tags %%}…{%% endfor %%}, a condition as {%% if x %%}…{%% endif %%}, and a pair as "+
		"{%% block prompt %%}…{%% endblock %%}{%% block target %%}…{%% endblock %%}")
}

// maxTranslated is the length of the longest template that an error translates.
const maxTranslated = 500

var goTag = lazy.Regexp(`(?s)\{\{(-?)\s*(.*?)\s*(-?)\}\}`)

// fromGo translates a simple Go template. ok is false if it is not simple.
func fromGo(text string) (jinja string, ok bool) {
	var out strings.Builder
	var ends []string
	at := 0
	for _, m := range goTag().FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[at:m[0]])
		at = m[1]
		tag, ok := fromGoTag(text[m[4]:m[5]], &ends)
		if !ok {
			return "", false
		}
		left, right := text[m[2]:m[3]], text[m[6]:m[7]]
		if tag[1] == '%' && right == "" && strings.HasPrefix(text[at:], "\n") {
			right = "+" // keeps the line break, as Go does
		}
		out.WriteString(tag[:2] + left + tag[2:len(tag)-2] + right + tag[len(tag)-2:])
	}
	out.WriteString(text[at:])
	return out.String(), len(ends) == 0
}

var (
	goDefinition = lazy.Regexp(`^define\s+"(prompt|target)"$`)
	goKeyword    = lazy.Regexp(`^(if|else if|range)\s+(.*)$`)
)

// fromGoTag translates what is between braces. ends holds the tags that close what is open.
func fromGoTag(s string, ends *[]string) (tag string, ok bool) {
	item := ""
	for _, end := range *ends {
		if end == "endfor" {
			item = "item"
		}
	}
	if m := goDefinition().FindStringSubmatch(s); m != nil {
		*ends = append(*ends, "endblock")
		return "{% block " + m[1] + " %}", true
	}
	n := len(*ends)
	switch s {
	case "end":
		if n == 0 {
			return "", false
		}
		tag = "{% " + (*ends)[n-1] + " %}"
		*ends = (*ends)[:n-1]
		return tag, true
	case "else":
		return "{% else %}", n > 0
	}
	m := goKeyword().FindStringSubmatch(s)
	if m == nil {
		value, ok := fromGoValue(s, item)
		return "{{ " + value + " }}", ok
	}
	value, ok := fromGoValue(m[2], item)
	switch m[1] {
	case "else if":
		return "{% elif " + value + " %}", ok && n > 0
	case "if":
		*ends = append(*ends, "endif")
		return "{% if " + value + " %}", ok
	}
	*ends = append(*ends, "endfor")
	return "{% for item in " + value + " %}", ok && item == ""
}

var (
	goField    = lazy.Regexp(`^\$?\.[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)
	goLiteral  = lazy.Regexp(`^("[^"\\]*"|\d+)$`)
	goFunction = lazy.Regexp(`^(trim|lower|upper|len|not)\s+(\S+)$`)
	goEqual    = lazy.Regexp(`^(eq|ne)\s+(\S+)\s+("[^"]*"|\S+)$`)
)

// fromGoValue translates a value. item is the name of the dot, "" for the record.
func fromGoValue(s, item string) (value string, ok bool) {
	switch {
	case s == "." && item != "":
		return item, true
	case goField().MatchString(s):
		if s[0] == '$' || item == "" {
			return strings.TrimLeft(s, "$."), true
		}
		return item + s, true
	case goLiteral().MatchString(s):
		return s, true
	}
	find := func(r *regexp.Regexp) []string { return r.FindStringSubmatch(s) }
	if m := find(goFunction()); m != nil {
		value, ok = fromGoValue(m[2], item)
		switch m[1] {
		case "not":
			return "not " + value, ok
		case "len":
			return value + " | length", ok
		}
		return value + " | " + m[1], ok
	}
	if m := find(goEqual()); m != nil {
		left, ok := fromGoValue(m[2], item)
		right, okRight := fromGoValue(m[3], item)
		return left + map[string]string{"eq": " == ", "ne": " != "}[m[1]] + right, ok && okRight
	}
	return "", false
}
