package source

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestJSONValues(t *testing.T) {
	for text, want := range map[string][]string{
		"[]":        nil,
		" [ ] ":     nil,
		`[{"a":1}]`: {`{"a":1}`},
		"[\n  {\n    \"a\": [1, {}]\n  }\n, {} ]\n": {"{\n    \"a\": [1, {}]\n  }", "{}"},
		"{\"a\":1}{\"b\":2}\n[{}]":                  {`{"a":1}`, `{"b":2}`, "{}"},
		`["one","t\u0077o \"q\"\\"]`:                {"one", `two "q"\`},
		`[{"a":"]},\\\"[{"},{}]`:                    {`{"a":"]},\\\"[{"}`, "{}"},
		`[1,{},null,[2],{}]`:                        {"!", "{}", "!", "!", "{}"},
		`[{"a" 1},{}]`:                              {`{"a" 1}`, "{}"}, // the workers find it
		`[{},{"a":"cut`:                             {"{}", "!"},
		`[{},`:                                      {"{}", "!"},
		`[{}`:                                       {"{}", "!"},
		`{"a":1`:                                    {"!"},
		`[{"a":"0123456789012345678901234567890123456789"},{}]`: {"!", "{}"},
	} {
		o := Options{Format: JSON, Framing: Framing{MaxRecordBytes: 40}}
		var got []string
		for _, r := range framed(t, text, o) {
			if r.Err != nil {
				r.data = "!"
			}
			got = append(got, r.data)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, bad := range []string{"[{}{}]", "[{},]", "{},{}", "[,]", "]", "[{}]]", "}"} {
		set := openSet(t, Options{Args: []string{"-"}, Places: Places{Stdin: strings.NewReader(bad)}, Format: JSON})
		if got, err := readFrom(t, set, Position{}); err == nil {
			t.Errorf("%s: %q", bad, dataOf(got))
		}
	}
}

// The elements are those that encoding/json finds, whatever surrounds them.
func TestJSONArrayEqualsDecoded(t *testing.T) {
	var values []map[string]any
	for i := range 300 {
		values = append(values, map[string]any{"text": fmt.Sprintf("text %d \"quoted\" \\ %s", i,
			strings.Repeat("{[\n", i%7)), "n": []any{i, map[string]any{"k": nil}}})
	}
	plain, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	indented, err := json.MarshalIndent(values, " ", "\t")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(plain), string(indented)} {
		got := framed(t, text, Options{Format: JSON})
		if len(got) != len(values) {
			t.Fatalf("%d of %d records", len(got), len(values))
		}
		for i, r := range got {
			var v map[string]any
			if err := json.Unmarshal([]byte(r.data), &v); err != nil || v["text"] != values[i]["text"] {
				t.Fatalf("record %d: %s", i, r.data)
			}
		}
	}
}

func TestCSVWithoutHeader(t *testing.T) {
	for text, comma := range map[string]byte{"1,a\n2,\"b, c\"\n": ',', "1\ta, b\n2\tc\n": '\t', "1;a,b\n2;c\n": ';',
		"1|a\n2|b\n": '|'} {
		o := Options{Format: CSV, Framing: Framing{Columns: []string{"id", "text"}}}
		if comma == '|' {
			o.Delimiter = comma
		}
		got := framed(t, text, o)
		if len(got) != 2 || got[0].Comma != comma || !slices.Equal(got[1].Columns, o.Columns) || got[0].Row != 1 {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := framed(t, "id;te,xt\n1;a\n", Options{Format: CSV, Framing: Framing{Delimiter: ','}}); len(got) != 1 ||
		len(got[0].Columns) != 2 || got[0].Columns[0] != "id;te" {
		t.Errorf("a delimiter that is given: %+v", got)
	}
}

func FuzzJSONValues(f *testing.F) {
	fuzzFraming(f, []Format{JSON}, `[{"text":"a"},{"b":[1,{"c":"]}"}]}]`, `{"a":1} {"b":"\u00e9\\"}`, `["one","two`,
		"[\n1,null,true]")
}

func FuzzTar(f *testing.F) {
	files, _ := webdataset()
	fuzzFraming(f, []Format{Auto, Tar, Text}, tarred(f, files[:6]...), tarred(f, files[6:]...),
		tarred(f, files...)[:1700])
}
