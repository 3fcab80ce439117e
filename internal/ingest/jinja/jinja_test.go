package jinja_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

var testLimits = jinja.Limits{Steps: 4 << 20, Bytes: 2 << 20, Output: 1 << 20}

func variables(t *testing.T, object string) *jinja.Dict {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	d.UseNumber()
	return readValue(t, d).(*jinja.Dict)
}

// readValue reads a JSON value as Python does: objects keep their order, and integers may be large.
func readValue(t *testing.T, d *json.Decoder) any {
	t.Helper()
	next := func() json.Token {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	switch token := next().(type) {
	case json.Delim:
		defer next() // the closing one
		if token == '[' {
			list := &jinja.List{}
			for d.More() {
				list.Items = append(list.Items, readValue(t, d))
			}
			return list
		}
		dict := &jinja.Dict{}
		for d.More() {
			key := next().(string)
			dict.Set(key, readValue(t, d))
		}
		return dict
	case json.Number:
		if small, err := token.Int64(); err == nil {
			return small
		}
		if large, ok := new(big.Int).SetString(token.String(), 10); ok {
			return large
		}
		number, err := token.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return number
	default:
		return token // a string, a bool or nil
	}
}

// Each case of testdata/expressions.json was rendered by Python's jinja2 3.1.6, as transformers
// configures it; "want" is null where that raises. Among them are each filter and each test on each
// kind of value, each operator between any two, and each method of strings.
func TestExpressionsAsPython(t *testing.T) {
	data, err := os.ReadFile("testdata/expressions.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Variables json.RawMessage
		Cases     []struct {
			Template string
			Want     *string
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) < 5000 {
		t.Fatalf("only %d cases", len(golden.Cases))
	}
	for _, c := range golden.Cases {
		tmpl, err := jinja.Parse(c.Template)
		var got []byte
		if err == nil {
			got, _, _, err = tmpl.Render(nil, variables(t, string(golden.Variables)), jinja.Options{Limits: testLimits,
				Now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)})
		}
		switch {
		case c.Want == nil && err == nil:
			t.Errorf("%s\n got %q, where Python raises", c.Template, got)
		case c.Want != nil && err != nil:
			t.Errorf("%s\n got %v\nwant %q", c.Template, err, *c.Want)
		case c.Want != nil && string(got) != *c.Want:
			t.Errorf("%s\n got %q\nwant %q", c.Template, got, *c.Want)
		}
	}
}

// Memory that calls, scopes and blocks use again holds nothing that a template has kept. Each want is Python's.
func TestKeptByTemplates(t *testing.T) {
	for _, c := range [][2]string{
		{"{% set n = namespace(a=[]) %}{% macro f() %}{% set n.a = n.a + [varargs, kwargs] %}{% endmacro %}" +
			"{{ f(1, 2, x=3) }}{{ f(4, 5, y=6) }}{{ n.a }}", "[(1, 2), {'x': 3}, (4, 5), {'y': 6}]"},
		{"{% macro g() %}<{{ caller() }}>{% endmacro %}{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}" +
			"{% call g() %}{{ i }}{% endcall %}{% endfor %}", "1<1>2<2>"},
		{"{% macro outer(a) %}{% macro inner() %}{{ a }}{% endmacro %}{{ inner() }}{% endmacro %}{{ outer(1) }}{{ outer(2) }}", "12"},
		{"{% macro f(n) %}{{ n }}{{ f(n - 1) if n }}{{ n }}{% endmacro %}{{ f(2) }}", "210012"},
		{"{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f('x') }}{{ f('y', b='z') }}{{ f(b=1, a=2) }}", "xxyz21"},
		{"{% macro f(s) %}{{ s }}{% endmacro %}{% set a %}{{ f('one') }}{% endset %}{% set b %}{{ a }}{{ f('two') }}{% endset %}" +
			"{{ f(a) ~ b ~ (a + '') ~ ('' ~ b) }}", "oneonetwooneonetwo"},
		{"{% macro f() %}{% endmacro %}{% set b %}{{ f() }}{{ '' }}{{ [1]|tojson }}{{ 'x' }}{% endset %}{{ b }}", "[1]x"},
		{"{% set b %}{{ 'x' }}{{ [1]|tojson }}{% for i in ['a'] %}{{ i }}{% endfor %}{% endset %}{{ b }}", "x[1]a"},
	} {
		tmpl, err := jinja.Parse(c[0])
		if err != nil {
			t.Fatal(err)
		}
		scratch := &jinja.Scratch{}
		for range 2 {
			got, _, _, err := tmpl.Render(nil, &jinja.Dict{}, jinja.Options{Limits: testLimits, Scratch: scratch})
			if err != nil || string(got) != c[1] {
				t.Errorf("%s\n got %q, %v, want %q", c[0], got, err, c[1])
			}
		}
	}
}

func TestHostileTemplatesEnd(t *testing.T) {
	for name, source := range map[string]string{
		"macro without end":        "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
		"caller without end":       "{% macro f() %}{{ caller }}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
		"recursive loop":           "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"loops in loops":           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"loops that write":         "{% for a in range(99999) %}{{ 'some text that is written often' }}{% endfor %}",
		"text that doubles":        "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
		"lists that double":        "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
		"repeated text":            "{{ 'x' * 10000000000 }}",
		"repeated list":            "{{ [1] * 10000000000 }}",
		"repeated nothing":         "{{ [] * 10000000000 }}{{ '' * 10000000000 }}{{ 'x' * 10000000000 }}",
		"long padding":             "{{ 'x'.center(100000000000) }}",
		"long padding by format":   "{{ '%100000000s' % 'x' }}",
		"long padding by a field":  "{{ '{:>100000000}'.format('x') }}",
		"deep indent":              "{{ [[[[1]]]] | tojson(indent=1000000000) }}",
		"long indent":              "{{ 'x\ny' | indent(1000000000) }}",
		"a power":                  "{{ 9 ** 999999999 }}",
		"powers of powers":         "{{ ((9 ** 999) ** 999) ** 999 }}",
		"replacements":             "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s|replace('x', 'xxxxxxxxxx') %}{% endfor %}",
		"joins":                    "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = [n.s,n.s,n.s]|join(n.s) %}{% endfor %}",
		"a list of itself printed": "{% set n = namespace(l=[]) %}{% for i in range(2000) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}",
		"captured text":            "{% set n = namespace(s='xx') %}{% for i in range(60) %}{% set q %}{{ n.s }}{{ n.s }}{% endset %}{% set n.s = q %}{% endfor %}",
		"a batch":                  "{{ [1]|batch(1000000000, 'x')|list|length }}",
		"slices":                   "{{ [1]|slice(1000000000)|list|length }}",
		"tabs":                     "{{ '\t'.expandtabs(1000000000) }}",
		"deeply nested lists":      "{% set n = namespace(l=[]) %}{% for i in range(5000) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l|tojson }}",
		"sums":                     "{% set n = namespace(s=3) %}{% for i in range(60) %}{% set n.s = n.s * n.s %}{% endfor %}{{ n.s }}",
	} {
		t.Run(name, func(t *testing.T) {
			tmpl, err := jinja.Parse(source)
			if err != nil {
				t.Fatal(err)
			}
			_, _, _, err = tmpl.Render(nil, &jinja.Dict{}, jinja.Options{Limits: testLimits})
			if !errors.Is(err, jinja.ErrLimit) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTemplatesTooDeepToParse(t *testing.T) {
	for _, source := range []string{
		"{{ " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " }}",
		"{{ " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " }}",
		"{{ " + strings.Repeat("not ", 5000) + "x }}", "{{ " + strings.Repeat("-", 5000) + "1 }}",
		strings.Repeat("{% if x %}", 5000) + strings.Repeat("{% endif %}", 5000),
		strings.Repeat("x", jinja.MaxTemplateBytes+1),
	} {
		var syntax *jinja.SyntaxError
		if _, err := jinja.Parse(source); !errors.As(err, &syntax) {
			t.Errorf("%.30s…: %v", source, err)
		}
	}
	// What is long and not nested parses, and fails when it is executed.
	long, err := jinja.Parse("{{ 1" + strings.Repeat("+1", 100_000) + " }}")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := long.Render(nil, &jinja.Dict{}, jinja.Options{Limits: testLimits}); !errors.Is(err,
		jinja.ErrLimit) {
		t.Errorf("got %v", err)
	}
}

func TestSyntaxErrorsNameTheirLine(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{% for m in x %}":         "line 2: expected {% endfor %}, found the end of the template",
		"{{ a b }}":                   `line 1: expected "}}", found "b"`,
		"\n\n{% wrong %}":             `line 3: unknown statement "wrong"`,
		"{{ 'a }}":                    "line 1: a string is not closed",
		"{# a":                        "line 1: a comment is not closed by #}",
		"{% include 'x' %}":           "line 1: {% include %} loads another template, which is not possible here",
		"{{ (1] }}":                   `line 1: unexpected "]"`,
		"{% break %}":                 "line 1: break outside a loop",
		"{{ x":                        "line 1: a tag is not closed by }}",
		"{% raw %}x":                  "line 1: {% raw %} is not closed by {% endraw %}",
		"{% set true = 1 %}":          `line 1: cannot assign to "true"`,
		"{% macro f(a=1, b) %}{% end": `line 1: a tag is not closed by %}`,
		"{{ '\\N{BULLET}' }}":         `line 1: \N{…}, a character by its name, is not supported`,
	} {
		_, err := jinja.Parse(source)
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", source, err, want)
		}
	}
}

func TestGenerationSpans(t *testing.T) {
	for source, want := range map[string]string{
		"a{% generation %}b{% endgeneration %}c":                                                                      "b",
		"a{% generation %}{% endgeneration %}c":                                                                       "",
		"{% for i in [1,2] %}<{% generation %}{{ i }}é{% endgeneration %}>{% endfor %}":                               "1é|2é",
		"{% macro f(x) %}head {% generation %}{{ x }}{% endgeneration %} tail{% endmacro %}é{{ f('said') }}":          "said",
		"{% set q %}head {% generation %}said{% endgeneration %}{% endset %}x{{ q }}y{{ q }}":                         "said|said",
		"{% set q %}{% generation %}one{% endgeneration %}{% endset %}{% generation %}{{ q }} two{% endgeneration %}": "one|one two",
	} {
		tmpl, err := jinja.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		text, spans, _, err := tmpl.Render([]byte("before"), &jinja.Dict{}, jinja.Options{Limits: testLimits})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range spans {
			got = append(got, string(text[len("before"):][s.Start:s.End]))
		}
		if strings.Join(got, "|") != want || !tmpl.HasGeneration() || strings.ContainsRune(string(text), '\ufffd') {
			t.Errorf("%s\n got %q of %q, want %q", source, got, text, want)
		}
	}
}

func TestStopAnExecution(t *testing.T) {
	tmpl, err := jinja.Parse("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	close(done)
	_, _, _, err = tmpl.Render(nil, &jinja.Dict{},
		jinja.Options{Limits: jinja.Limits{Steps: 1 << 60, Bytes: 1 << 60, Output: 1 << 60}, Done: done})
	if !errors.Is(err, jinja.ErrStopped) {
		t.Errorf("got %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{% for m in messages %}{{ m.role ~ m['content'] }}{% endfor %}",
		"{{ [1,2][::-1]|tojson(indent=2) }}",
		"{%- if a -%} b {%- else -%} c {%- endif -%}", "{% set ns = namespace(a=1) %}{{ ns.a ** 3 // 2 }}",
		"{# x #}{% raw %}{{{% endraw %}",
		"{% macro f(a, b=1) %}{{ varargs }}{% endmacro %}{{ f(*[1,2,3], **{}) }}",
		"{{ '%5.2f|{:>3}' % 1.5 }}{{ '{:>3}'.format(1) }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := jinja.Parse(source)
		if err != nil {
			return
		}
		d := variables(t, `{"messages":[{"role":"user","content":"x"}],"a":[1,2.5,null,"é"]}`)
		limits := jinja.Limits{Steps: 1 << 14, Bytes: 1 << 18, Output: 1 << 16}
		out, spans, _, err := tmpl.Render(nil, d, jinja.Options{Limits: limits})
		if len(out) > int(limits.Output) || err != nil && len(out) > 0 {
			t.Errorf("%d bytes, %v", len(out), err)
		}
		for _, s := range spans {
			if s.Start < 0 || s.Start > s.End || s.End > len(out) {
				t.Errorf("span %v of %d bytes", s, len(out))
			}
		}
	})
}
