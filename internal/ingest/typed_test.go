package ingest

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// TestTypedColumns: what columns store as JSON is JSON for fields, conditions and templates; the members that one
// schema gave to the structs of conversations are left out, and counted.
func TestTypedColumns(t *testing.T) {
	for _, name := range []string{"plain.parquet", "plain.arrow"} {
		path := filepath.Join("source", "columnar", "testdata", "typed", name)
		text := func(settings option.Settings, want ...string) {
			t.Helper()
			if settings.Template != "" {
				file := filepath.Join(t.TempDir(), "template")
				put(t, file, []byte(settings.Template))
				settings.Template = file
			}
			settings.Sources = []string{path}
			p, err := Preview(t.Context(), option.Options{Out: "data", Settings: settings,
				Resources: option.Resources{FS: shardtest.New(), LoadedTokenizer: small()}}, 3)
			if err != nil {
				t.Fatal(name, err)
			}
			var got []string
			for _, d := range p.Inputs[0].Documents {
				if len(d.Examples) > 0 {
					got = append(got, small().Decode(d.Examples[0].InputIDs))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		skip := option.SkipBadRecord
		text(option.Settings{OnBadRecord: skip}, `a "word"`)
		text(option.Settings{OnBadRecord: skip, TextField: "meta.lang"}, "en")
		text(option.Settings{OnBadRecord: skip, TextField: "meta.lang", Filter: filter.Options{Where: []string{"meta.lang=en"}}}, "en")
		text(option.Settings{Template: "{{ day }} {{ n }}{% if at %} {{ at }}{% endif %}", OnBadRecord: skip},
			"1969-12-30 1e+16 2020-01-05T03:00:00Z", "2021-02-06 -3.0")
		text(option.Settings{Template: "{{ n }}", Filter: filter.Options{Where: []string{"day=2021-02-06"}}}, "-3.0")

		o := option.Options{Out: "data", Resources: option.Resources{FS: shardtest.New(), LoadedTokenizer: small()},
			Settings: option.Settings{Sources: []string{path}, Format: source.Chat, OnBadRecord: skip}}
		o.ChatTemplate = filepath.Join(t.TempDir(), "chat.jinja")
		put(t, o.ChatTemplate, []byte("{% for m in messages %}{{ m.role }}: {{ m.content or '' }}{{ (m.tool_calls or []) | tojson }}{% endfor %}"))
		if s := mustBuild(t, o); s.ColumnNulls != 1 || s.Splits[0].Examples != 1 {
			t.Errorf("%s: %s nulls left out, %+v", name, fmt.Sprint(s.ColumnNulls), s.Counts)
		}
	}
}
