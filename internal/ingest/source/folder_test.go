//go:build unix

package source

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// mixed makes a folder of text and much else.
func mixed(t *testing.T) string {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"a.txt": "a\n", "b.txt": "b\n", "sub/c.md": "c\n", "sub/deep/d.txt": "d\n",
		"zero.txt": "one\x00zero byte among text\n",
		"p.png":    pngHead, "sub/x.jpg": "\xff\xd8\xff\xe0\x00\x10JFIF", "t.rar": "Rar!\x1a\x07 and more",
		"z.7z": "7z\xbc\xaf\x27\x1c....", "z.gz": gzipped("7z\xbc\xaf\x27\x1c"),
		"d.pdf": "%PDF-1.7 some text in it\n", "prog": "\x7fELF\x02\x01", "q.h5": "\x89HDF\r\n\x1a\n",
		"blob":      strings.Repeat("\x01\x00ab", 50),
		"README.md": "read me\n", "LICENSE": "license\n", ".hidden.txt": "h\n", ".git/config": "x\n", "_SUCCESS": "",
		"a.txt.md5": "0\n",
	} {
		write(t, dir, name, data)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "sub", "round")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMixedFolder(t *testing.T) {
	dir := mixed(t)
	const plain = "a.txt b.txt sub/c.md sub/deep/d.txt zero.txt"
	for _, c := range []struct {
		args             []string
		include, exclude []string
		want             string
	}{
		{[]string{""}, nil, nil, plain},
		{[]string{"**"}, nil, nil, plain},
		{[]string{"*"}, nil, nil, "a.txt b.txt sub/c.md sub/deep/d.txt zero.txt"},
		// a folder among what matches gives its files
		{[]string{"**/*.txt"}, nil, nil, "a.txt b.txt sub/deep/d.txt zero.txt"},
		{[]string{"{a,b}.txt"}, nil, nil, "a.txt b.txt"},
		{[]string{"sub/**/*.txt"}, nil, nil, "sub/deep/d.txt"},
		{[]string{"s*/c.*"}, nil, nil, "sub/c.md"},
		{[]string{"README*"}, nil, nil, "README.md"},
		{[]string{""}, []string{"*.txt"}, nil, "a.txt b.txt sub/deep/d.txt zero.txt"},
		{[]string{""}, []string{"*.txt"}, []string{"b*", "deep"}, "a.txt zero.txt"},
		{[]string{""}, []string{"sub"}, nil, "sub/c.md sub/deep/d.txt"},
		{[]string{""}, []string{"sub/*.md"}, nil, "sub/c.md"},
		{[]string{""}, []string{"README*", ".hid*"}, nil, ".hidden.txt README.md"},
		{[]string{""}, nil, []string{"*.txt"}, "sub/c.md"},
		{[]string{"**/*.txt"}, nil, []string{"/a.txt", "sub/"}, "b.txt zero.txt"},
		{[]string{"sub/deep", "sub"}, nil, nil, "sub/deep/d.txt sub/c.md sub/deep/d.txt"},
	} {
		o := Options{Include: c.include, Exclude: c.exclude}
		for _, a := range c.args {
			o.Args = append(o.Args, filepath.Join(dir, a))
		}
		var got []string
		for _, in := range inputsOf(t, openSet(t, o)) {
			got = append(got, strings.TrimPrefix(in.URI, dir+"/"))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q, include %q, exclude %q: %s; want %s", c.args, c.include, c.exclude, s, c.want)
		}
	}
}

// Files that are skipped are counted and named.
func TestSkippedFilesAreTold(t *testing.T) {
	dir := mixed(t)
	notes := fault.Join(openSet(t, Options{Args: []string{dir}}).Notes(), "\n").String()
	for _, want := range []string{"2 images (p.png, …)", "3 archives (t.rar, …)", "1 program (prog)", "1 PDF (d.pdf)",
		"1 file of a format that is not read (q.h5)",
		"1 binary file (blob)", "3 files that describe the data (", "3 hidden ones (",
		"1 device, socket or pipe (fifo)", "1 link to a folder (round)"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is missing in: %s", want, notes)
		}
	}
	for _, o := range []Options{
		{Args: []string{dir}, Include: []string{"*.png"}}, {Args: []string{dir}, Exclude: []string{"*"}},
		{Args: []string{filepath.Join(dir, "*.7z")}},
		{Args: []string{t.TempDir()}},
	} {
		_, err := Open(context.Background(), o)
		if !errors.Is(err, cause.NoDocuments) || !errors.Is(err, cause.Usage) || len(o.Include) > 0 &&
			!strings.Contains(err.Error(), "1 image (p.png)") {
			t.Errorf("%v: %v", o.Args, err)
		}
	}
}

// The dataset's own folder is not a source, and a link that leads nowhere, or round, is an error that names it.
func TestFolderTraps(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.txt", "a\n")
	out := filepath.Dir(write(t, dir, "data/tokenizer.txt", "not a source\n"))
	set := openSet(t, Options{Args: []string{dir}, Places: Places{OutDir: out}})
	if set.Len() != 1 || !strings.Contains(fault.Join(set.Notes(), "").String(), "folder of the dataset") {
		t.Errorf("%d inputs, %q", set.Len(), set.Notes())
	}
	for name, target := range map[string]string{"gone.txt": "nowhere", "round.txt": "round.txt"} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		_, err := Open(context.Background(), Options{Args: []string{dir}})
		if err == nil || !strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), "leads nowhere") ||
			!strings.Contains(err.Error(), "leave it out with `exclude`") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(context.Background(), Options{Args: []string{dir}, Exclude: []string{name}}); err != nil {
			t.Error(err)
		}
		os.Remove(link)
	}
	linked := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	if set := openSet(t, Options{Args: []string{linked}}); set.Len() != 2 {
		t.Errorf("a link to a folder that is named itself gives %d files", set.Len())
	}
}

// Text whose lines end in carriage returns alone is one line, which a note says.
func TestLinesWithoutLineFeeds(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]bool{"a\rb\r": true, "a\rb": true, "a\r": false, "a": false, "a\r\nb\r\n": false, "a\rb\n": false} {
		notes := fault.Join(openSet(t, Options{Args: []string{write(t, dir, "a.txt", text)}}).Notes(), "\n").String()
		if strings.Contains(notes, "only carriage returns end their lines: 1 input, such as "+dir) != want {
			t.Errorf("%q: the notes are %q", text, notes)
		}
	}
}

func TestGivenTwice(t *testing.T) {
	dir := t.TempDir()
	a := write(t, dir, "a.txt", "a\n")
	write(t, dir, "b.txt", "b\n")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	hard := filepath.Join(t.TempDir(), "hard.txt")
	if err := os.Link(a, hard); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{a, a}, "given twice"}, {[]string{a, hard}, hard + " is the same file as " + a}, {[]string{dir, a}, "lies in " + dir}, {[]string{a, dir}, "lies in " + dir},
		{[]string{dir, dir + "/"}, "given twice"}, {[]string{a, dir + "/*.txt"}, "matches " + dir + "/*.txt, which is given too"},
		{[]string{a, link + "/a.txt"}, "given twice"}, {[]string{link, a}, "lies in " + dir},
		{[]string{dir + "/*.txt", dir + "/b*"}, "matches " + dir + "/b.txt, as " + dir + "/*.txt does"},
		{[]string{dir + "/a*", dir + "/b*"}, ""},
		{[]string{dir + "/**/a.{txt,md}", dir + "/./a.txt"}, "matches " + dir}, {[]string{a, dir + "/b.*"}, ""},
		{[]string{"synth://wikitext?docs=1", "synth://wikitext?docs=1"}, "given twice"}, {[]string{a}, ""},
		{[]string{a, write(t, dir, "b.txt", "b\n")}, ""},
	} {
		notes := fault.Join(openSet(t, Options{Args: c.args}).Notes(), "\n").String()
		if (c.want == "") != (notes == "") || !strings.Contains(notes, c.want) {
			t.Errorf("%v: %q, want %q", c.args, notes, c.want)
		}
	}
}

// TestFolderOfHubCache: its blobs are the files of its snapshots.
func TestFolderOfHubCache(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "blobs/0", "{\"text\": \"a\"}\n")
	write(t, dir, "snapshots/abc/a.jsonl", "{\"text\": \"a\"}\n")
	openSet(t, Options{Args: []string{dir}})
	write(t, dir, "refs/main", "abc")
	openSet(t, Options{Args: []string{filepath.Join(dir, "snapshots")}})
	_, err := Open(context.Background(), Options{Args: []string{dir}})
	if !errors.Is(err, cause.Usage) || !strings.Contains(err.Error(), filepath.Join(dir, "snapshots", "abc")) {
		t.Error(err)
	}
}

// TestPackedToo: a file beside what it was unpacked to is named, and no other.
func TestPackedToo(t *testing.T) {
	for names, want := range map[string]string{"a.jsonl a.jsonl.gz": "a.jsonl.gz is read", "a.jsonl b.jsonl.gz": "",
		"d/x.jsonl d.zip": "d.zip is read", "d/x.jsonl e.zip": "", "a.jsonl a.jsonl.gz b.jsonl b.jsonl.gz c.jsonl c.jsonl.gz": "a.jsonl.gz, like others up to c.jsonl.gz is read"} {
		dir := t.TempDir()
		for name := range strings.FieldsSeq(names) {
			data := "{\"text\": \"a\"}\n"
			switch filepath.Ext(name) {
			case ".gz":
				data = gzipped(data)
			case ".zip":
				data = zipped(t, zip.Deflate, file{"x.jsonl", data})
			}
			write(t, dir, name, data)
		}
		notes := fault.Join(openSet(t, Options{Args: []string{dir}}).Notes(), "\n").String()
		if strings.Contains(notes, "unpacked") != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%s: %q, want %q", names, notes, want)
		}
	}
}

// TestSplitsOfNames: where the names of files that are read stand for what a model is trained on and for what it is
// tested with, a note says so.
func TestSplitsOfNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/train.jsonl", "a/test.jsonl", "b/data/train-00000-of-00001.jsonl.gz", "b/data/dev-1.jsonl.gz",
		"c/train/1.txt", "c/val/1.txt", "d/test.jsonl", "d/dev.jsonl", "e/train.jsonl", "e/latest.jsonl", "e/test/x_test.go",
		"dev/f/train.txt"} {
		data := "{\"text\": \"a\"}\n"
		if strings.HasSuffix(name, ".gz") {
			data = gzipped(data)
		}
		write(t, dir, name, data)
	}
	for _, c := range []struct{ args, exclude, want string }{
		{"a", "", "1 of test, 1 of train"}, {"a", "test*", ""}, {"a/*", "", "1 of test, 1 of train"}, {"a/train*", "", ""},
		{"a/test.jsonl a/train.jsonl", "", "1 of test, 1 of train"}, {"b", "", "1 of train, 1 of validation"},
		{"c", "", "1 of train, 1 of validation"}, {"d", "", ""}, {"e", "", ""}, {"dev/f", "", ""}, {"dev/f/train.txt", "", ""},
	} {
		o := Options{}
		for _, arg := range strings.Fields(c.args) {
			o.Args = append(o.Args, filepath.Join(dir, arg))
		}
		if c.exclude != "" {
			o.Exclude = []string{c.exclude}
		}
		notes := fault.Join(openSet(t, o).Notes(), "\n").String()
		if said := strings.Contains(notes, "splits"); said != (c.want != "") || !strings.Contains(notes, c.want) {
			t.Errorf("%s: %q, want %q", c.args, notes, c.want)
		}
	}
}
