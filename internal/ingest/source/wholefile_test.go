package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// Code and markup are documents as a whole by their names, whatever their compression, and a text that is
// a script or a page by how it begins.
func TestWholeFiles(t *testing.T) {
	const code, prose = "if x {\n\treturn;\n}\n", "This is one.\nThis is another.\n"
	for _, c := range []struct {
		name, text string
		want       Format
	}{
		{"a.py", code, Document}, {"dir/A.PY", code, Document}, {"a.go.gz", code, Document}, {"a.rst", prose, Document},
		{"a.md", prose, Document}, {"a.tex", prose, Document}, {"Makefile", "all:\n\tgo\n", Document},
		{"CMakeLists.txt", "project(x)\n", Document}, {"https://x/a.rs?raw=1", code, Document},
		{"a.html", prose, Document}, {"page", "<!DOCTYPE html>\n<html>\n", Document},
		{"run", "#!/bin/sh\nls\n", Document},
		{"a.py", "{\"text\": 1}\n", Document}, {"a.md", "id,text\n1,a\n", Document},
		{"notes.txt", prose, Text}, {"notes", prose, Text}, {"a.log", prose, Text}, {"a.old", prose, Text},
		{"pages", "<html>a</html>\n<html>b</html>\n", Text}, {"https://x/a?b=c.rs", prose, Text},
		{"train.cs", prose, Text}, {"train.sv", prose, Text}, {"a.cs", code, Document},
		{"a.pl", "print 1;\n", Document},
		{"a.jl", "function f(x)\n  x\nend\n", Document}, {"a.jl", "{\"text\": \"a\"}\n", JSONL},
		{"a.jsonl", "{}\n", JSONL}, {"a.ipynb", "{\n \"cells\": []\n}\n", JSON},
	} {
		if got := detectFormat(c.name, []byte(c.text), true, []string{"text"}); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.name, c.text, got, c.want)
		}
	}
}

// The same files give the same documents from a folder, a tar and a zip archive, alone and together.
func TestFolderIsItsArchive(t *testing.T) {
	files := []file{{"p/a.py", "def f():\n    return 1\n"}, {"p/q/b.md", "# T\n\ntext\n"},
		{"p/c.txt", "one\ntwo\n\nthree\n"}, {"z.jsonl", "{\"text\":\"four\"}\n"}, {"w.txt", "\n = A = \n\n text\n"},
		{"t.csv", "id|text\n1|five\n"}, {"big.html", "<p>\n" + strings.Repeat("a line\n", 9000)}}
	texts := func(names ...string) (out []string) {
		for _, r := range readAll(t, Options{Args: names, Framing: Framing{TextField: "text", Fields: []string{"text"}}}) {
			out = append(out, fmt.Sprint(r.Format, " ", r.data))
		}
		slices.Sort(out)
		return out
	}
	for n := 1; n <= len(files); n += len(files) - 1 {
		dir := t.TempDir()
		for _, f := range files[:n] {
			path := filepath.Join(dir, "folder", f.name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "folder/"+f.name, f.data)
		}
		want := texts(filepath.Join(dir, "folder"))
		reversed := slices.Clone(files[:n])
		slices.Reverse(reversed)
		for name, data := range map[string]string{"a.tar": tarred(t, reversed...), "a.zip": zipped(t, 8, files[:n]...),
			"a.tar.gz": gzipped(tarred(t, files[:n]...))} {
			if got := texts(write(t, dir, name, data)); !slices.Equal(got, want) {
				t.Errorf("%d files in %s: %q; the folder gives %q", n, name, got, want)
			}
		}
	}
}

// UTF-16 without a byte order mark is refused with what converts it, and skipped in folders.
func TestUnmarkedUTF16(t *testing.T) {
	dir := t.TempDir()
	for _, big := range []bool{false, true} {
		var text []byte
		for _, b := range []byte("Hello all of you\nand you\n") {
			if big {
				text = append(text, 0, b)
			} else {
				text = append(text, b, 0)
			}
		}
		name := write(t, dir, "a.txt", string(text))
		order := map[bool]string{false: "UTF-16LE", true: "UTF-16BE"}[big]
		_, err := Open(t.Context(), Options{Args: []string{name}})
		want := "`iconv -f " + order + " -t UTF-8 " + name + " > " + strings.TrimSuffix(name, ".txt") + ".utf8.txt`"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
		write(t, dir, "b.jsonl", "{\"text\":\"a\"}\n")
		packed := write(t, t.TempDir(), "a.tar", tarred(t, file{"a.txt", string(text)}, file{"b.jsonl", "{}\n"}))
		if m := lastPosition(t, Options{Args: []string{packed}}).Members; m == nil ||
			!strings.Contains(m.Text, "UTF-16") {
			t.Errorf("%+v", m)
		}
		if notes := fmt.Sprint(openSet(t, Options{Args: []string{dir}}).Notes()); !strings.Contains(notes, "UTF-16") {
			t.Error(notes)
		}
	}
}

// What another version read in another way is not resumed as something else: a file by its format, the
// files of an archive by the rules that found theirs.
func TestOtherDetectionIsNotResumed(t *testing.T) {
	dir := t.TempDir()
	code := write(t, dir, "a.py", "def f():\n    return 1\n")
	archive := write(t, dir, "b.tar", tarred(t, file{"c.txt", "one\ntwo\n"}, file{"d.txt", "three\n"}))
	later := write(t, dir, "e.py", "pass\n")
	for i, old := range []func(at *Position){
		func(at *Position) { at.Known[0].Format = Text },
		func(at *Position) { at.Known[1].Detection = 0 },
		func(at *Position) { at.Known[2].Format = Text }, // not begun
	} {
		set := openSet(t, Options{Args: []string{code, archive, later}})
		all, err := readFrom(t, set, Position{})
		if err != nil || len(all) != 5 {
			t.Fatalf("%d records, %v", len(all), err)
		}
		at := all[1].next // within the archive
		at.Known = slices.Clone(at.Known)
		old(&at)
		_, err = readFrom(t, set, at)
		var changed *cause.ChangedError
		if (i < 2) != errors.As(err, &changed) || i < 2 && !strings.Contains(changed.What, "format") {
			t.Errorf("case %d: %v", i, err)
		}
	}
}
