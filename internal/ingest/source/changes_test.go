package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

func TestSourceChanges(t *testing.T) {
	dir := t.TempDir()
	text := numbered(1000)
	now := time.Now().Truncate(time.Second)
	var files []string
	for _, name := range []string{"a", "b", "c"} {
		files = append(files, write(t, dir, name, text))
		if err := os.Chtimes(files[len(files)-1], now, now); err != nil {
			t.Fatal(err)
		}
	}
	records := readAll(t, Options{Args: files})
	at := records[1500].next // in b
	for _, c := range []struct {
		name, what, uri string
		change          func(args []string) []string
	}{
		{"nothing", "", "", func(a []string) []string { return a }},
		{"time of one read", "", "", func(a []string) []string {
			os.Chtimes(files[0], now,
				now.Add(time.Second))
			return a
		}},
		{"content and time of one read", "modification time", files[0],
			func(a []string) []string { write(t, dir, "a", "L"+text[1:]); return a }},
		{"size of one read", "size", files[0], func(a []string) []string { write(t, dir, "a", text+"x"); return a }},
		{"size after the position", "", "", func(a []string) []string {
			write(t, dir, "b",
				text+"x")
			os.Chtimes(files[1], now, now)
			return a
		}},
		{"size, up to before the position", "size", files[1],
			func(a []string) []string { write(t, dir, "b", text[:100]); return a }},
		{"size and content read", "content", files[1],
			func(a []string) []string { write(t, dir, "b", "L"+text[1:]+"x"); return a }},
		{"size of one unread", "", "", func(a []string) []string {
			write(t, dir, "c", text+"x")
			os.Chtimes(files[2], now, now)
			return a
		}},
		{"format", "format", files[1], func(a []string) []string {
			write(t, dir, "b", strings.Repeat("{\"text\": \"a line\"}\n", 1000))
			return a
		}},
		{"content read", "content", files[1], func(a []string) []string {
			write(t, dir, "b", "L"+text[1:])
			os.Chtimes(files[1], now, now)
			return a
		}},
		{"content unread", "", "", func(a []string) []string {
			write(t, dir, "b", text[:len(text)-1]+"!")
			os.Chtimes(files[1], now, now)
			return a
		}},
		{"one more", "missing", files[0], func(a []string) []string { return append(a, files[0]) }},
		{"one less", "list of inputs", files[2], func(a []string) []string { return a[:2] }},
		{"another order", "list of inputs", files[0],
			func(a []string) []string { return []string{files[1], files[0], files[2]} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, name := range []string{"a", "b", "c"} {
				write(t, dir, name, text)
				os.Chtimes(files[i], now, now)
			}
			set, err := Open(context.Background(), Options{Args: c.change(slices.Clone(files))})
			if err != nil {
				t.Fatal(err)
			}
			_, err = readFrom(t, set, at)
			var changed *cause.ChangedError
			switch {
			case c.what == "" && err != nil:
				t.Errorf("%v, want none", err)
			case c.what != "" && (!errors.As(err, &changed) || !strings.Contains(err.Error(), c.what) ||
				changed.URI != c.uri):
				t.Errorf("%v; want one about %s of %s", err, c.what, c.uri)
			}
		})
	}
}

// A file that changes or goes while the set is read is an error, and no half record comes of it.
func TestSourceChangesWhileRead(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(file string) error
		want   string
	}{
		{"shrunk", func(f string) error { return os.Truncate(f, 600_005) }, "size"},
		{"grown", func(f string) error { return os.Truncate(f, 2_000_000) }, "size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, t.TempDir(), "a", strings.Repeat("123456789\n", 100_000))
			set := openSet(t, Options{Args: []string{file}})
			r, err := set.Reader(Position{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var rec Record
			for i := 0; err == nil; i++ {
				if i == 5 {
					if err := c.change(file); err != nil {
						t.Fatal(err)
					}
				}
				var data []byte
				if data, err = r.Next(nil, &rec); err == nil && string(data) != "123456789" {
					t.Fatalf("record %.40q", data)
				}
			}
			var changed *cause.ChangedError
			if !errors.As(err, &changed) || changed.What != c.want {
				t.Errorf("%v", err)
			}
		})
	}
	dir := t.TempDir()
	set := openSet(t, Options{Args: []string{write(t, dir, "a", "a\n"), write(t, dir, "b", "b\n")}})
	os.Remove(filepath.Join(dir, "b"))
	var changed *cause.ChangedError
	if _, err := readFrom(t, set, Position{}); !errors.As(err, &changed) || changed.What != cause.Existence {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestForgedPositions(t *testing.T) {
	set := openSet(t, Options{Args: []string{write(t, t.TempDir(), "a", "a\nb\n")}})
	for _, p := range []Position{{Input: -1}, {Input: 2}, {Input: 1}, {Offset: -1}, {Row: -1}, {Offset: 1 << 60},
		{Offset: 2}, {Ordinal: -3}} {
		if _, err := set.Reader(p); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
