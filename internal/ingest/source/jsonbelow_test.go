package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/google/go-cmp/cmp"
)

// shownBelow are the records of a file as text: their bytes, or why one is bad.
func shownBelow(pieces []piece) string {
	var parts []string
	for _, p := range pieces {
		if p.Err != nil {
			var bad *RecordError
			errors.As(p.Err, &bad)
			p.data = "!" + bad.Cause.Error()
		}
		parts = append(parts, p.data)
	}
	return strings.Join(parts, " ")
}

func TestRecordsBelow(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ records, data, want string }{
		{"data", `{"v": [1, {"data": 2}], "data": [{"a": 1}, {"b": "]}"}], "n": null}`, `{"a": 1} {"b": "]}"}`},
		{"data", ` { "d\u0061ta" : [ { } , "text" ] } `, `{ } text`},
		{"data", "{\"data\": [{\"a\": 1}]}\n{\"x\": {}, \"data\": []}\n{\"data\": null}\n[{\"data\": [{\"b\": 2}]}]",
			`{"a": 1} {"b": 2}`},
		{"a.b", `{"a": {"c": [{}], "b": [{"x": 1}]}, "b": [{"y": 1}]}`, `{"x": 1}`},
		{"a.b", `{"a": [{"b": [{"x": 1}, {"x": 2}]}, {"b": []}, {"b": [{"x": 3}]}]}`, `{"x": 1} {"x": 2} {"x": 3}`},
		{"a.b", `{"a": [{"b": [{"x": 1}]}, {"c": 2}, 3, {"b": {}}, {"b": [{"x": 3}]}]}`,
			`{"x": 1} !` + "`records` a.b: an object of \"a\" has no key \"b\"; it has c" +
				" !\"a\" is not an object, and `records` a.b needs the key \"b\" in it" +
				" !\"a.b\" is an object, and records are the elements of an array; name an array in it, as in `records` a.b.KEY" +
				` {"x": 3}`},
		{"data", `{"data": [[{"x": 1}]]}`, `!"[{\"x\": 1}]" is neither a JSON object nor a text`},
		{"data", `{"data": "text"}`, `!"data" is not an array of records; give ` + "`records` another key"},
		{"data.x", `{"data": [[{"x": 1}]]}`,
			"!\"data\" is an array of arrays, and `records` data.x needs objects with the key \"x\""},
		{"data", `{"data": [{"a": 1}, {"b`, `{"a": 1} !the file ends within a JSON value; copy the file again`},
		{"data", `{"data": [{"a": 1}], "b": "c`, `{"a": 1} !the file ends within its JSON; copy the file again`},
		{"data", `{"data"`, `!the file ends within its JSON; copy the file again`},
		{"a.b.c.d.e.f.g.h", `{"a":{"b":{"c":{"d":{"e":{"f":{"g":[[0],{"h":[{}]}]}}}}}}}`,
			"!\"a.b.c.d.e.f.g\" is an array of arrays, and `records` a.b.c.d.e.f.g.h needs objects with the key \"h\" {}"},
		{frame.TopRecords, `{"data": [{"a": 1}]}`, `{"data": [{"a": 1}]}`},
	} {
		o := Options{Args: []string{write(t, dir, fmt.Sprintf("%d.json", i), c.data)}, Format: JSON, Framing: Framing{Records: c.records,
			Fields: []string{"text"}}}
		all := readAll(t, o)
		if got := shownBelow(all); got != c.want {
			t.Errorf("%s of %s:\n%s\nwant\n%s", c.records, c.data, got, c.want)
		}
		// The records do not depend on how the file comes in, nor on where reading was stopped.
		for n := 1; n < 12; n++ {
			o.chunkBytes = n
			if d := cmp.Diff(shownBelow(all), shownBelow(readAll(t, o))); d != "" {
				t.Errorf("%s of %s, %d bytes at a time: %s", c.records, c.data, n, d)
			}
		}
		o.chunkBytes = 0
		for j := range all {
			rest, err := readFrom(t, openSet(t, o), all[j].next)
			if got := shownBelow(rest); err != nil || got != shownBelow(all[j+1:]) && all[j].Err == nil {
				t.Errorf("%s of %s, after record %d: %s, %v", c.records, c.data, j, got, err)
			}
		}
	}
}

// TestMalformedBelow reads what is no JSON between the records.
func TestMalformedBelow(t *testing.T) {
	dir := t.TempDir()
	for data, want := range map[string]string{
		`{"data": [{}] "x": 1}`:              "'\"' in an object, where a comma or '}' belongs",
		`{"data": [{} {}]}`:                  "'{' after an element of the array",
		`{,}`:                                "',' in an object, where a key or '}' belongs",
		`{"x": 1,}`:                          "'}' in an object, where a key belongs",
		`{"x" 1}`:                            "'1' where ':' belongs",
		`{"x": ]}`:                           "']' where a value belongs",
		`{"data": [{}], "data": [{"x": 1}]}`: `the key "data" comes twice`,
	} {
		o := Options{Args: []string{write(t, dir, "a.json", data)}, Format: JSON, Framing: Framing{Records: "data"}, SkipDamaged: false}
		set, err := Open(context.Background(), o)
		if err == nil {
			_, err = readFrom(t, set, Position{})
		}
		if !errors.Is(err, cause.Malformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
}

func TestRecordsAreFound(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat(`{"text": "one of many"}, `, 4000)
	for name, c := range map[string]struct {
		o             Options
		data          string
		records, says string // an error of Open or of reading
	}{
		"one.json":      {Options{}, `{"version": "1", "data": [{"text": "a"}]}`, "data", ""},
		"lines.json":    {Options{}, "{\n \"rows\": [\n{\"id\": 1, \"text\": \"a\"}]}\n", "rows", ""},
		"named.jsonl":   {Options{}, `{"data": [{"text": "a"}]}`, "data", ""},
		"asked.jsonl":   {Options{Format: JSONL}, `{"data": [{"text": "a"}]}`, "", ""},
		"top.json":      {Options{Framing: Framing{Records: frame.TopRecords}}, `{"data": [{"text": "a"}]}`, "", ""},
		"given.jsonl":   {Options{Framing: Framing{Records: "data"}}, `{"data": [{"none": "a"}]}`, "data", ""},
		"long.json":     {Options{}, `{"data": [` + long + `{"text": "last"}], "n": {}}`, "data", ""},
		"two.json":      {Options{}, `{"data": [{"text": "a"}], "more": [{"text": "b"}]}`, "", ""},
		"record.json":   {Options{}, `{"text": "a", "links": [{"text": "b"}]}`, "", ""},
		"other.json":    {Options{}, `{"data": [{"title": "b"}]}`, "", ""},
		"texts.json":    {Options{}, `{"data": ["text"]}`, "", ""},
		"several.jsonl": {Options{}, "{\"data\": [{\"text\": \"a\"}]}\n{\"data\": [{\"text\": \"b\"}]}\n", "", ""},
		"chat.json":     {Options{Format: Chat}, `{"messages": [{"role": "user", "text": "a"}]}`, "", ""},
		"chats.json": {Options{Format: Chat}, `{"data": [{"conversations": [{"from": "human", "value": "a"}]}]}`,
			"data", ""},
		"alpaca.json": {Options{Format: Chat}, `{"data": [{"instruction": "a", "output": "b"}]}`, "data", ""},
		"tools.json":  {Options{Format: Chat}, `{"prompt": "a", "completion": "b", "tools": [{"input": 1}]}`, "", ""},
		"none.json":   {Options{Format: Chat}, `{"data": [{"title": "a"}]}`, "", ""},
		"late.json": {Options{}, `{"data": [` + long + `{}], "more": [ {"text": "b"}]}`, "data",
			"there are objects below \"data\" and below \"more\"; name one with `records`"},
		"field.json": {Options{}, `{"data": [` + long + `{}], "text": "b"}`, "data",
			"the object has the field \"text\" besides records below \"data\"; give `records` data for those, or `records` ."},
		"missing.json": {Options{Framing: Framing{Records: "date"}}, `{"version": 1, "data": [{"text": "a"}]}`, "",
			"`records` date: no key \"date\" in the object; it has version, data"},
		"path.json": {Options{Framing: Framing{Records: "a[0]"}}, `{}`, "", "need no brackets"},
	} {
		o := c.o
		if o.Format != Chat { // which wants all
			o.Fields = []string{"text"}
		}
		o.Args = []string{write(t, dir, name, c.data)}
		set, err := Open(context.Background(), o)
		if err == nil {
			if in := inputsOf(t, set)[0]; in.Records != c.records {
				t.Errorf("%s: records below %q, want %q", name, in.Records, c.records)
			}
			if noted := len(set.Notes()) > 0; noted != (c.records != "" && o.Records == "") {
				t.Errorf("%s: notes %v", name, set.Notes())
			}
			_, err = readFrom(t, set, Position{})
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
