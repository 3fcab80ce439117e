package ingest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"golang.org/x/text/encoding/charmap"
)

// What text in another encoding is likely to be is a warning of its own, with the line that converts it.
func TestOtherEncodingsAreNamed(t *testing.T) {
	latin := func(s string) string { return must(charmap.ISO8859_1.NewEncoder().String(s)) }
	windows := func(s string) string { return must(charmap.Windows1252.NewEncoder().String(s)) }
	cyrillic := func(s string) string { return must(charmap.Windows1251.NewEncoder().String(s)) }
	french := strings.Repeat("Café crème à la carte, naïve façade déjà vu.\n", 20)
	for _, c := range []struct{ name, data, want, never string }{
		{"a b.txt", latin(french), "looks like Latin-1", "1252"},
		{"a b.txt", latin(french), "`iconv -f LATIN1 -t UTF-8 'DIR/a b.txt' > 'DIR/a b.utf8.txt'`", ""},
		{"german.jsonl", latin(strings.Repeat("{\"text\":\"Größe über Maß\"}\n", 9)), "-f LATIN1", ""},
		{"quotes.csv", windows("text,n\n" + strings.Repeat("“déjà” – vu,1\n", 9)), "-f WINDOWS-1252", "Latin-1"},
		{"ru.txt", cyrillic(strings.Repeat("Привет всем\n", 9)), "iconv -f ENCODING", "looks like"},
		{"cut.txt", french + "cut \xc3\n", "that became U+FFFD: 1, the first in DIR/cut.txt, row 21", "looks like"},
		{"utf8.txt", french, "", "iconv"},
		{"half.jsonl", `{"text":"cut \ud83d"}` + "\n", "halves of surrogate pairs, such as \\ud83d", "iconv"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		put(t, path, []byte(c.data))
		s := mustBuild(t, option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
			Settings:  option.Settings{Sources: []string{path}}})
		got := strings.ReplaceAll(fault.Join(s.Warnings, "\n").String(), filepath.Dir(path), "DIR")
		if !strings.Contains(got, c.want) || c.never != "" && strings.Contains(got, c.never) {
			t.Errorf("%s: %q; want %q and not %q", c.name, got, c.want, c.never)
		}
	}
}

// The summary says how long the lines of text are, and how a file is taken whole; not where lines were
// asked for.
func TestLinesAreTold(t *testing.T) {
	dir := t.TempDir()
	wrapped := strings.Repeat("This is a line that was broken at\nsome width and goes on here until\nit ends. And one more.\n\n", 9)
	put(t, filepath.Join(dir, "w.txt"), []byte(wrapped))
	put(t, filepath.Join(dir, "p.txt"), []byte(strings.Repeat("One sentence on a line.\n", 30)))
	notes := func(o option.Options, names ...string) string {
		for _, name := range names {
			o.Sources = append(o.Sources, filepath.Join(dir, name))
		}
		o.Out, o.LoadedTokenizer, o.FS = "data", gpt2(), shardtest.New()
		return strings.ReplaceAll(fault.Join(mustBuild(t, o).Notes, "\n").String(), dir, "DIR")
	}
	if got := notes(option.Options{}, "w.txt", "p.txt"); !strings.Contains(got,
		"a line of text is a document: 6.6 tokens, 26 bytes") ||
		!strings.Contains(got, "`format` document makes one of a whole file") {
		t.Error(got)
	}
	if got := notes(option.Options{Settings: option.Settings{Format: "text"}}, "w.txt"); strings.Contains(got,
		"line of text") {
		t.Error(got)
	}
}

// A dataset that was built in parts says the same about its lines.
func TestLinesOfPartsAreTold(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("This is a line that was broken at\nsome width and goes on here until\nit ends.\n\n", 300)
	put(t, filepath.Join(dir, "w.txt"), []byte(text))
	put(t, filepath.Join(dir, "x.txt"), []byte(text))
	o := option.Options{Settings: option.Settings{Sources: []string{dir}},
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardfile.OS()},
		Out:       filepath.Join(dir, "whole")}
	lines := func(notes []fault.Text) (out string) {
		for _, note := range fault.All(notes, nil) {
			if strings.Contains(note, "line") {
				out += note + "\n"
			}
		}
		return out
	}
	whole := lines(mustBuild(t, o).Notes)
	out := t.TempDir()
	buildParts(t, planned(t, o, 3), out)
	merged := must(merge.Run(t.Context(), merge.Options{Dir: out}))
	if got := lines(merged.Notes); got != whole || !strings.Contains(got, "a line of text is a document") {
		t.Errorf("%s, whole %s", got, whole)
	}
}
