package example

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// I4: a template that would run, or grow, without an end is a bad record.
func TestHostileTemplatesEnd(t *testing.T) {
	long := `{"text":"a","big":"` + strings.Repeat("<é ", 20000) + `","list":[` + strings.Repeat(`"x",`, 5000) + `"x"]}`
	grow := func(step string) string {
		return "{% set n = namespace(s=text) %}" + strings.Repeat("{% for i in range(999) %}", 2) + step +
			strings.Repeat("{% endfor %}", 2)
	}
	for name, body := range map[string]string{
		"doubling":        grow("{% set n.s = n.s ~ n.s %}"),
		"width":           `{{ text }}{{ "%99999999d" % 1 }}`,
		"width of a list": `{% for x in list %}{{ "%9999s" % list }}{% endfor %}`,
		"escape":          grow("{% set n.s = big | escape %}"),
		"urlencode":       grow("{% set n.s = big | urlencode %}"),
		"upper":           grow("{% set n.s = big | upper %}"),
		"output":          "{% for i in range(99999) %}aaaaaaaaaaaaaaaaaaaaaaaaa{{ text }}{% endfor %}",
		"output, plainly": "{% for i in list %}{{ i }}" + strings.Repeat("a", 100) + "{% endfor %}",
		"output of data":  "{% for i in range(999) %}{{ big }}{% endfor %}",
		"loops":           "{% for i in range(99999) %}{% for i in range(99999) %}{% endfor %}{% endfor %}{{ text }}",
		"comparison":      grow("{% if big ~ 'a' == big ~ 'b' %}{% endif %}"),
		"recursion":       "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}{{ text }}",
		"two macros":      "{% macro a() %}{{ b() }}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{{ a() }}{% endmacro %}{{ a() }}{{ text }}",
		"a target that loops": "{% block prompt %}{{ text }}{% endblock %}{% block target %}{% for i in range(99999) %}" +
			"{% for i in range(99999) %}{% endfor %}{% endfor %}{% endblock %}",
	} {
		var out Formatted
		err := newWorker(t, of(body)).Format(&out, Record{}, []byte(long))
		if !errors.Is(err, ErrTooLarge) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %d bytes, %v", name, len(out.Prompt), err)
		}
	}
}

// What strings take is within ScratchBytes, also where they come one after another in one execution.
func TestTemplateStringsAreWithinScratch(t *testing.T) {
	big := strings.Repeat("<é \x01", 50000)
	for _, step := range []string{`{% set x = "%s" % text %}`, `{% set x = "%r" % text %}`, `{% set x = "%999999d" % 1 %}`,
		"{% set x = text ~ text %}", "{% set x = text | escape %}", "{% set x = text | tojson %}",
		"{% set x = text | urlencode %}", "{% set x = text | upper %}", "{% set n.s = n.s ~ n.s %}",
		"{% set x = text | list %}", "{% set x = text.split(' ') %}"} {
		w := newWorker(t, of("{% set n = namespace(s=text) %}{% for i in range(1000) %}"+step+"{% endfor %}{{ text }}"))
		var out Formatted
		_ = w.Format(&out, Record{Decoded: true}, []byte("warm up"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := w.Format(&out, Record{Decoded: true}, []byte(big))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", step)
		}
		// The bounds count what strings take; each call takes a little more, which the collector frees as it goes.
		took, limit := int64(after.TotalAlloc-before.TotalAlloc), w.f.ScratchBytes(int64(len(big)))+1<<20
		if took > limit {
			t.Errorf("%s: %d bytes were allocated, more than %d", step, took, limit)
		}
	}
}

// A running template ends when its worker is asked to stop, before its steps are spent.
func TestStoppedTemplate(t *testing.T) {
	done := make(chan struct{})
	close(done)
	f, err := NewFormatter(of("{% for i in range(9999) %}{% for j in range(99) %}{% endfor %}{% endfor %}{{ text }}"))
	if err != nil {
		t.Fatal(err)
	}
	var out Formatted
	if err := f.NewWorker().StopAt(done).Format(&out, Record{Decoded: true}, []byte("a")); err != ErrStopped {
		t.Error(err)
	}
}

// A template that is too large to be parsed in little memory is refused, and so is one of which a part would be left
// out, or that makes the same of every record. The error names the option, and a file, but repeats no text.
func TestTemplatesAreBounded(t *testing.T) {
	pair := func(prompt, target string) Templates { return Templates{Prompt: prompt, Target: target} }
	text := func(body string) Templates { return Templates{Text: body} }
	for _, c := range []struct {
		of     Templates
		option fault.Option
		says   string
	}{
		{text("{{ text }}" + strings.Repeat("a", jinja.MaxTemplateBytes)), "template", "limit"},
		{text("{{ " + strings.Repeat("(", 500) + "text" + strings.Repeat(")", 500) + " }}"), "template", "deeper"},
		{text(strings.Repeat("{% if text %}", 500) + strings.Repeat("{% endif %}", 500)), "template", "deeper"},
		{text("{{ text"), "template", "not closed"},
		{text("{title}"), "template", "names no field"},
		{text(" \n"), "template", "empty"},
		{text("{{ text }}\xff"), "template", "UTF-8"},
		{text("{{ range(3) }}{% set x = 1 %}{% for y in [1] %}{{ x + y }}{{ loop.index }}{% endfor %}"), "template", "names no field"},
		{text("{% block prompt %}{{ a }}{% endblock %}"), "template", "write both"},
		{text("{% block prompt %}{{ a }}{% endblock %}{% block target %}{{ b }}{% endblock %} and {{ c }}"), "template",
			"left out"},
		{text("{% block prompt %}a{% endblock %}{% block target %}b{% endblock %}"), "template", "names no field"},
		{pair("{{ a }}", ""), "prompt", "`target`"},
		{pair("", "{{ a }}"), "target", "`prompt`"},
		{Templates{"{{ a }}", "{{ b }}", "{{ c }}"}, "template", "`prompt` and `target`"},
		{pair("{{ 'Write:' }}", "{{ 'a' }}"), "prompt", "names no field"},
		{pair("{{ a }}", "{{ b"), "target", "not closed"},
	} {
		_, err := NewFormatter(FormatOptions{Templates: c.of, Given: c.of})
		if !errors.Is(err, ErrTemplate) || fault.KindOf(err) != fault.Usage || fault.OptionOf(err) != c.option ||
			!strings.Contains(err.Error(), c.says) || len(err.Error()) > 400 {
			t.Errorf("%.60v: %.500v, want an error of %s with %q", c.of, err, c.option, c.says)
		}
	}
	if got, _, err := format(newWorker(t, FormatOptions{Templates: pair("{{ 'Write:' }}", "{{ a }}")}), Record{}, `{"a":1}`); err != nil ||
		got != "Write: -> 1" {
		t.Errorf("a prompt that is the same for all: %q, %v", got, err)
	}
	if got, _, err := format(newWorker(t, of("{% set q = a | trim %}{% macro m(x) %}<{{ x }}>{% endmacro %}"+
		"{% block prompt %}\n{{ m(q) }}\n{% endblock %}\n\n{% block target %}{{ q }}{% endblock %}\n")), Record{},
		`{"a":" b "}`); err != nil || got != "<b>\n -> b" {
		t.Errorf("what is set before the blocks: %q, %v", got, err)
	}
}

// What a record lacks, or has no value for, is an error where it is used, and none where the template asks for it.
func TestLackingFields(t *testing.T) {
	record := `{"a":null,"b":"text","in":{"x":null},"list":[{"n":1},{}]}`
	for body, want := range map[string]string{
		"{{ title }}":                       `! no field "title", which the template uses; the record has a, b, in, list; where some lack it, write {{ title | default('') }}`,
		"{% if title %}x{% endif %}{{ b }}": `! no field "title"`,
		"{{ title or 'x' }}":                `! no field "title"`,
		"{{ a | default('', true) }}{{ title | default('', true) }}{{ b }}": "text",
		"{{ b ~ title }}":                                                    `! no field "title"`,
		"{{ in.y }}{{ b }}":                                                  "! no attribute 'y'",
		"{{ record['y'] }}":                                                  "! no attribute 'y'",
		"{{ list | map(attribute='n') | join(' ') }}":                        "! no attribute 'n'",
		"{{ title | default('none') }}{{ b }}":                               "nonetext",
		"{{ title is defined }}{{ b is defined }}":                           "FalseTrue",
		"{{ in.y | default('-') }}{{ in['y'] is undefined }}":                "-True",
		"{{ record.title | default(b) }}":                                    "text",
		"{{ list | map(attribute='n', default=0) | join(' ') }}":             "1 0",
		"{{ 'x' if a else 'y' }}{{ 'x' if a }}":                              "y",
		"{% if b is defined and b %}{{ loop is defined }}{{ b }}{% endif %}": "Falsetext",
		"{{ b }} {{ a }}":                                                    "! null in this record: a",
		"{{ a ~ b }}":                                                        "! writes a null",
		"{{ [a, b] | join(' ') }}":                                           "! writes a null",
		"{{ in.x }}":                                                         "! writes a null; write {{ … | default('', true) }}",
		"{% block prompt %}{{ b }}{% endblock %}{% block target %}{{ a }}{% endblock %}":     "! {% if a is not none %}",
		"{{ b }}{% if a %}{{ a }}{% endif %}{{ in.x or 'none' }}{{ a is none }}{{ a == 1 }}": "textnoneTrueFalse",
		"{{ raise_exception('not ' ~ b) }}":                                                  "! the template refuses the record: not text",
		"{{ b + 1 }}":                                                                        "! the template fails: line 1",
	} {
		got, _, err := format(newWorker(t, of(body)), Record{}, record)
		if says, fails := strings.CutPrefix(want, "! "); fails {
			if !errors.Is(err, ErrTemplate) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q, %v; want an error with %q", body, got, err, says)
			}
		} else if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", body, got, err, want)
		}
	}
}

// A field that an execution reads is used, and no other, however the record comes.
func TestWhatTemplatesUse(t *testing.T) {
	row := Record{Columns: []string{"title", "body", "note", "tags"}, Comma: ','}
	for body, want := range map[string]string{
		"{{ title }}": "body note tags",
		"{% if note == 'long' %}{{ body }}{% endif %}{{ title }}": "body tags",
		"{{ body | default(note) }}{{ title }}":                   "tags",
		"{% for title in [1] %}{{ title }}{% endfor %}{{ body }}": "note tags title",
		"{{ record.title }}{{ note }}":                            "body tags",
		"{{ record | length }}":                                   "body note tags title",
		"{{ record }}":                                            "",
		"{% block prompt %}{{ title }}{% endblock %}{% block target %}{{ body }}{% endblock %}": "note tags",
	} {
		for _, c := range []struct {
			rec  Record
			data string
		}{
			{Record{}, `{"note":"n","title":"t","empty":"","none":null,"body":"b","tags":["x"]}`},
			{row, "t,b,n,x"},
		} {
			u := NewUnused(nil)
			w := newWorker(t, of(body)).Note(u)
			for range 2 { // the second like the one before
				if _, _, err := format(w, c.rec, c.data); err != nil {
					t.Fatal(body, err)
				}
				var got []string
				numbers, _ := u.Numbers()
				for _, n := range numbers {
					got = append(got, u.Names()[n])
				}
				slices.Sort(got)
				if strings.Join(got, " ") != want {
					t.Errorf("%s, %s: %q are not used, want %q", body, c.data, got, want)
				}
			}
		}
	}
}

// What the templates of Go say is translated where that is simple; and no template of Jinja is taken for one.
func TestGoTemplates(t *testing.T) {
	for body, want := range map[string]string{
		"Title: {{.title}}":                 "Title: {{ title }}",
		"{{ .a.b }} {{- $.c -}} x":          "{{ a.b }} {{- c -}} x",
		"{{trim .a}}{{upper .b}}{{len .c}}": "{{ a | trim }}{{ b | upper }}{{ c | length }}",
		`{{define "prompt"}}{{.q}}{{end}}{{define "target"}}{{.a}}{{end}}`: "{% block prompt %}{{ q }}{% endblock %}" +
			"{% block target %}{{ a }}{% endblock %}",
		"{{range .tags}}\n{{.}} {{$.n}}{{.x}}{{end}}":          "{% for item in tags +%}\n{{ item }} {{ n }}{{ item.x }}{% endfor %}",
		`{{if eq .a "b"}}1{{else if not .c}}2{{else}}3{{end}}`: `{% if a == "b" %}1{% elif not c %}2{% else %}3{% endif %}`,
		`{{printf "%d" .n}}`:                                   "",
		`{{index . "a-b"}}`:                                    "",
		"{{with .a}}{{.}}{{end}}":                              "",
		"{{$x := .a}}{{$x}}":                                   "",
		"{{/* note */}}{{.title}}":                             "",
		"{{.a}}" + strings.Repeat("b", 600):                    "",
	} {
		got, ok := fromGo(body)
		if !isGoTemplate(body) || ok && len(got) <= maxTranslated != (want != "") || want != "" && got != want {
			t.Errorf("%s: %q, %t; want %q", body, got, ok, want)
		}
		_, err := NewFormatter(of(body))
		if !errors.Is(err, ErrTemplate) || !strings.Contains(err.Error(), "Jinja") ||
			want != "" && !strings.Contains(err.Error(), escaped.Replace(want)) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{"{{ end }}", "{{ a | replace('x', ' .y') }}", "{{ if_ }}{{ range(3) | list }}{{ a }}",
		"{{ a\n  .upper() }}", "{{ a.b }}", "{% raw %}{{.title}}{% endraw %}{{ a }}", "{{ '{{.title}}' ~ a }}{% if a %}{% endif %}",
		"price: $5 {{ index }}"} {
		if isGoTemplate(body) {
			t.Errorf("%s is taken for a Go template", body)
		}
	}
}

// What people give is text, a file, or a name.
func TestReadTemplate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.jinja")
	if err := os.WriteFile(file, []byte("a\\n{{ b }}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		`Q: {{ title }}\nA: `:                   "Q: {{ title }}\nA: ",
		`{{ a | join('\n') }}\n`:                "{{ a | join('\\n') }}\n\n",
		`\\n \t{% if x %}\n{% endif %}{# \n #}`: "\\n \t{% if x %}\n{% endif %}{# \\n #}",
		`$\frac{{{ a }}}{b}$`:                   `$\frac{{{ a }}}{b}$`,
		"{{ a":                                  "{{ a",
		file:                                    "a\\n{{ b }}\n",
		"recipe":                                "recipe",
		"":                                      "",
	} {
		if got, err := ReadTemplate("template", given); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", given, got, err, want)
		}
	}
	for given, says := range map[string]string{
		"recipes": "did you mean recipe?", file + "x": "did you mean " + file, dir: "not a file",
		"Title: {title}": "'{{ title }}: {{ text }}'", strings.Repeat("a", 9000): "{{ }}",
	} {
		_, err := ReadTemplate("template", given)
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), says) || len(fmt.Sprint(err)) > 1000 {
			t.Errorf("%.99s: %.999v; want %s", given, err, says)
		}
	}
	if _, err := ReadTemplate("prompt", "recipe"); err == nil || strings.Contains(err.Error(), "built-in") {
		t.Errorf("a prompt of the name of a template: %v", err)
	}
	text, _ := ReadTemplate("template", `{{ a }}\n`)
	if got, _, err := format(newWorker(t, of(text)), Record{}, `{"a":"b"}`); err != nil || got != "b\n" {
		t.Errorf("a line break at the end of a text: %q, %v", got, err)
	}
}
