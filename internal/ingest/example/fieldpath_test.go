package example

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseFieldPath(t *testing.T) {
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", "[0]", "a.[0]", "a[", "a[]", "a[x]", "a[-1]", "a[+1]",
		"a[0]b", "a[0", strings.Repeat("a.", 70) + "a"} {
		if _, err := ParseFieldPath(bad); !errors.Is(err, ErrUnknownField) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"text", "a.b", "a[0]", "a.b[0].c[12][3]", "日本 語"} {
		if p, err := ParseFieldPath(good); err != nil || p.String() != good {
			t.Errorf("%q: %v, %v", good, p, err)
		}
	}
	for _, bad := range []string{"a,", ",a", "a,,b", "a, a", "a,b[x]", "a|", "|a", "a|a", "b,a|b"} {
		if _, err := ParseFieldPaths(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestFieldPathFind(t *testing.T) {
	const record = `{"a": {"b": [{"c": "one"}, "two", null], "b2": 1}, "a.b": 7, "x": [[1, [2, "three"]]],
		"d": {"k": 1, "k": "last"}, "\u0065": "escaped key", "n": null, "a": {"b": ["late"]}}`
	for _, c := range []struct{ path, want string }{
		{"a.b[0]", `"late"`}, {"a.b[1]", ""}, {"a.b", "7"}, {"x[0][1][1]", `"three"`}, {"x[0][1]", `[2, "three"]`},
		{"d.k", `"last"`}, {"e", `"escaped key"`}, {"n", "null"}, {"n.m", ""}, {"x.y", ""}, {"d[0]", ""}, {"q", ""},
		{"a", `{"b": ["late"]}`},
	} {
		p, err := ParseFieldPath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Find([]byte(record))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.path, got, err, c.want)
		}
	}
	p, _ := ParseFieldPath("a.b[0]")
	for _, bad := range []string{"", "[]", `{"a": {"b": ["x"]}`, `{"a": {"b": ["x" "y"]}}`, `{"a": {"b": ["x"}}`,
		`{"a": {"b"}}`, `{"a": {"b": ["x"]}} 1`, `{"a": {"b": [}}`} {
		if _, err := p.Find([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestTextFieldPaths(t *testing.T) {
	const record = `{"title": "T\u00e9", "text": "body", "empty": "", "none": null, "m": {"l": ["x", 5]}}`
	for _, c := range []struct{ field, want, fails string }{
		{"title,text", "Té\n\nbody", ""},
		{"text , title", "body\n\nTé", ""},
		{"title,empty,none,text", "Té\n\nbody", ""},
		{"none,empty", "", ""},
		{"m.l[0],text", "x\n\nbody", ""},
		{"m.l[0]", "x", ""},
		{"none", "", `field "none" is null, not a string`},
		{"none,m.l[1]", "", `field "m.l[1]" is a number, not a string`},
		{"title,titel", "", `no field "titel"; the record has title, text`},
		{"m.l[2]", "", `no field "m.l[2]"`},
		{"m.x,text", "", `no field "m.x"`},
		{"nosuch|text", "body", ""},
		{"none|empty|m.l[0]|text", "x", ""},
		{"none|nosuch|empty", "", ""},
		{"title,nosuch | text", "Té\n\nbody", ""},
		{"nosuch|none", "", `field "none" is null, not a string`},
		{"nosuch|m.x", "", `no field "nosuch" or "m.x"; the record has title, text`},
		{"m|text", "", `field "m" is an object, not a string`},
	} {
		f, err := NewFormatter(FormatOptions{TextField: c.field})
		if err != nil {
			t.Fatal(err)
		}
		var out Formatted
		err = f.NewWorker().Format(&out, Record{}, []byte(record))
		switch {
		case c.fails == "" && (err != nil || string(out.Prompt) != c.want):
			t.Errorf("%s: %q, %v", c.field, out.Prompt, err)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v", c.field, err)
		}
	}
	f, _ := NewFormatter(FormatOptions{TextField: "a,b"})
	var out Formatted
	if err := f.NewWorker().Format(&out, Record{}, []byte(`{"a": null, "b": null}`)); !errors.Is(err,
		ErrUnknownField) {
		t.Errorf("all null: %v", err)
	}
}

func TestTextColumnsJoined(t *testing.T) {
	columns := []string{"id", "title", "a.b", "text"}
	for _, c := range []struct{ field, want string }{{"title,text", "T\n\nbody"}, {"a.b", "dotted"},
		{"title,id,text", "T\n\nbody"}, {"nosuch|id|title", "T"}, {"title,x|text", "T\n\nbody"}, {"id|x", ""}} {
		f, _ := NewFormatter(FormatOptions{TextField: c.field})
		var out Formatted
		err := f.NewWorker().Format(&out, Record{Columns: columns, Comma: ','}, []byte(",T,dotted,body"))
		if err != nil || string(out.Prompt) != c.want {
			t.Errorf("%s: %q, %v", c.field, out.Prompt, err)
		}
	}
	f, _ := NewFormatter(FormatOptions{TextField: "title,body"})
	var out Formatted
	if err := f.NewWorker().Format(&out, Record{Columns: columns, Comma: ','},
		[]byte(",T,dotted,body")); !errors.Is(err, ErrUnknownField) {
		t.Errorf("a missing column: %v", err)
	}
}

// TestOneOfSeveralFields: the text is that of the first field with a value, which is named, and all of them are used.
func TestOneOfSeveralFields(t *testing.T) {
	f, err := NewFormatter(FormatOptions{TextField: "text|meta.content|body"})
	if err != nil {
		t.Fatal(err)
	}
	if f.StreamedField() != "" || !slices.Equal(f.AnyOf(), []string{"text", "meta.content", "meta", "body"}) {
		t.Errorf("streamed %q, any of %q", f.StreamedField(), f.AnyOf())
	}
	u := NewUnused(f.AlwaysUsed())
	w := f.NewWorker().Note(u)
	for _, c := range []struct{ record, text, field string }{
		{`{"body": "last", "text": "first", "id": "x y"}`, "first", "text"},
		{`{"body": "last", "meta": {"content": "inside"}}`, "inside", "meta.content"},
		{`{"text": null, "body": "last", "other": "unused words"}`, "last", "body"},
		{`{"text|meta.content|body": "by its whole name", "text": "no"}`, "by its whole name", "text"},
	} {
		var out Formatted
		if err := w.Format(&out, Record{}, []byte(c.record)); err != nil || string(out.Prompt) != c.text || out.Field != c.field {
			t.Errorf("%s: %q of %q, %v", c.record, out.Prompt, out.Field, err)
		}
		u.Numbers()
	}
	if !slices.Equal(u.Names(), []string{"other"}) {
		t.Errorf("unused are %q", u.Names())
	}
}
