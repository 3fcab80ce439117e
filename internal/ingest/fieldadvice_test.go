package ingest

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// tableOf is an Arrow stream of one row of text in columns of these names.
func tableOf(t *testing.T, names ...string) string {
	t.Helper()
	var fields []arrow.Field
	for _, name := range names {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String})
	}
	schema := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range names {
		b.Field(i).(*array.StringBuilder).Append("some words")
	}
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A record without the field of the text is answered with what makes of it what it is for, and that
// works: never with half of a pair, nor with a line of a table as a name.
func TestAdviceOnFields(t *testing.T) {
	const skip, takes = "on-bad-record", "take it with"
	with := func(change func(o *option.Options)) func(o *option.Options) { return change }
	pairs := func(prompt, target string) func(o *option.Options) {
		return func(o *option.Options) { o.CausalPairs, o.Prompt, o.Target = true, prompt, target }
	}
	for _, c := range []struct {
		name, data string
		want       []string
		never      []string
		follow     func(o *option.Options) // nil for what needs another tokenizer
	}{
		{"a.jsonl", `{"id":1,"body":"some words"}`, []string{"take it with `text-field` body"}, []string{skip},
			with(func(o *option.Options) { o.TextField = "body" })},
		{"late.jsonl", "{\"text\":\"a\"}\n{\"body\":\"b\"}\n",
			[]string{"`text-field` body, if every record is like this; else", "`on-bad-record` skip"}, nil,
			with(func(o *option.Options) { o.OnBadRecord = option.SkipBadRecord })},
		{"inside.jsonl", `{"id":"a longer string than the text","data":{"id":"x","text":"words"}}`,
			[]string{"take it with `text-field` data.text"}, []string{skip},
			with(func(o *option.Options) { o.TextField = "data.text" })},
		{"object.jsonl", `{"text":{"n":1,"body":"words"}}`,
			[]string{"is an object, not a string; take the text inside it with `text-field` text.body"}, nil,
			with(func(o *option.Options) { o.TextField = "text.body" })},
		{"odd.jsonl", `{"a.b":{"text":"words"}}`, []string{"name the field of the text"}, []string{"looks like"}, nil},
		{"numbers.jsonl", `{"text":{"n":1}}`, []string{"is an object, not a string; make the text of it with `template`"}, nil, nil},
		{"null.jsonl", `{"text":null}`, []string{"is null, not a string; fix the record"}, nil, nil},
		{"n.jsonl", `{"n":1}`, []string{"`text-field`, or", "`template`"}, []string{skip, "looks like"}, nil},
		{"alpaca.jsonl", `{"instruction":"Add","input":"1 2","output":"A long answer of many words"}`,
			[]string{"`format` chat", "`chat-template`", "`causal-pairs`", `'{{ instruction }}\n{{ input }}\n'`, "'{{ output }}'",
				"as Alpaca's instruction data has them"},
			[]string{takes, "looks like the text", skip},
			pairs(`{{ instruction }}\n{{ input }}\n`, "{{ output }}")},
		{"prompt.jsonl", `{"prompt":"Why?","response":"Because."}`, []string{"`format` chat", "`causal-pairs`"},
			[]string{takes, skip}, nil},
		{"squad.jsonl", `{"question":"Why?","answers":{"answer_start":[1],"url":"x","spans":[{"is":"no"}],"text":["Because."]}}`,
			[]string{"`causal-pairs`", "'{{ answers.text[0] }}'"}, []string{"{{ answers }}", skip},
			pairs(`{{ question }}\n`, "{{ answers.text[0] }}")},
		{"answer.jsonl", `{"question":"Why?","answer":["Because."]}`, []string{"'{{ answer[0] }}'"}, []string{"`format` chat"},
			pairs(`{{ question }}\n`, "{{ answer[0] }}")},
		{"truth.jsonl", `{"question":"Is it?","answer":true}`, []string{"'{{ answer }}'"}, []string{"`format` chat"},
			pairs(`{{ question }}\n`, "{{ answer }}")},
		{"sides.jsonl", `{"prompt":[{"role":"user","content":"Why?"}],"completion":[{"role":"assistant","content":"Because."}]}`,
			[]string{"`format` chat"}, []string{"`causal-pairs`", skip}, nil},
		{"question.csv", "question,answer\nWhy?,Because.\n", []string{"`format` chat"}, []string{takes, skip}, nil},
		{"qa.jsonl", `{"q":"Why?","a":"Because."}`, []string{"{{ q }}", "`causal-pairs`"},
			[]string{"`format` chat", takes, skip},
			pairs(`{{ q }}\n`, "{{ a }}")},
		{"case.jsonl", `{"My Id":1,"Question":"Why?","Answer":"Because."}`, []string{"{{ Question }}"},
			[]string{"`format` chat", takes}, nil},
		{"dpo.jsonl", `{"prompt":"Why?","chosen":"Because.","rejected":"No."}`, []string{"`format` chat"},
			[]string{takes}, nil},
		{"sharegpt.json", `[{"id":1,"conversations":[{"from":"human","value":"Why?"},{"from":"gpt","value":"Because."}]}]`,
			[]string{"no chat template", "`chat-template`", "ShareGPT's"}, []string{takes, skip}, nil},
		{"sharegpt.jsonl", `{"conversations":[{"from":"human","value":"Why?"},{"from":"gpt","value":"Because."}]}`,
			[]string{"no chat template", "`chat-template`", "ShareGPT's"}, []string{takes, skip}, nil},
		{"squad.json", `{"version":"2","data":[{"title":"A","paragraphs":[]}]}`, []string{"pass `records` data"},
			[]string{skip, "version with"}, nil},
		{"hashes.jsonl", `{"key":"0001","digest":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",` +
			`"picture":"http://example.org/a/very/long/path/1.jpg","width":"640","content":"0.12345","seen":"2020-01-05 10:00"}`,
			[]string{"name the field of the text"}, []string{takes, "looks like"}, nil},
		{"beside.jsonl", `{"sig":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","caption":"two\nwords"}`,
			[]string{"take it with `text-field` caption"}, nil, with(func(o *option.Options) { o.TextField = "caption" })},
		{"han.jsonl", `{"sig":"9f86d081884c7d659a2feaa0c55ad015","caption":"\u6587\u5b57"}`,
			[]string{"take it with `text-field` caption"}, nil, with(func(o *option.Options) { o.TextField = "caption" })},
		{"hash.arrow", tableOf(t, "sha256"), []string{"take one with `text-field`"}, []string{"if that is the text"}, nil},
		{"coco.json", `{"images":[{"id":1}],"notes":[{"text":"a"}]}`,
			[]string{"pass `records` notes"},
			[]string{skip}, with(func(o *option.Options) { o.Records = "notes" })},
		{"paragraphs.json", `{"data":[{"text":1,"paragraphs":[]},{"text":2}],"n":0}`,
			[]string{`field "text" is a number`}, nil, nil},
		{"inner.json", `{"a":{"b":[{"text":"a"}]}}`, []string{"pass `records` a.b"}, nil,
			with(func(o *option.Options) { o.Records = "a.b" })},
		{"deep.json", `{"data":[{"body":"a","paragraphs":[{"text":"a"}]}]}`, []string{"pass `records` data"}, nil,
			with(func(o *option.Options) { o.Records = "data.paragraphs" })},
		{"alpaca.arrow", tableOf(t, "instruction", "input", "output"), []string{"`format` chat", "`causal-pairs`"},
			[]string{"take one with"}, nil},
		{"body.arrow", tableOf(t, "id", "body"),
			[]string{"the columns of text are id, body; take one with `text-field`"},
			nil, with(func(o *option.Options) { o.TextField = "body" })},
		{"bar.csv", "id|Text\n1|some, words\n", []string{"`text-field` Text"}, []string{"id|Text", skip},
			with(func(o *option.Options) { o.TextField = "Text" })},
		{"caret.csv", "id^text\n1^some words\n", []string{"`delimiter` '^'"}, []string{takes, skip},
			with(func(o *option.Options) { o.Delimiter = "^" })},
		{"none.csv", "1,It is a sentence of some words,en\n2,and another,en\n",
			[]string{"`columns` 'column1,text,column3'"},
			[]string{takes, skip},
			with(func(o *option.Options) { o.Columns = []string{"column1", "text", "column3"} })},
		{"codes.csv", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b,It is a sentence.,2\nab,and another,3\n",
			[]string{"`columns` 'column1,text,column3'"}, nil, nil},
		{"pandas.csv", ",0\n0,some words\n", []string{takes}, []string{"`columns`"}, nil},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, c.name), []byte(c.data))
		o := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
			Settings:  option.Settings{Sources: []string{filepath.Join(dir, c.name)}}}
		_, err := Run(context.Background(), o)
		if err == nil {
			t.Fatalf("%s: built", c.name)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %s", c.name, err, want)
			}
		}
		for _, never := range c.never {
			if strings.Contains(err.Error(), never) {
				t.Errorf("%s: %v\nmust not have %s", c.name, err, never)
			}
		}
		if c.follow != nil {
			c.follow(&o)
			mustBuild(t, o)
		}
	}
}

// The first record may be a table by columns or a whole file of records by key: one field of it is not the text of
// all.
func TestAdviceOnWholeTables(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ record, want string }{
		{`{"text":{"0":"a","1":"b"}}`, `to_json(NAME, orient="records", lines=True)`},
		{`{"text":{"body":"a"}}`, "take the text inside it with `text-field` text.body"},
		{`{"x":{"text":"a"},"y":{"text":"b"}}`, "as with `jq -c '.[]'`; else take the text with `text-field` x.text"},
		{`{"x":{"text":"a"},"y":{"n":1}}`, `"x.text" looks like the text; take it with`},
		{"text\n", "a header alone"},
		{tableOf(t, "id", "text", "text"), `several columns are named "text"`},
		{"# a title\ntext,lang\na,en\n", `the only column is "# a title", which may be a line above the header`},
	} {
		name := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		if c.record[0] != '{' {
			name = filepath.Join(dir, fmt.Sprintf("%d.csv", i))
		}
		put(t, name, []byte(c.record))
		_, err := Run(context.Background(), option.Options{Out: filepath.Join(dir, "data"),
			Resources: option.Resources{LoadedTokenizer: small()}, Settings: option.Settings{Sources: []string{name}}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.record, err, c.want)
		}
	}
}

// A source that names its text differently than those before it is added with its own flags.
func TestAdviceOnLaterSources(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.jsonl"), []byte(`{"text":"some words"}`))
	put(t, filepath.Join(dir, "b.jsonl"), []byte(`{"body":"other words"}`))
	o := option.Options{Out: filepath.Join(dir, "data"), Resources: option.Resources{LoadedTokenizer: small()},
		Settings: option.Settings{Sources: []string{filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")}}}
	_, err := Run(context.Background(), o)
	const want = "take it with `text-field` body, if every source is like this; " +
		"else build the others first, and then add this one with `append`"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v\nwant %s", err, want)
	}
	both := o.Sources
	o.Sources = both[:1]
	mustBuild(t, o)
	o.Sources, o.Append, o.TextField = both[1:], true, "body"
	if s := mustBuild(t, o); s.Added != 1 {
		t.Errorf("added %d", s.Added)
	}
}

// So is one of columns: the text of the first is not to be lost for that of a later one.
func TestAdviceOnLaterColumns(t *testing.T) {
	dir := t.TempDir()
	for name, columns := range map[string][]string{"a": {"text"}, "b": {"body"}, "c": {"body", "id"}, "q": {"prompt", "answer"}} {
		put(t, filepath.Join(dir, name+".arrow"), []byte(tableOf(t, columns...)))
	}
	const later = ", if every source is like this; else build the others first, and then add this one with `append` "
	for _, c := range []struct{ sources, want, never string }{
		{"b", "the columns of text are body; if that is the text, take it with `text-field` body", later},
		{"a b", "if that is the text, take it with `text-field` body" + later, ""},
		{"a c", "take one with `text-field`" + later, ""},
		{"a q", "'{{ answer }}'" + later, ""},
	} {
		o := option.Options{Out: filepath.Join(dir, "data"), Resources: option.Resources{LoadedTokenizer: small()}}
		for _, name := range strings.Fields(c.sources) {
			o.Sources = append(o.Sources, filepath.Join(dir, name+".arrow"))
		}
		_, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.never != "" && strings.Contains(err.Error(), c.never) {
			t.Errorf("%s: %v\nwant %s, never %s", c.sources, err, c.want, c.never)
		}
	}
	o := option.Options{Out: filepath.Join(dir, "data"), Resources: option.Resources{LoadedTokenizer: small()}}
	o.Sources = []string{filepath.Join(dir, "a.arrow")}
	mustBuild(t, o)
	o.Sources, o.Append, o.TextField = []string{filepath.Join(dir, "b.arrow")}, true, "body"
	if s := mustBuild(t, o); s.Added == 0 {
		t.Error("nothing was added")
	}
}

// A file in another format than the one that was given is answered with the one that it has: to fix or skip its
// records, or to name their columns, would lose or break all of them. A damaged record is not another format.
func TestAdviceOnFormats(t *testing.T) {
	prose, lines := "It is a sentence.\nAnother one.\n", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n"
	several := "{\"text\": \"a\", \"b\": 1}\n{\"text\": \"b\", \"b\": 2}\n" // no header of a CSV
	nested := "{\"text\": \"a\", \"b\": " + strings.Repeat("[", 1100) + strings.Repeat("]", 1100) + "}\n"
	for _, c := range []struct{ name, data, format, want string }{
		{"a.txt", prose, "jsonl", "it looks like text: leave `format` out"},
		{"a.txt", prose, "json", "it looks like text: leave `format` out"},
		{"a.txt", prose, "parquet", "it looks like text: leave `format` out"},
		{"a.txt", prose, "arrow", "it looks like text: leave `format` out"},
		{"a.txt", prose, "tar", "it does not begin with a header; give its own `format`"},
		{"a.jsonl", lines, "csv", "it looks like jsonl: leave `format` out"},
		{"a.jsonl", several, "csv", "it looks like jsonl: leave `format` out"},
		{"a.arrow", tableOf(t, "id", "text"), "parquet", "of the format arrow, not parquet; leave `format` out"},
		{"a.txt", "{\"text\": \"a\n" + lines, "jsonl", "fix the record"},
		{"a.jsonl", "x" + lines, "jsonl", "fix the record"},
		{"a.csv", "body\nwords\n", "csv", "take it with `text-field` body"},
		{"a.jsonl", "text,label\na,1\nb,2\n", "", "whatever its name says: pass `format` csv"},
		{"a.jsonl", "text,label\na,1\nb,2\n", "jsonl", "whatever its name says: pass `format` csv"},
		{"a.jsonl", "[{\"text\": \"a\"},\n{\"text\": \"b\"}]", "", "whatever its name says: pass `format` json"},
		{"a.csv", lines, "", "whatever its name says: pass `format` jsonl"},
		{"a.csv", several, "", "whatever its name says: pass `format` jsonl"},
		{"a.csv", "\"text\"s,b\na,1\n", "", "fix it, or leave out what cannot be read"},
		{"a.jsonl", prose, "", "fix the record"},
		{"a.jsonl", nested, "", "nested deeper than 1000; fix the record"},
		{"a.jsonl", nested, "json", "nested deeper than 1000; fix the record"},
		{"a.jsonl", "x" + lines, "", "fix the record"},
		{"a.csv", "body\nwords\n", "", "take it with `text-field` body"},
		{".", prose, "parquet", "pass parquet files, or let their format be found"},
	} {
		dir := t.TempDir()
		name := c.name
		if name == "." {
			name = "a.txt"
		}
		put(t, filepath.Join(dir, name), []byte(c.data))
		o := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
			Settings:  option.Settings{Sources: []string{filepath.Join(dir, c.name)}, Format: source.Format(c.format)}}
		_, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: %v\nwant %s", c.name, c.format, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "leave `format` out") {
			o.Format = ""
			mustBuild(t, o)
		}
		if _, format, ok := strings.Cut(c.want, "pass `format` "); ok {
			o.Format = source.Format(format)
			mustBuild(t, o)
		}
	}
}

// A condition on a column that no file has is refused before anything is read, with the nearest name.
func TestWhereOfASchema(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"t.arrow": tableOf(t, "id", "text", "lang"), "u.arrow": tableOf(t, "text", "language"),
		"c.csv": "text,lang\na,en\n", "j.jsonl": "{\"text\":\"a\",\"language\":\"en\"}\n"}
	for name, data := range files {
		put(t, filepath.Join(dir, name), []byte(data))
	}
	for _, c := range []struct {
		sources string
		where   []string
		want    string // "" where it is built, or found out by reading
	}{
		{"t.arrow", []string{"language=en"}, "the columns are id, text, lang; did you mean lang?"},
		{"t.arrow", []string{"lang=some words", "lang=x", "LANG=en"},
			`"LANG"; the columns are id, text, lang; did you mean lang?`},
		{"t.arrow", []string{"meta.lang=en"}, `"meta"; the columns are id, text, lang`},
		{"c.csv", []string{"land=en"}, "the columns are text, lang; did you mean lang?"},
		{"c.csv t.arrow", []string{"score=1"}, `no record has the field "score"; the columns are text, lang`},
		{"t.arrow u.arrow", []string{"language=some words"}, ""},
		{"t.arrow", []string{"lang=some words"}, ""},
		{"c.csv j.jsonl", []string{"language=en"}, ""},
	} {
		o := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
			Settings:  option.Settings{Filter: filter.Options{Where: c.where}}}
		for _, s := range strings.Fields(c.sources) {
			o.Sources = append(o.Sources, filepath.Join(dir, s))
		}
		if c.want == "" {
			mustBuild(t, o)
			continue
		}
		_, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "`where`") {
			t.Errorf("%s where %q: %v; want %s", c.sources, c.where, err, c.want)
		}
	}
}

// A bad record of a source of val beyond the number of train's has its advice, too.
func TestAdviceOnLaterSourcesOfVal(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i, data := range []string{`{"text":"a"}`, `{"text":"b"}`, `{"body":"some words"}`} {
		files = append(files, filepath.Join(dir, fmt.Sprint(i)+".jsonl"))
		put(t, files[i], []byte(data))
	}
	o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings: option.Settings{Sources: files[:1], ValSources: files[1:]}}
	_, err := Run(context.Background(), o)
	if err == nil || !strings.Contains(err.Error(), files[2]) || !strings.Contains(err.Error(), "take it with `text-field` body") {
		t.Errorf("%v", err)
	}
}
