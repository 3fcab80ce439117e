package example

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/refdata"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// of returns the options of a template.
func of(template string) FormatOptions { return FormatOptions{Templates: Templates{Text: template}} }

func newWorker(t testing.TB, o FormatOptions) *Worker {
	t.Helper()
	f, err := NewFormatter(o)
	if err != nil {
		t.Fatal(err)
	}
	return f.NewWorker()
}

// format gives a record's text as "prompt" or "prompt -> target", or the error.
func format(w *Worker, rec Record, data string) (string, int, error) {
	var out Formatted
	err := w.Format(&out, rec, []byte(data))
	s := string(out.Prompt)
	if out.HasTarget {
		s += " -> " + string(out.Target)
	}
	return s, out.Replaced, err
}

func TestFormat(t *testing.T) {
	jsonl, text := Record{}, Record{Decoded: true}
	table := Record{Columns: []string{"id", "text"}, Comma: ','}
	tabs := Record{Columns: []string{"id", "text"}, Comma: '\t'}
	for _, c := range []struct {
		name     string
		o        FormatOptions
		rec      Record
		data     string
		want     string
		replaced int
		err      error
	}{
		{"text", FormatOptions{}, text, "a {{.b}}\xff", "a {{.b}}\uFFFD", 1, nil},
		{"text in a template", of("<{{ text }}>"), text, "a {{.b}}\xff", "<a {{.b}}\uFFFD>", 1,
			nil},
		{"field", FormatOptions{}, jsonl, `{"id":1,"text":"a\n\"\u00e9"}`, "a\n\"é", 0, nil},
		{"other field", FormatOptions{TextField: "b"}, jsonl, ` {"a":[{"b":"no"}],"b":"yes","c":{"b":"no"}} ` + "\r",
			"yes", 0, nil},
		{"the last of several", FormatOptions{}, jsonl, `{"text":1,"text":"a","text":"b"}`, "b", 0, nil},
		{"escaped key", FormatOptions{}, jsonl, `{"te\u0078t":"a"}`, "a", 0, nil},
		{"surrogates", FormatOptions{}, jsonl, `{"text":"\ud83d\ude00 \ud83d \ude00\ud83dx \ud83d\ud83d\ude00"}`,
			"😀 \uFFFD \uFFFD\uFFFDx \uFFFD😀", 4, nil},
		{"ill-formed in JSON", FormatOptions{}, jsonl, "{\"text\":\"a\xe2\x82\"}", "a\uFFFD", 1, nil},
		{"decoded", FormatOptions{}, Record{Decoded: true}, `{"text":`, `{"text":`, 0, nil},
		{"missing field", FormatOptions{}, jsonl, `{"body":"a","id":2}`, "", 0, ErrUnknownField},
		{"no string", FormatOptions{}, jsonl, `{"text":null}`, "", 0, ErrUnknownField},
		{"no string at last", FormatOptions{}, jsonl, `{"text":"a","text":2}`, "", 0, ErrUnknownField},
		{"no object", FormatOptions{}, jsonl, `["text"]`, "", 0, ErrMalformed},
		{"cut short", FormatOptions{}, jsonl, `{"text":"a"`, "", 0, ErrMalformed},
		{"bad after the field", FormatOptions{}, jsonl, `{"text":"a","b":tru}`, "", 0, ErrMalformed},
		{"two objects", FormatOptions{}, jsonl, `{"text":"a"}{}`, "", 0, ErrMalformed},
		{"control character", FormatOptions{}, jsonl, "{\"text\":\"a\tb\"}", "", 0, ErrMalformed},
		{"zero bytes behind", FormatOptions{}, jsonl, "{\"text\":\"a\"}\x00", "", 0, ErrMalformed},
		{"nested too deep", FormatOptions{}, jsonl, `{"a":` + strings.Repeat("[", 2000), "", 0, ErrMalformed},
		{"json template", of(`{% block prompt %}Q: {{ q }}{% endblock %}{% block target %}{{ a.n }}{% endblock %}`), jsonl, `{"q":"why","a":{"n":1e3}}`, "Q: why -> 1000.0", 0, nil},
		{"json template, missing", of("{{ nope }}"), jsonl, `{"q":"why"}`, "", 0, ErrTemplate},
		{"json template, malformed", of("{{ q }}"), jsonl, `{"q":"why"} x`, "", 0, ErrMalformed},
		{"template without end", of(`{{ q }}{% for i in range(99999) %}{{ i }}{% endfor %}`), jsonl, `{"q":1}`, "", 0,
			ErrTooLarge},
		{"half a surrogate pair", of(`{{ q[0] }}`), jsonl, `{"q":"\ud83dx"}`, "\uFFFD", 1, nil},
		{"csv", FormatOptions{}, table, `1,"a ""b"", c` + "\n" + `d"`, "a \"b\", c\nd", 0, nil},
		{"csv, quote in the middle", FormatOptions{}, table, `1,a "b"`, `a "b"`, 0, nil},
		{"csv, empty", FormatOptions{}, table, `,`, "", 0, nil},
		{"csv, tabs", FormatOptions{}, tabs, "1,2\ta,b", "a,b", 0, nil},
		{"csv, other column", FormatOptions{TextField: "id"}, table, "1,2", "1", 0, nil},
		{"csv, no such column", FormatOptions{TextField: "body"}, table, "1,2", "", 0, ErrUnknownField},
		{"csv, too few", FormatOptions{}, table, "1", "", 0, ErrMalformed},
		{"csv, too many", FormatOptions{}, table, "1,2,3", "", 0, ErrMalformed},
		{"csv, after a quote", FormatOptions{}, table, `1,"a"b`, "", 0, ErrMalformed},
		{"csv, open quote", FormatOptions{}, table, `1,"a`, "", 0, ErrMalformed},
		{"csv template", of("{{ id }}/{{ text | upper }}"), table, "1,a", "1/A", 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, replaced, err := format(newWorker(t, c.o), c.rec, c.data)
			if !errors.Is(err, c.err) || err == nil && (got != c.want || replaced != c.replaced) {
				t.Errorf("%q, %d replaced, %v; want %q, %d, %v", got, replaced, err, c.want, c.replaced, c.err)
			}
		})
	}
}

func TestErrorsNameWhatThereIs(t *testing.T) {
	_, _, err := format(newWorker(t, FormatOptions{}), Record{}, `{"body":"a","id":2}`)
	if err == nil || !strings.Contains(err.Error(), "body, id") {
		t.Error(err)
	}
	_, _, err = format(newWorker(t, FormatOptions{}), Record{Columns: []string{"x", "y"}, Comma: ','},
		`1,2`)
	if err == nil || !strings.Contains(err.Error(), "x, y") {
		t.Error(err)
	}
	_, _, err = format(newWorker(t, of("{{ z }}")),
		Record{}, `{"x":1}`)
	if err == nil || !strings.Contains(err.Error(), `no field "z"`) || !strings.Contains(err.Error(), "the record has x;") {
		t.Error(err)
	}
	for _, body := range []string{"a\n{{ x", "a\n{{ nofilter.x | }}", `{% block prompt %}{% endblock %}`, " \n",
		`{% include "gone" %}`} {
		_, err := NewFormatter(FormatOptions{Templates: Templates{Text: body}, Given: Templates{Text: "qa.jinja"}})
		if !errors.Is(err, ErrTemplate) || fault.OptionOf(err) != "template" || !strings.Contains(err.Error(), "qa.jinja") {
			t.Errorf("%q: %v", body, err)
		}
	}
}

var recipeRecord = Record{Template: "recipe", Columns: []string{"", "title", "ingredients", "directions", "link",
	"source", "NER"}, Comma: ','}

const recipeLine = `0, Tea ,"[""1 c. water"", ""1 bag \""tea\""""]","[""Boil at 100\u00b0."", ""Steep.""]",www,Gathered,"[""tea""]"`

func TestRecipes(t *testing.T) {
	for template, want := range map[string]string{
		"":               "Tea\n\nIngredients:\n- 1 c. water\n- 1 bag \"tea\"\n\nDirections:\n1. Boil at 100°.\n2. Steep.\n",
		"recipe":         "Tea\n\nIngredients:\n- 1 c. water\n- 1 bag \"tea\"\n\nDirections:\n1. Boil at 100°.\n2. Steep.\n",
		"recipe-seq2seq": "Ingredients:\n- 1 c. water\n- 1 bag \"tea\"\n -> Tea\n\nDirections:\n1. Boil at 100°.\n2. Steep.\n",
		`{{ title }}: {{ NER | join("+") }} of {{ ingredients | length }}`: " Tea : tea of 2",
	} {
		w := newWorker(t, of(template))
		if got, _, err := format(w, recipeRecord, recipeLine); err != nil || got != want {
			t.Errorf("%s: %q, %v", template, got, err)
		}
		if w.f.HasTarget() != strings.Contains(want, "->") {
			t.Errorf("%s: HasTarget is wrong", template)
		}
	}
	if got, _, err := format(newWorker(t, FormatOptions{TextField: "link"}), recipeRecord,
		recipeLine); got != "www" || err != nil {
		t.Errorf("one column: %q, %v", got, err)
	}
	for _, line := range []string{strings.Replace(recipeLine, `"[`, `"{`, 1),
		strings.Replace(recipeLine, `]"`, `"`, 1), strings.Replace(recipeLine, `""1 c. water""`, `1`, 1),
		strings.Replace(recipeLine, `]"`, `] x"`, 1)} {
		if _, _, err := format(newWorker(t, FormatOptions{}), recipeRecord, line); !errors.Is(err, ErrMalformed) ||
			!strings.Contains(err.Error(), "plain texts are read with `format` csv") {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, _, err := format(newWorker(t, FormatOptions{}), Record{Template: "recipe",
		Columns: []string{"title", "steps"}, Comma: ','}, "a,b"); !errors.Is(err, ErrTemplate) ||
		!strings.Contains(err.Error(), `no column "ingredients"`) || strings.Contains(err.Error(), "default") {
		t.Error(err)
	}
	if !IsBuiltin("recipe") || IsBuiltin("poem") || strings.Join(Builtins(), " ") != "recipe recipe-seq2seq" {
		t.Error(Builtins())
	}
}

// sampleRecipes are the records of the real sample, as the framing gives them.
func sampleRecipes(t testing.TB) [][]byte {
	data := refdata.Read(t, "corpora/recipes/recipenlg-sample.csv")
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))[1:] // its records are lines
}

// What the built-in templates make of real recipes is what this makes of the columns, read by the standard library.
func TestBuiltinsOnRealRecipes(t *testing.T) {
	recipe, pair, byDefault := newWorker(t, of("recipe")), newWorker(t, of("recipe-seq2seq")), newWorker(t, FormatOptions{})
	for _, line := range sampleRecipes(t) {
		fields, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			t.Fatal(err)
		}
		title, ingredients, directions := strings.TrimSpace(fields[1]), "Ingredients:\n", "Directions:\n"
		var list []string
		if err := json.Unmarshal([]byte(fields[2]), &list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list {
			ingredients += "- " + item + "\n"
		}
		if err := json.Unmarshal([]byte(fields[3]), &list); err != nil {
			t.Fatal(err)
		}
		for i, step := range list {
			directions += fmt.Sprintf("%d. %s\n", i+1, step)
		}
		text := title + "\n\n" + ingredients + "\n" + directions
		for w, want := range map[*Worker]string{recipe: text, byDefault: text,
			pair: ingredients + " -> " + title + "\n\n" + directions} {
			if got, _, err := format(w, recipeRecord, string(line)); err != nil || got != want {
				t.Fatalf("%q, %v; want %q", got, err, want)
			}
		}
	}
}

// Whether a line is well-formed, and what its field holds, agrees with encoding/json on every cut and change of a line.
func TestFieldEqualsEncodingJSON(t *testing.T) {
	line := `{"id": -1.5e+3, "text": "a\u00e9\ud83d\ude00\n", "more": [true, {"text": null}, [], {}, "x\\"], "z": 0}`
	w := newWorker(t, FormatOptions{})
	check := func(data string) {
		var fields map[string]any
		err := json.Unmarshal([]byte(data), &fields)
		got, _, gotErr := format(w, Record{}, data)
		text, isString := fields["text"].(string)
		switch {
		case (err != nil || fields == nil) != errors.Is(gotErr, ErrMalformed):
			t.Errorf("%q: %v, encoding/json says %v", data, gotErr, err)
		case err == nil && isString && got != text:
			t.Errorf("%q: %q, want %q", data, got, text)
		case err == nil && fields != nil && !isString && !errors.Is(gotErr, ErrUnknownField):
			t.Errorf("%q: %v", data, gotErr)
		}
	}
	for i := range line {
		check(line[:i])
		for _, c := range "\"\\{}[],:0-+.eEtnu \x01" {
			check(line[:i] + string(c) + line[i:])
			check(line[:i] + string(c) + line[i+1:])
		}
		check(line[:i] + line[i+1:])
	}
}

func TestFormatAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		o    FormatOptions
		rec  Record
		data string
	}{
		{FormatOptions{}, Record{Decoded: true}, "a line\xff"},
		{FormatOptions{}, Record{}, `{"a":[1,{}],"text":"a\n"}`},
		{FormatOptions{}, Record{Columns: []string{"text"}, Comma: ','}, `"a"`},
		{of("recipe-seq2seq"), recipeRecord, recipeLine},
		{of("{{ id }}: {{ text | trim }}"), Record{}, `{"id":7,"text":" a\n","x":[1]}`},
	} {
		w, data := newWorker(t, c.o), []byte(c.data)
		var out Formatted
		run := func() {
			if err := w.Format(&out, c.rec, data); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n > 0 {
			t.Errorf("%.20q: %v allocations", data, n)
		}
	}
}

// I1 and I3 hold for anything.
func checkFormat(t *testing.T, w *Worker, rec Record, data []byte) {
	var out, again Formatted
	err := w.Format(&out, rec, data)
	if err2 := w.Format(&again, rec, data); (err == nil) != (err2 == nil) || err == nil &&
		(!bytes.Equal(out.Prompt, again.Prompt) || !bytes.Equal(out.Target, again.Target)) {
		t.Fatalf("%q twice: %v, %v", data, err, err2)
	}
	if err != nil {
		return
	}
	if !utf8.Valid(out.Prompt) || !utf8.Valid(out.Target) {
		t.Fatalf("%q gives ill-formed text", data)
	}
	if limit := 3*len(data) + int(w.f.OverheadBytes()); len(out.Prompt)+len(out.Target) > limit {
		t.Fatalf("%d bytes of %q, more than %d", len(out.Prompt)+len(out.Target), data, limit)
	}
}

func FuzzJSONRecord(f *testing.F) {
	for _, s := range []string{`{"text":"a"}`, `{"text":"\ud83d\ude00\u00e9","b":[1,{"c":null}]}`,
		`{"a":{"text":1},"text":"\ud83d"}`, "{", `{"text":"a","text":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorker(t, FormatOptions{})
		rec := Record{}
		checkFormat(t, w, rec, data)
		var out Formatted
		err := w.Format(&out, rec, data)
		if utf8.Valid(data) && bytes.Count(data, []byte("[")) < 900 && bytes.Count(data, []byte("{")) < 90 {
			if json.Valid(data) && errors.Is(err, ErrMalformed) && bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"),
				[]byte("{")) || !json.Valid(data) && err == nil {
				t.Fatalf("%q: %v, encoding/json says %t", data, err, json.Valid(data))
			}
		}
	})
}

func FuzzCSVRecord(f *testing.F) {
	for _, s := range []string{`1,2`, `"a ""b""",`, `"a`, `"a"b,`, `,`, recipeLine, "1,\"\n\""} {
		f.Add([]byte(s), byte(','))
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		comma := ",;\t"[which%3] // the separators that framing knows
		checkFormat(t, newWorker(t, FormatOptions{TextField: "b"}), Record{Columns: []string{"a", "b"},
			Comma: comma}, data)
		checkFormat(t, newWorker(t, FormatOptions{}), recipeRecord, data)
		checkFormat(t, newWorker(t, of("recipe-seq2seq")), recipeRecord, data)
	})
}

func FuzzTemplate(f *testing.F) {
	for _, b := range builtins {
		f.Add(b.body, recipeLine)
	}
	f.Add(`{{ title }} {% for i in ingredients %}{{ i }}{% endfor %}`, recipeLine)
	f.Add(`{% block prompt %}{{ record | length }}{% endblock %}{% block target %}x{% endblock %}`, recipeLine)
	f.Add(`{{ "%9999d" % 1 }}{{ title[3] }}{{ "\ud800" }}`, recipeLine)
	f.Add(`{% for i in range(99999) %}{% endfor %}{{ title }}`, recipeLine)
	f.Add(`{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}{{ x.y }}`, recipeLine)
	f.Add(`{% generation %}{{ title }}{% endgeneration %}`, recipeLine)
	f.Fuzz(func(t *testing.T, body, data string) {
		formatter, err := NewFormatter(of(body))
		if err != nil {
			return
		}
		checkFormat(t, formatter.NewWorker(), recipeRecord, []byte(data))
	})
}

func FuzzUTF8(f *testing.F) {
	f.Add([]byte("a\xe2\x82\xf0\x9f\x98b\xed\xa0\x80"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, replaced := wellformed.Append(nil, data)
		if !utf8.Valid(got) || (replaced == 0) != utf8.Valid(data) || len(got) > 3*len(data) {
			t.Fatalf("%q: %q, %d", data, got, replaced)
		}
		// strings.ToValidUTF8 joins runs of ill-formed bytes: with those joined, both agree.
		join := func(s string) string {
			for strings.Contains(s, "\uFFFD\uFFFD") {
				s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
			}
			return s
		}
		if join(string(got)) != join(strings.ToValidUTF8(string(data), "\uFFFD")) {
			t.Fatalf("%q: %q", data, got)
		}
	})
}

func BenchmarkFormat(b *testing.B) {
	recipes := sampleRecipes(b)
	line := `{"id":"12345","url":"https://www.example.com/some/page","text":` +
		string(mustJSON(strings.Repeat("A plain sentence of prose with \"quotes\".\n", 30))) +
		`,"meta":{"lang":"en","score":0.75,"tags":["a","b"]}}`
	plain := `{"id": 12345, "text": "` + strings.Repeat("A plain sentence of prose, without quotes. ", 12) +
		`", "lang": "en", "url": "https://www.example.com/some/page"}`
	for _, c := range []struct {
		name string
		o    FormatOptions
		rec  Record
		data [][]byte
	}{
		{"plain", FormatOptions{}, Record{}, [][]byte{[]byte(plain)}},
		{"text", FormatOptions{}, Record{Decoded: true}, [][]byte{bytes.Repeat([]byte("plain text, élan "), 60)}},
		{"jsonl", FormatOptions{}, Record{}, [][]byte{[]byte(line)}},
		{"recipe", FormatOptions{}, recipeRecord, recipes},
		{"template", of("{{ id }}: {{ text }}"), Record{}, [][]byte{[]byte(plain)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorker(b, c.o)
			var out Formatted
			size := 0
			for _, d := range c.data {
				size += len(d)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, d := range c.data {
					if err := w.Format(&out, c.rec, d); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
