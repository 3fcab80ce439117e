package source

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// fuzzFraming checks I1 and I2 on any bytes: read at once, byte by byte, and resumed after a record.
func fuzzFraming(f *testing.F, formats []Format, seeds ...string) {
	for i, s := range seeds {
		f.Add([]byte(s), uint8(16+i), uint8(40), uint16(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, pieceBytes, more uint8, at uint16) {
		o := Options{Args: []string{"-"}, Format: formats[int(at)%len(formats)], Framing: Framing{PieceBytes: max(16, int(pieceBytes)),
			MaxRecordBytes: 16 + int(more), Whole: more%5 == 0}}
		o.MaxPieceBytes = o.PieceBytes + int(more)
		if more%3 == 0 {
			o.TextField = "text"
		}
		if more%2 == 0 {
			o.Cut = atSpaces
		}
		open := func(src io.Reader, chunk int) *Set {
			o := o
			o.Stdin, o.chunkBytes = src, chunk
			set, err := Open(context.Background(), o)
			if err != nil {
				t.Skip() // binary, empty, compressed
			}
			return set
		}
		first, firstErr := readFrom(t, open(bytes.NewReader(data), 0), Position{})
		got := outcome(readFrom(t, open(iotest.OneByteReader(bytes.NewReader(data)), 3), Position{}))
		if want := outcome(first, firstErr); !slices.Equal(got, want) {
			t.Fatalf("%q\nat once       %s\nbyte by byte  %s", data, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		if len(first) == 0 {
			return
		}
		i := int(at) % len(first)
		rest, err := readFrom(t, open(bytes.NewReader(data), 5), first[i].next)
		if want, got := outcome(first[i+1:], firstErr), outcome(rest, err); !slices.Equal(got, want) {
			t.Fatalf("%q resumed after record %d\nwant %s\ngot %s", data, i, strings.Join(want, "\n"),
				strings.Join(got, "\n"))
		}
	})
}

func FuzzLines(f *testing.F) {
	fuzzFraming(f, []Format{Text, Document}, "a\nb\r\n\n \nc", "\ufeffé\u2003\n"+strings.Repeat("long ", 30)+"\n",
		strings.Repeat(" ", 90)+"x")
}

func FuzzWikiText(f *testing.F) {
	fuzzFraming(f, []Format{WikiText}, " \n = A = \n \n text \n \n = = B = = \n \n = C = \n", "= A =\nx\n= B =\ny",
		" = 1 = \n", "x\n\n = A = \n\n"+strings.Repeat("word ", 40))
}

func FuzzCSV(f *testing.F) {
	fuzzFraming(f, []Format{CSV, Recipes}, "a,b\n1,\"x\ny\"\n\"q\"\"q\",\n", "a;b\n\"x\"y;\n3;4\n",
		"\"a\tb\"\tc\n\"open", "a\n\""+strings.Repeat("x\n", 40)+"\"\nb")
}

func FuzzJSONLines(f *testing.F) {
	fuzzFraming(f, []Format{JSONL}, `{"text":"a"}`+"\n\n{}",
		`{"b":[1,{"c":null}],"text":"`+strings.Repeat(`\u00e9\ud83d\ude00 x`, 20)+`","d":-1.5e3}`+"\n{}",
		`{"text":"`+strings.Repeat("x", 99), `{"`+strings.Repeat("k", 99)+`":1}`)
}

// FuzzCompressed feeds damaged streams: an error, or the text, but never a panic or a large allocation.
func FuzzCompressed(f *testing.F) {
	text := strings.Repeat("a line of text\n", 50)
	for _, s := range []string{gzipped(text), zstded(f, text, 1<<10), bzipped(f), gzipped("a\n") + gzipped("b\n")} {
		f.Add([]byte(s))
		f.Add([]byte(s[:len(s)/2]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Open(context.Background(), Options{Args: []string{"-"}, Places: Places{Stdin: bytes.NewReader(data)},
			Format: Text, WindowBytes: 1 << 20})
		if err != nil {
			return
		}
		r, err := set.Reader(Position{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var rec Record
		buf := make([]byte, 0, 1<<20)
		for n := 0; err == nil && n < 1000; n++ {
			_, err = r.Next(buf, &rec)
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"synth://wikitext?seed=1&bytes=1MB", "synth://recipes?docs=3", "file:///tmp",
		"s3://a/b", "a/**/*.txt", "[", "-", "x*", "hf://datasets/a/b"} {
		f.Add(s)
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("x\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Chdir(dir)
	f.Setenv("HF_HUB_OFFLINE", "1") // no test leaves the machine
	f.Setenv("HF_HOME", dir)
	f.Fuzz(func(t *testing.T, arg string) {
		if strings.Contains(arg, "..") || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "file:") ||
			slices.ContainsFunc([]string{"http", "s3", "gs", "az", "hf"},
				func(s string) bool { return strings.HasPrefix(strings.ToLower(arg), s) }) {
			return // stay in the folder
		}
		set, err := Open(context.Background(), Options{Args: []string{arg}})
		if err == nil && set.Len() == 0 {
			t.Fatalf("%q gives no input and no error", arg)
		}
		if strings.HasPrefix(arg, "synth://") && err == nil {
			r, err := set.Reader(Position{})
			if err != nil {
				t.Fatal(err)
			}
			var rec Record
			if _, err := r.Next(nil, &rec); err != nil {
				t.Fatalf("%q: %v", arg, err)
			}
		}
	})
}
