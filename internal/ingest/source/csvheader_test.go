package source

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// White space around the names of columns does not count where names stay different.
func TestCSVHeaderNames(t *testing.T) {
	for header, want := range map[string][]string{
		"id, text ,\tlang":     {"id", "text", "lang"},
		"text, text,a":         {"text", " text", "a"},
		" a,a ,  a":            {"a", "a ", "  a"},
		`id," text "`:          {"id", "text"},
		"id,text, ":            {"id", "text", " "},
		"id;\u00a0text;größe ": {"id", "text", "größe"},
	} {
		got := framed(t, header+"\n"+strings.Repeat("1"+header[strings.IndexAny(header, ",;"):][:1], len(want)-1)+"x\n",
			Options{Format: CSV})
		if len(got) != 1 || !slices.Equal(got[0].Columns, want) {
			t.Errorf("%q: %+v, want %q", header, got, want)
		}
	}
	records, err := readFrom(t, openSet(t, Options{Args: []string{write(t, t.TempDir(), "a.data",
		"id, text\n1,a\n2,b\n")}, Framing: Framing{Fields: []string{"text"}}}), Position{})
	if err != nil || len(records) != 2 || records[0].Format != CSV {
		t.Errorf("%+v, %v", records, err)
	}
}

// A file whose lines end in carriage returns alone is refused by name, instead of being one header.
func TestCSVCarriageReturns(t *testing.T) {
	dir := t.TempDir()
	for name, rows := range map[string]int{"small.csv": 2, "large.csv": 2 << 20} {
		set := openSet(t, Options{Args: []string{write(t, dir, name, "id,text\r"+strings.Repeat("1,a\r", rows))}})
		_, err := readFrom(t, set, Position{})
		if !errors.Is(err, cause.Unsupported) || !strings.Contains(err.Error(), "carriage return") {
			t.Errorf("%s: %v", name, err)
		}
		set.Close()
	}
	set := openSet(t, Options{Args: []string{write(t, dir, "crlf.csv", "id,text\r\n1,a\r\n")}})
	defer set.Close()
	if records, err := readFrom(t, set, Position{}); err != nil || len(records) != 1 {
		t.Errorf("%v, %v", records, err)
	}
}

// A first line that is no header, a header where there should be none, and one that does not tell which column to
// read, are refused: each made texts of names, or read one column of two.
func TestCSVHeadersThatMislead(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		o    Options
		says string
	}{
		"sep":      {"sep=;\ntext;lang\na;en\n", Options{}, "for Excel"},
		"sep,":     {"sep=,\ntext,lang\na,en\n", Options{}, "for Excel"},
		"quoted":   {"\"sep=\t\"\ntext\tlang\na\ten\n", Options{}, "for Excel"},
		"names":    {"text,lang\na,en\n", Options{Framing: Framing{Columns: []string{"text", "lang"}}}, "leave `columns` out"},
		"case":     {"Text;Lang\na;en\n", Options{Framing: Framing{Columns: []string{"text", "lang"}}}, "leave `columns` out"},
		"order":    {"lang,text\na,en\n", Options{Framing: Framing{Columns: []string{"text", "lang"}}}, "leave `columns` out"},
		"records":  {"text,en\na,en\n", Options{Framing: Framing{Columns: []string{"text", "lang"}}}, ""},
		"twice":    {"text,id,text\na,1,b\n", Options{Framing: Framing{Fields: []string{"text"}}}, `named "text"`},
		"unwanted": {"id,text,id,,\n1,a,2,,\n", Options{Framing: Framing{Fields: []string{"text"}}}, ""},
		"all":      {"id,text,id,,\n1,a,2,,\n", Options{}, `named "id"`},
		"no names": {"a,,\n1,2,3\n", Options{}, ""},
	} {
		c.o.Format, c.o.Args = CSV, []string{write(t, dir, name+".csv", c.text)}
		set := openSet(t, c.o)
		_, err := readFrom(t, set, Position{})
		set.Close()
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, cause.Unsupported) ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	set := openSet(t, Options{Args: []string{write(t, dir, "alone.csv", "text,lang\n")}})
	defer set.Close()
	if _, err := readFrom(t, set, Position{}); err == nil || !strings.Contains(err.Error(), "a header alone") {
		t.Error(err)
	}
}

// Where archives hold nothing to read, the error says what they hold.
func TestNothingInArchive(t *testing.T) {
	dir := t.TempDir()
	packed := write(t, dir, "a.tar", tarred(t, file{"a.txt.gz", gzipped("x\n")}, file{"b.txt", "->"}))
	blank := write(t, dir, "b.txt", "\n")
	for want, args := range map[string][]string{
		"none of its files is read: skipped 1 archive (a.txt.gz), 1 link (b.txt)":            {packed},
		"it and 1 other are empty or blank, or archives whose files are not read: skipped 2": {packed, blank},
		"it and 2 others are empty or blank": {
			blank, write(t, dir, "c.txt", "\n"), write(t, dir, "d.txt", " \n")},
	} {
		set := openSet(t, Options{Args: args})
		_, err := readFrom(t, set, Position{})
		set.Close()
		if !errors.Is(err, cause.NoDocuments) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
