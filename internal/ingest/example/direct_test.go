package example

import (
	"strings"
	"testing"
)

// A template of text and fields makes of every record what text/template makes of it, errors included.
func TestDirectEqualsGeneral(t *testing.T) {
	type record struct {
		of   Record
		data string
	}
	json := func(data string) record { return record{data: data} }
	row := func(data string, columns ...string) record {
		return record{Record{Columns: columns, Comma: ','}, data}
	}
	records := []record{
		json(`{"a": "x\ty\ud800", "text": "words \u00e9 \ud83d\ude00"}`), json(`{"text":"only"}`),
		json(`{"text": "first", "a": "b", "text": "last"}`), json(`{"text": "", "a": ""}`),
		json(`{"te\u0078t": "by an escape", "a": "b"}`), json(`{"text": 1, "a": "b"}`),
		json(`{"text": null, "a": "b"}`), json(`{"text": ["x"], "a": {"b": 1}}`), json(`{"text": "x", "a": "b"} more`),
		json(`{"text": "x", "a": "b"`), json(`["text"]`), json(`{"text": "\x", "a": "b"}`),
		json("{\"text\": \"\xff\", \"a\": \"b\"}"),
		json(`{"text": "`), json(`{}`), json(``),
		json(`{"a": "` + strings.Repeat(`", "a": "`, 20000) + `", "text": "x"}`),
		{Record{Decoded: true}, "plain\ntext\xff"}, {Record{Decoded: true}, ""},
		row(`"a ""quoted"" b",x`, "text", "a"), row(`x,`, "a", "text"), row(`x,y,z`, "text", "a", "text"),
		row(`x,y`, "text", "b"),
		row(`x`, "text", "a"), {recipeRecord, recipeLine},
	}
	for _, body := range []string{`{{.text}}`, `{{.a}}: {{.text}}{{/* a comment */}} {{- .a}}`, "{{.text}}\n",
		`{{.title}}`,
		`{{.ingredients}}`, "{{.text}}" + strings.Repeat("{{.a}}", 600)} {
		w := newWorker(t, FormatOptions{Template: body})
		if w.f.template.direct == nil {
			t.Fatalf("%s has no direct form", body)
		}
		general := newWorker(t, FormatOptions{Template: body})
		general.f.template.direct = nil
		for _, r := range records {
			got, replaced, err := format(w, r.of, r.data)
			want, wantReplaced, wantErr := format(general, r.of, r.data)
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Errorf("%.60s, %.60s: %v, want %v", body, r.data, err, wantErr)
			} else if err == nil && (got != want || replaced != wantReplaced) {
				t.Errorf("%.60s, %.60s: %q, %d; want %q, %d", body, r.data, got, replaced, want, wantReplaced)
			}
		}
	}
	for _, body := range []string{`{{.a.b}}`, `{{trim .a}}`, `{{.a | html}}`, `{{$x := .a}}{{$x}}`, `{{.}}`,
		`{{if .a}}{{end}}`, `{{define "prompt"}}{{.a}}{{end}}{{define "target"}}{{.a}}{{end}}`} {
		if w := newWorker(t, FormatOptions{Template: body}); w.f.template.direct != nil {
			t.Errorf("%s has a direct form", body)
		}
	}
}
