package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// run surveys paths under a cap of 64 MiB.
func run(t *testing.T, paths ...string) (*Report, error) {
	t.Helper()
	return Run(context.Background(), Options{Paths: paths, Memory: 64 << 20, Each: func(*File) {}})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBucket: a bucket is surveyed as a folder is, and its folders are named whole where they can be.
func TestBucket(t *testing.T) {
	remotetest.EachMemoryBucket(t, func(t *testing.T, _ *remotetest.Server, uri string) {
		store := remote.NewStore(remote.Options{})
		defer store.Close()
		for name, content := range map[string]string{"c/a.jsonl": "{\"text\": \"a b\"}\n{\"text\": \"c\"}\n",
			"c/sub/b.csv": "id,text\n1,d e\n", "c/sub/c.txt": "f\n", "c/bad.jsonl": "{\"text\": \"a\"}\n{\"text\n", "c/e.jsonl": "",
			"c/p.png": "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\x01", 99), "d/x.txt": "other\n"} {
			if _, err := store.Put(t.Context(), uri+"/"+name, strings.NewReader(content), int64(len(content)), remote.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := run(t, uri+"/c/")
		if fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%v", err)
		}
		got := map[string]int64{}
		for _, f := range r.Files {
			got[strings.TrimPrefix(f.URI, uri+"/c/")] = f.Records
		}
		if want := map[string]int64{"a.jsonl": 2, "bad.jsonl": 1, "e.jsonl": 0, "sub/b.csv": 1, "sub/c.txt": 1}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if len(r.Commands) != 2 || r.Commands[0].Command != "dsload build "+uri+"/c/a.jsonl "+uri+"/c/sub/ --out c-data" {
			t.Errorf("%+v", r.Commands)
		}
	})
}

// TestSourcesLeadToTheGroup: in folders of any shape the sources of a command lead to its files, and to no others that
// hold something.
func TestSourcesLeadToTheGroup(t *testing.T) {
	rnd := effort.Random(t)
	for range effort.Of(30, 200, 1000) {
		t.Chdir(t.TempDir())
		kinds := []string{"{\"text\": \"a b\"}\n", "{\"text\": \"a b\"}\n", "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}]}\n",
			"{\"text\": bad\n{\"text\": \"c\"}\n", "{\"n\": 1}\n", "", "\x89PNG\r\n\x1a\n\x00\x00\x00\x00"}
		folders := []string{"."}
		for i := range 1 + rnd.IntN(30) {
			if rnd.IntN(3) == 0 {
				folders = append(folders, filepath.Join(pick(rnd, folders), fmt.Sprintf("d %d", i)))
			}
			write(t, filepath.Join("all", pick(rnd, folders), fmt.Sprintf("f%d.jsonl", i)), pick(rnd, kinds))
		}
		path := pick(rnd, []string{"all", "./all/", ".", "all/**"})
		s := &surveyor{Options: Options{Paths: []string{path}, Memory: 64 << 20, Each: func(*File) {}}, report: &Report{},
			seen: map[string]bool{}}
		if err := s.path(context.Background(), path); err != nil {
			t.Fatal(err)
		}
		groups := map[string]*group{}
		for _, f := range s.report.Files {
			if key := fmt.Sprint(f.way, f.Damaged()); f.way != "" && f.Records > 0 {
				groups[key] = cmpOr(groups[key], &group{way: f.way, damaged: f.Damaged()})
				f.group = groups[key]
				f.group.files = append(f.group.files, f)
			}
		}
		for _, g := range groups {
			want := map[string]bool{}
			for _, f := range g.files {
				want[filepath.Clean(f.name)] = true
			}
			args := s.sources(g)
			o := source.Options{Places: listing.Options{}}
			for i := 0; i < len(args); i++ {
				if args[i] == "--exclude" {
					i++
					o.Exclude = append(o.Exclude, args[i])
					continue
				}
				o.Args = append(o.Args, args[i])
			}
			set, err := source.Open(context.Background(), o)
			if err != nil {
				t.Fatalf("%s: %q: %v", path, args, err)
			}
			for i := range set.Len() {
				in, _ := set.Input(i)
				reader, _ := set.FirstRecords(i)
				_, err := reader.Next(nil, new(source.Record))
				if name := filepath.Clean(in.Path); !want[name] && err == nil {
					t.Errorf("%s: %q lead to %s", path, args, name)
				} else if err != nil && !errors.Is(err, io.EOF) && want[name] {
					t.Error(err)
				}
				delete(want, filepath.Clean(in.Path))
				reader.Close()
			}
			if len(want) > 0 {
				t.Errorf("%s: %q do not lead to %v", path, args, slices.Collect(maps.Keys(want)))
			}
			set.Close()
		}
	}
}

func pick[T any](rnd *rand.Rand, of []T) T { return of[rnd.IntN(len(of))] }

func cmpOr(a, b *group) *group {
	if a != nil {
		return a
	}
	return b
}

// TestChoices: several fields are joined into one choice where each file gets the text that it would have alone.
func TestChoices(t *testing.T) {
	file := func(choices string, fields ...string) *File {
		f := &File{way: asText, choices: strings.Split(choices, "|")}
		for _, name := range append(fields, f.choices...) {
			f.Fields = append(f.Fields, Field{Name: name, Records: 1})
		}
		return f
	}
	for _, c := range []struct {
		files []*File
		want  string // the choices of each group
	}{
		{[]*File{file("text"), file("content", "id"), file("body"), file("text")}, "text|content|body"},
		{[]*File{file("text"), file("content", "text")}, "text content"},                       // of the second, content is meant
		{[]*File{file("content"), file("text", "content"), file("text")}, "content|text text"}, // content is not meant in the second
		{[]*File{file("text", "body"), file("body")}, "text|body"},                             // text is before body in both
		{[]*File{file("text|content"), file("body", "content")}, "text|content body"},
	} {
		var groups []*group
		for _, f := range c.files {
			if i := slices.IndexFunc(groups, func(g *group) bool { return g.takes(f) }); i >= 0 {
				groups[i].files = append(groups[i].files, f)
				continue
			}
			groups = append(groups, &group{way: f.way, choices: f.choices, files: []*File{f}})
		}
		var got []string
		for _, g := range groups {
			got = append(got, strings.Join(g.choices, "|"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestManyFiles: a folder with few others is named with what is left out of it, unless an archive may hold such a name.
func TestManyFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, want := range map[string]string{"all": "dsload build all --exclude /sub/bad.jsonl --out all-data",
		"-all": "dsload build ./-all --exclude /sub/bad.jsonl --out dsload-data"} {
		for i := range 30 {
			write(t, fmt.Sprintf("%s/f%d.txt", path, i), "some text\n")
		}
		write(t, path+"/sub/bad.jsonl", "{\"text\n")
		if r, _ := run(t, path); len(r.Commands) != 1 || r.Commands[0].Command != want {
			t.Errorf("%s: %+v", path, r.Commands)
		}
	}
}

// TestHostileRecords: what is kept of a file does not grow with its records.
func TestHostileRecords(t *testing.T) {
	t.Chdir(t.TempDir())
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "{%q: \"a b\", \"f%d\": \"c\"}\n", strings.Repeat("k", 100_000/(1+i)), i)
	}
	b.WriteString("{\"text\": \"" + strings.Repeat("long ", 2<<20) + "\"}\n" + strings.Repeat("[", 5000) + "\n\x00\x1b[2J\n")
	write(t, "h.jsonl", b.String())
	r, err := run(t, ".")
	f := r.Files[0]
	if len(r.Files) != 1 || len(f.Fields) != maxFields || len(f.Problems) != 2 || fault.KindOf(err) != fault.Corrupt {
		t.Errorf("%d fields, %d problems, %v", len(f.Fields), len(f.Problems), err)
	}
	for _, field := range f.Fields {
		if len(field.Name) > maxName {
			t.Errorf("a name of %d bytes", len(field.Name))
		}
	}
}

// TestNumbers: what Python writes for floats without digits is of floats.
func TestNumbers(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, value := range []string{"NaN", "Infinity", "-Infinity", "-0.5", "1e3"} {
		write(t, "n.jsonl", "{\"text\": \"a\", \"v\": "+value+"}\n")
		r, err := run(t, "n.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Files[0].Fields[1].Types); !strings.Contains(got, "float") || strings.Contains(got, "int") {
			t.Errorf("%s: %s", value, got)
		}
	}
}
