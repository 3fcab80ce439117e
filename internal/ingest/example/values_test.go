package example

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/example/values"
)

// The values of a record are those of Python's json.loads, of the fields that a template reads.
func TestValuesOfRecords(t *testing.T) {
	for _, c := range []struct{ data, body, want string }{
		{`{"a":1,"b":[1,2.5e3,"x\u00e9\n",null,true,{"c":{}}],"c":"d"}`, "{{ record }}",
			`{'a': 1, 'b': [1, 2500.0, 'xé\n', None, True, {'c': {}}], 'c': 'd'}`},
		{` { "a" : "b" , "a":"last" } `, "{{ a }}", "last"},
		{`{}`, "{{ record }}", "{}"},
		{`{"a":[],"b":{"x":[[],[{}]]},"c":false}`, "{{ a }}{{ b }}{{ record.c }}", "[]{'x': [[], [{}]]}False"},
		{`{"\u0061":"escaped key","b":"\ud83d\ude00 \ud83d"}`, "{{ a }}, {{ b }}", "escaped key, 😀 \uFFFD"},
		{`{"n":-0,"big":12345678901234567890123,"f":1.50,"e":1E400,"x":NaN,"y":-Infinity}`,
			"{{ n }} {{ big + 1 }} {{ f }} {{ e }} {{ x }} {{ y }}", "0 12345678901234567890124 1.5 inf nan -inf"},
		{`{"a-b":"x","in":"y","record":"z","if":[1]}`, "{{ record }}", "z"},
		{`{"a-b":"x","in":"y"}`, "{{ record['a-b'] ~ record['in'] }}", "xy"},
		{`{"range":3,"dict":"d"}`, "{{ range }}{{ dict }}", "3d"},
		{`{"n":3}`, "{% for i in range(n) %}{{ i }}{% endfor %}", "012"},
	} {
		if got, _, err := format(newWorker(t, of(c.body)), Record{}, c.data); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.data, got, err, c.want)
		}
	}
}

func TestFieldsOfTemplates(t *testing.T) {
	for body, want := range map[string]string{
		"{{ text }}": "[text]",
		"{{ a.b }}{% for x in items %}{{ x.name }}{% endfor %}{{ c['d'] | default(e) }}": "[a c e items x]",
		"{% set q = a %}{{ q }}{% macro m(p) %}{{ p ~ z }}{% endmacro %}{{ m(b) }}":      "[a b m p q z]",
		"{% block prompt %}{{ q }}{% endblock %}{% block target %}{{ a }}{% endblock %}": "[a q]",
		"{{ record.x }}": "[]",
	} {
		if got := fmt.Sprint(newWorker(t, of(body)).f.Fields()); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// A record of four megabytes of empty objects stays small: not decoded where it is not used, refused where it is.
func TestDecodedBytesAreBounded(t *testing.T) {
	data := []byte(`{"text":"a","x":[` + strings.Repeat(`{"":0},`, 590_000) + `{}]}`)
	for body, want := range map[string]error{"{{ text }}": nil, "{{ x }}": ErrTooLarge, "{{ record }}": ErrTooLarge} {
		f, err := NewFormatter(of(body))
		if err != nil {
			t.Fatal(err)
		}
		var dst Formatted
		var before, after runtime.MemStats
		w := f.NewWorker()
		runtime.ReadMemStats(&before)
		err = w.Format(&dst, Record{}, data)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, want) || want == nil && string(dst.Prompt) != "a" {
			t.Errorf("%s: %q, %v; want %v", body, dst.Prompt, err, want)
		}
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > 2*values.Bytes(int64(len(data))) {
			t.Errorf("%s: %d bytes allocated, values.Bytes says %d", body, took, values.Bytes(int64(len(data))))
		}
	}
}

// NaN and infinities are numbers, as Python writes them; they are not text.
func TestNaN(t *testing.T) {
	for data, want := range map[string]error{
		`{"x":NaN,"text":"a","y":[Infinity,-Infinity]}`: nil,
		`{"text":"a","x":nan}`:                          ErrMalformed,
		`{"text":"a","x":-NaN}`:                         ErrMalformed,
		`{"text":NaN}`:                                  ErrUnknownField,
		`{"text":-Infinity}`:                            ErrUnknownField,
	} {
		for _, o := range []FormatOptions{{}, of("{{ text }}")} {
			f, err := NewFormatter(o)
			if err != nil {
				t.Fatal(err)
			}
			var dst Formatted
			err = f.NewWorker().Format(&dst, Record{}, []byte(data))
			if o.Text != "" && errors.Is(want, ErrUnknownField) {
				continue // a template prints numbers
			}
			if !errors.Is(err, want) || want == nil && string(dst.Prompt) != "a" {
				t.Errorf("%s with %q: %q, %v; want %v", data, o.Text, dst.Prompt, err, want)
			}
		}
	}
}

func TestMissingFieldNamesTheLikelyOne(t *testing.T) {
	for data, want := range map[string]string{
		`{"id":"1","body":"some words"}`:                                   `"body" looks like the text`,
		`{"title":"T","sentence":"s w","u":"http://a.example/b/c/d"}`:      `"sentence" looks like the text`,
		`{"name":"x","blob":"the longest of all strings"}`:                 `"blob" looks like the text`,
		`{"content":"x","raw_text":"` + strings.Repeat("long ", 99) + `"}`: `"raw_text" looks like the text`,
		`{"messages":[{"role":"user","content":"hi"}],"id":"7"}`:           `"messages" looks like the messages of a chat`,
		`{"n":1}`: `the record has n`,
		`{}`:      `the record has none`,
	} {
		f, _ := NewFormatter(FormatOptions{})
		var dst Formatted
		err := f.NewWorker().Format(&dst, Record{}, []byte(data))
		var missing *FieldError
		if !errors.As(err, &missing) || !errors.Is(err, ErrUnknownField) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", data, err, want)
		}
	}
	f, _ := NewFormatter(FormatOptions{})
	var dst Formatted
	err := f.NewWorker().Format(&dst, Record{Columns: []string{"id", "body"}, Comma: ','},
		[]byte(`1,"some words"`))
	if err == nil || !strings.Contains(err.Error(),
		`no column "text"; the columns are id, body; "body" looks like the text`) {
		t.Error(err)
	}
}

// A template is given the columns that it names; what all of a wide record, or a long list of a
// recipe, would take is bounded as JSON is.
func TestCSVFieldsAreBounded(t *testing.T) {
	columns, row := []string{"text", "ingredients"}, `a,"[`+strings.Repeat(`"""",`,
		500_000)+`""""]"`+strings.Repeat(",", 15_000)
	for i := range 15_000 {
		columns = append(columns, fmt.Sprint("c", i))
	}
	for body, want := range map[string]error{"{{ text }}": nil, "{{ ingredients }}": ErrTooLarge, "{{ record }}": ErrTooLarge,
		"{{ nosuch }}": ErrTemplate} {
		f, err := NewFormatter(of(body))
		if err != nil {
			t.Fatal(err)
		}
		var dst Formatted
		var before, after runtime.MemStats
		w := f.NewWorker()
		w.fields.text, w.fields.ends = make([]byte, 0, len(row)), make([]int, 0, len(columns))
		runtime.ReadMemStats(&before)
		err = w.Format(&dst, Record{Template: "recipe", Columns: columns, Comma: ','}, []byte(row))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, want) || want == nil && string(dst.Prompt) != "a" {
			t.Errorf("%s: %q, %v; want %v", body, dst.Prompt, err, want)
		}
		most := int64(4 << 20)
		if want == ErrTooLarge {
			most = 2 * values.Bytes(int64(len(row)))
		}
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > most {
			t.Errorf("%s: %d bytes allocated for a record of %d", body, took, len(row))
		}
	}
}

// What a message repeats of a record is short, and nothing is computed again and again with a
// number of a million digits.
func TestHugeNumbers(t *testing.T) {
	data := []byte(`{"text":"a","short":1.5,"n":` + strings.Repeat("1", 1<<20) + `}`)
	for body, want := range map[string]error{
		"{{ text }}": nil, "{{ short * 2 }}": nil, "{{ n }}": ErrTooLarge, "{{ record.text }}": ErrTooLarge,
		"{{ text.x }}": ErrTemplate,
	} {
		f, err := NewFormatter(of(body))
		if err != nil {
			t.Fatal(err)
		}
		var dst Formatted
		if err = f.NewWorker().Format(&dst, Record{}, data); !errors.Is(err, want) {
			t.Errorf("%s: %.200v", body, err)
		}
		if err != nil && len(err.Error()) > 4<<10 {
			t.Errorf("%s: a message of %d bytes", body, len(err.Error()))
		}
	}
}
