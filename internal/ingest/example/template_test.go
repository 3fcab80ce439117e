package example

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"

	"pgregory.net/rapid"
)

// I5: a template that would run, or grow, without an end is a bad record, and what it took until then is bounded.
func TestHostileTemplatesEnd(t *testing.T) {
	doubling := `{{$x := printf "%99999d" 1}}` + strings.Repeat(`{{$x = printf "%s%s" $x $x}}`, 12) + "{{len $x}}"
	text := `{"text":"a","big":"` + strings.Repeat("<é ", 20000) + `","list":[` + strings.Repeat(`"x",`, 5000) +
		`"x"],"map":{` + keys(5000) + `}}`
	for i, c := range []struct {
		name, body string
		says       string
	}{
		{"doubling", doubling, "makes strings of more than"},
		{"width", `{{len (printf "%999999d%999999d%999999d" 1 2 3)}}`, "makes strings of more than"},
		{"width by argument", `{{range 9}}{{len (printf "%*d" 999999 1)}}{{end}}`, "makes strings of more than"},
		{"precision by argument", `{{range 9}}{{len (printf "%.*d" 999999 1)}}{{end}}`, "makes strings of more than"},
		{"width of a list", `{{len (printf "%9999v" .list)}}`, "makes strings of more than"},
		{"argument by index", `{{len (printf "` + strings.Repeat("%[1]s", 500) + `" .big)}}`,
			"makes strings of more than"},
		{"print", `{{range 100000}}{{$x := print $.big $.big}}{{end}}`, "makes strings of more than"},
		{"println", `{{range 100000}}{{$x := println $.big}}{{end}}`, "makes strings of more than"},
		{"print a map", `{{range 100000}}{{$x := print $.map}}{{end}}`, "for this record"},
		{"html", `{{range 100000}}{{$x := html $.big}}{{end}}`, "makes strings of more than"},
		{"html by a pipe", `{{range 100000}}{{$x := $.big | html}}{{end}}`, "makes strings of more than"},
		{"html of html", `{{$x := .big}}` + strings.Repeat(`{{$x = html $x}}`, 40), "makes strings of more than"},
		{"js of js", `{{$x := .big}}` + strings.Repeat(`{{$x = js $x}}`, 40), "makes strings of more than"},
		{"urlquery of urlquery", `{{$x := .big}}` + strings.Repeat(`{{$x = urlquery $x}}`, 40),
			"makes strings of more than"},
		{"upper", `{{range 100000}}{{$x := upper $.big}}{{end}}`, "makes strings of more than"},
		{"lower", `{{range 100000}}{{$x := lower $.big}}{{end}}`, "makes strings of more than"},
		{"output", `{{range 100000000}}aaaaaaaaaaaaaaaa{{end}}`, "writes more than"},
		{"output of data", `{{range 1000}}{{$.big}}{{end}}`, "writes more than"},
		{"output of a map", `{{range 100000}}{{$.map}}{{end}}`, "for this record"},
		{"loop", `{{range $i := 4611686018427387904}}{{end}}`, "more than"},
		{"loop in a loop", `{{range 1000000}}{{range 1000000}}{{end}}{{end}}`, "more than"},
		{"loop that goes on", `{{range 4611686018427387904}}{{continue}}{{end}}`, "more than"},
		{"long body", `{{range 4611686018427387904}}` + strings.Repeat(`{{$x := len $.text}}`, 1000) + `{{end}}`,
			"steps"},
		{"loop over a map", `{{range 100000}}{{range $.map}}{{break}}{{end}}{{end}}`, "for this record"},
		{"comparison", `{{range 100000000}}{{if eq $.big $.big}}{{end}}{{end}}`, "steps"},
		{"white space", `{{range 100000000}}{{$x := trim $.big}}{{end}}`, "steps"},
		{"recursion", `{{define "prompt"}}{{template "prompt" .}}{{end}}{{define "target"}}{{end}}`, "calls itself"},
		{"recursion by two", `{{define "a"}}{{if true}}{{template "b" .}}{{end}}{{end}}{{define "b"}}{{template "a" .}}{{end}}{{template "a" .}}`, "calls itself"},
		{"tree of templates", doublingTemplates(30), "steps"},
	} {
		if testing.Short() && i%4 > 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w := newWorker(t, FormatOptions{Template: c.body})
			record := text
			if !strings.Contains(c.body, ".big") && !strings.Contains(c.body, ".map") &&
				!strings.Contains(c.body, ".list") {
				record = `{"text":"a"}` // a shorter record allows fewer steps
			}
			var out Formatted
			err := w.Format(&out, Record{}, []byte(record))
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d bytes, %v; want an error with %q", len(out.Prompt), err, c.says)
			}
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v is not ErrTooLarge", err)
			}
		})
	}
}

// keys are n members of a JSON object.
func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":0,`, i)
	}
	return b.String() + `"k":0`
}

// doublingTemplates are templates of which each calls the next twice.
func doublingTemplates(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{{define "t%d"}}{{template "t%d"}}{{template "t%d"}}{{end}}`, i, i+1, i+1)
	}
	return b.String() + fmt.Sprintf(`{{define "t%d"}}{{end}}{{template "t0"}}`, n)
}

// What strings take is within ScratchBytes, also where they come one after another in one execution.
func TestTemplateStringsAreWithinScratch(t *testing.T) {
	big := strings.Repeat("<é \x01", 50000)
	for _, body := range []string{
		`{{range 1000}}{{$x := printf "%s" $.text}}{{end}}`, `{{range 1000}}{{$x := printf "%q" $.text}}{{end}}`,
		`{{range 1000}}{{$x := printf "%999999d" 1}}{{end}}`,
		`{{range 1000}}{{$x := print $.text $.text}}{{end}}`, `{{range 1000}}{{$x := html $.text}}{{end}}`,
		`{{range 1000}}{{$x := js $.text}}{{end}}`,
		`{{range 1000}}{{$x := urlquery $.text}}{{end}}`, `{{range 1000}}{{$x := upper $.text}}{{end}}`,
		`{{range 1000}}{{$x := lower $.text}}{{end}}`,
		`{{$x := .text}}{{range 1000}}{{$x = html $x}}{{end}}`,
		`{{$x := .text}}{{range 1000}}{{$x = printf "%s%s" $x $x}}{{end}}`,
	} {
		w := newWorker(t, FormatOptions{Template: body})
		var out Formatted
		_ = w.Format(&out, Record{Decoded: true}, []byte("warm up"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := w.Format(&out, Record{Decoded: true}, []byte(big))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", body)
		}
		// The bounds count what strings take; each call takes a little more, which the collector frees as it goes.
		took, limit := int64(after.TotalAlloc-before.TotalAlloc), w.f.ScratchBytes(int64(len(big)))+1<<20
		if took > limit {
			t.Errorf("%s: %d bytes were allocated, more than %d", body, took, limit)
		}
	}
}

// A running template ends when its worker is asked to stop, before its steps are spent.
func TestStoppedTemplate(t *testing.T) {
	done := make(chan struct{})
	close(done)
	f, err := NewFormatter(FormatOptions{Template: `{{range 4611686018427387904}}{{end}}`})
	if err != nil {
		t.Fatal(err)
	}
	var out Formatted
	if err := f.NewWorker().StopAt(done).Format(&out, Record{Decoded: true}, []byte("a")); !errors.Is(err,
		ErrStopped) {
		t.Error(err)
	}
}

// A template that is too large to be parsed in little memory is refused.
func TestTemplatesAreBounded(t *testing.T) {
	for _, c := range []struct{ name, body, says string }{
		{"size", strings.Repeat("a", MaxTemplateBytes+1), "too long"},
		{"actions", strings.Repeat("{{.text}}", 10000), "bytes of actions"},
		{"one action", `{{print "}}"` + strings.Repeat(" 1", maxActionBytes) + "}}", "bytes of actions"},
		{"parentheses", "{{" + strings.Repeat("(", 500) + ".text" + strings.Repeat(")", 500) + "}}", "parentheses"},
		{"nesting", strings.Repeat("{{if .text}}", 200) + "x" + strings.Repeat("{{end}}", 200), "levels deep"},
		{"else", "{{if .text}}" + strings.Repeat("{{else if .text}}", 200) + "{{end}}", "levels deep"},
	} {
		if _, err := NewFormatter(FormatOptions{Template: c.body}); !errors.Is(err, ErrTemplate) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.says)
		}
	}
	long := strings.Repeat("Words of an instruction (with parentheses), as long as they come. ", 10000) +
		`{{/* a comment's quote */}}{{.text}}`
	if out, _, err := format(newWorker(t, FormatOptions{Template: long}), Record{Decoded: true}, "x"); err != nil ||
		!strings.HasSuffix(out, "x") {
		t.Errorf("a long template of few actions: %v", err)
	}
}

// Instrumented templates write what plain ones do.
func TestInstrumentedTemplatesEqualPlainOnes(t *testing.T) {
	record := `{"s":"a <b> \"c\" 'd' é\u0001","empty":"","n":12.5,"list":["x","y","z"],"deep":{"k":{"v":[1,[2,{"w":null}]]}},"null":null,"yes":true,"map":{"b":1,"a":"2"}}`
	fields, _, err := new(jsonDecoder).fields([]byte(record), &fieldSet{all: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{{.s}}`, `{{.n}} {{.yes}} {{.list}} {{.deep}} {{.map}} {{.empty}}`, `{{.}}`,
		`{{1}} {{1.5}} {{"a"}} {{'b'}} {{true}} {{1e3}}`,
		`{{range .list}}{{.}},{{end}}`, `{{range $i, $x := .list}}{{$i}}{{$x}}{{else}}none{{end}}`,
		`{{range .null}}x{{else}}none{{end}}`, `{{range 3}}{{.}}{{end}}`,
		`{{range $k, $v := .map}}{{$k}}={{$v}};{{end}}`,
		`{{range .list}}{{if eq . "y"}}{{continue}}{{end}}{{.}}{{end}}`,
		`{{range .list}}{{if eq . "y"}}{{break}}{{end}}{{.}}{{end}}`,
		`{{$x := "1"}}{{range $x = .list}}{{end}}{{$x}}`, `{{with .deep}}{{with .k}}{{.v}}{{end}}{{end}}`,
		`{{with $x := .empty}}a{{else}}b{{end}}`, `{{with .null}}a{{else with .s}}{{.}}{{end}}`,
		`{{if and .yes (not .empty)}}a{{else}}b{{end}}`, `{{if or .empty .null}}a{{else if .yes}}c{{end}}`,
		`{{if eq .s "a" "b"}}a{{else}}b{{end}}`, `{{if eq .empty ""}}a{{end}}`,
		`{{if ne (len .list) 3}}a{{else}}b{{end}}`, `{{if lt 1 2}}a{{end}}{{if ge (len .s) 2}}b{{end}}`,
		`{{"a" | eq "a"}} {{.s | ne "a"}}`, `{{index .list 1}} {{index .deep "k" "v" 1 1}}`,
		`{{(index .list 0)}} {{(.deep).k.v}} {{slice .s 0 3}} {{slice .list 1}} {{len .map}}`, `{{1 | index .list}}`,
		`{{print .s 1 2 "a"}}|{{println .list .map}}|{{print}}|{{println}}`,
		`{{printf "%s|%q|%v|%d|%5.2f|%-5s|%05d|%x|% x|%+v|%#v|%T|%%|%t" .s .s .list 3 1.5 "a" 7 "hi" "hi" .map .deep .n .yes}}`,
		`{{printf "%[2]s %[1]s" "a" "b"}} {{printf "%*d|%-*d|%.*f" 5 1 4 2 1 2.5}}`,
		`{{html .s}} {{.s | html}} {{html .list}} {{html 1 "a"}}`, `{{js .s}} {{js .list}}`,
		`{{urlquery .s}} {{urlquery .n}}`, `{{join (slice .names 0) "+"}}`,
		`{{upper .s}} {{lower "ÀB"}} {{trim "  a "}} {{inc 3}}`,
		`{{define "t"}}[{{.}}]{{end}}{{template "t" .s}}{{range .list}}{{template "t" .}}{{end}}`,
		`{{block "b" .list}}{{len .}}{{end}}`,
		`{{define "tree"}}{{if .}}({{template "tree" (slice . 1)}}){{end}}{{end}}{{template "tree" .list}}`,
		`{{- .s -}} x {{- /* no */ -}} y`,
		`{{$x := 1}}{{$x = 2}}{{$x}}{{$}}`, `{{.missing}}`, `{{.s.t}}`, `{{index .list 9}}`, `{{range .s}}{{end}}`,
		`{{eq .list .list}}`, `{{nil}}`, `{{slice .s 9 1}}`, `{{.n.Float64}} {{.n.String}}`,
	} {
		fields["names"] = []string{"p", "q"}
		var want strings.Builder
		plain, err := template.New("template").Funcs(templateFuncs).Option("missingkey=error").Parse(body)
		if err != nil {
			continue // {{nil}}: refused by both
		}
		wantErr := plain.Execute(&want, fields)
		f, err := NewFormatter(FormatOptions{Template: body})
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		var out Formatted
		gotErr := f.NewWorker().execute(&out, fields, 1<<20, 1<<20)
		if (wantErr == nil) != (gotErr == nil) || wantErr == nil && string(out.Prompt) != want.String() {
			t.Errorf("%s: %q, %v; want %q, %v", body, out.Prompt, gotErr, want.String(), wantErr)
		}
	}
}

// A null is an error where it is printed, and none where it is only tested.
func TestTemplatesPrintNoNull(t *testing.T) {
	fields := map[string]any{"a": nil, "b": "text", "in": map[string]any{"x": nil}}
	for _, c := range []struct{ body, want, says string }{
		{body: `{{.b}} {{.a}}`, says: "null in this record: a"},
		{body: `{{print .a}}`, says: "null in this record: a"},
		{body: `{{printf "%v" .a}}`, says: "null in this record: a"},
		{body: `{{println .b .a}}`, says: "null in this record: a"},
		{body: `{{html .a}}`, says: "null in this record: a"},
		{body: `{{.a | urlquery}}`, says: "null in this record: a"},
		{body: `{{js .a}}`, says: "null in this record: a"},
		{body: `{{.in.x}}`, says: "prints a null"},
		{body: `{{define "t"}}[{{.}}]{{end}}{{template "t"}}`, says: "prints a null"},
		{body: `{{define "prompt"}}{{.b}}{{end}}{{define "target"}}{{.a}}{{end}}`, says: "{{if .a}}"},
		{body: `{{.b}}{{if .a}}{{.a}}{{end}}{{with .in.x}}{{.}}{{end}}{{or .a "none"}}{{eq .a nil}}`,
			want: "textnonetrue"},
	} {
		f, err := NewFormatter(FormatOptions{Template: c.body})
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		var out Formatted
		err = f.NewWorker().execute(&out, fields, 1<<20, 1<<20)
		if c.says == "" && (err != nil || string(out.Prompt) != c.want) {
			t.Errorf("%s: %q, %v; want %q", c.body, out.Prompt, err, c.want)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %q, %v; want an error with %q", c.body, out.Prompt, err, c.says)
		}
	}
}

// A mistake in a template is an error that says what to write, and never a part of the text.
func TestMistakesInTemplates(t *testing.T) {
	record := `{"title":"T","n":3,"price":1.50,"tags":["a"],"go":"%!d(string=x)"}`
	for body, says := range map[string]string{
		`{{title}}`: "{{.title}}", `{{.a-b}}`: `{{index . "a-b"}}`, `{{.tags.0}}`: "{{index .list 0}}",
		`{title}`: "names no field", `{{define "prompt"}}{{.title}}{{end}}`: `no "target"`,
		`{{define "prompt"}}{{.title}}{{end}}{{define "completion"}}{{.n}}{{end}}`:       `no "target"`,
		`{{define "prompt"}}{{.title}}{{end}}{{define "target"}}{{.n}}{{end}} {{.tags}}`: "would be left out",
		`{{printf "%d" .n}}`: "%!d(json.Number=…", `{{printf "%.2f" .price}}`: "printed with %s",
		`{{printf "%s %s" .title}}`: "%!s(MISSING)", `{{printf "%s" .title .n}}`: "%!(EXTRA ",
		`{{printf "%d" .title}}`: "%!d(string=", `{{printf "%*s" .n .title}}`: "%!(BADWIDTH", `{{printf "%" .n}}`: "%!(NOVERB",
		`{{if gt .n 2}}x{{end}}`: `at <gt .n 2>`, `{{if eq .n 3}}x{{end}}`: `{{if eq .n "3"}}`,
		`{{join .tags ", "}}`:                            "{{range .list}}",
		`{{if eq .n "3"}}{{.n}}{{end}}`:                  "",
		`{{printf "%s %v %s!(%5s) %%!" .go .n "9%" .n}}`: "",
	} {
		f, err := NewFormatter(FormatOptions{Template: body})
		if err == nil {
			err = f.NewWorker().Format(&Formatted{}, Record{}, []byte(record))
		}
		if says == "" && err != nil || says != "" && (err == nil || !errors.Is(err, ErrTemplate) ||
			!strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v; want an error with %q", body, err, says)
		}
	}
}

// No format and arguments give more than printfBound says.
func TestPrintfBound(t *testing.T) {
	pieces := []string{"%", "%", "%", "s", "d", "v", "q", "x", "X", "T", "U", "c", "f", "e", "g", "b", "o", "t", "z",
		"w", "p", "#", "+", "-", " ", "0", "5", "30", "999", "*", ".", "[1]", "[2]", "[", "]", "[9]", "é", "ab",
		"\xff", "1000001"}
	m := &meter{}
	rapid.Check(t, func(t *rapid.T) {
		format := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 14).Draw(t, "format"), "")
		value := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return string(b) }),
			rapid.Map(rapid.Int(), func(n int) any { return n }), rapid.Map(rapid.IntRange(-2000, 2000),
				func(n int) any { return n }),
			rapid.Map(rapid.Float64(), func(x float64) any { return x }),
			rapid.SampledFrom([]any{nil, true, 1e308, complex(1e308, -1e308),
				[]any{"a", nil, []any{1.5, "\U000e0001"}}, []string{"a", "\x00"},
				map[string]any{"k": "v", "\ufeff": nil, "m": map[string]any{"": true}}, uint8(7), []any{},
				map[string]any{}}),
		)
		args := rapid.SliceOfN(value, 0, 5).Draw(t, "args")
		parts := make([]extent, len(args))
		for i, arg := range args {
			m.begin(meterAllowance{1 << 30, 1 << 30})
			e, err := m.measure(arg)
			if err != nil {
				t.Fatal(err)
			}
			parts[i] = e
		}
		bound, _ := printfBound(format, args, parts)
		if s := fmt.Sprintf(format, args...); int64(len(s)) > bound {
			t.Fatalf("%q of %#v is %d bytes long, more than %d: %.200q", format, args, len(s), bound, s)
		}
		all, err := m.measureAll(args)
		if err != nil && !errors.Is(err, errNull) {
			t.Fatal(err)
		}
		if s := fmt.Sprintln(args...); err == nil && int64(len(s)) > all.bytes+all.elements*plainBytes+1 {
			t.Fatalf("%#v is %d bytes long: %q", args, len(s), s)
		}
	})
}

// actionOf is made of constants, and its panic is of no user's making.
func TestInsertedNodesParse(t *testing.T) {
	for _, name := range []string{stepFunc, enterFunc, leaveFunc} {
		if n := call(name, 1, 2); n.Type() != parse.NodeAction {
			t.Errorf("%s: %v", name, n)
		}
	}
	for _, name := range []string{shownFunc, rangedFunc, weighedFunc} {
		if c := filter(name); len(c.Args) != 1 {
			t.Errorf("%s: %v", name, c)
		}
	}
}
