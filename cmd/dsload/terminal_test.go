package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/ingest/report"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, élan\n\tindented": "plain text, élan\n\tindented",
		"\x1b]0;title\x07":             `\x1b]0;title\x07`,
		"a\x00b\x7f\b":                 `a\x00b\x7f\x08`,
		"\u009b31m":                    `\u009b31m`,
		"\x9b31m":                      `\x9b31m`,
		"a\r\nb":                       "a\\r\nb",
		"exe\u202etxt.":                `exe\u202etxt.`,
		"\u2066\u2069\u202a\u2028":     `\u2066\u2069\u202a\u2028`,
		"👩\u200d👩 \u200c":              "👩\u200d👩 \u200c",
		"\ufffd is a character":        "\ufffd is a character",
		"":                             "",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got, want := errorLine(fmt.Errorf("read a.txt: %w", context.Canceled)),
		"read a.txt: interrupted; run the same command again"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := errorLine(errors.New("open \x1b[2J.txt\nclose\t  it")); got != `open \x1b[2J.txt; close it` {
		t.Errorf("%q", got)
	}
}

// TestNothingRawIsShown checks that names and texts are escaped wherever they are shown, on a
// terminal or not.
func TestNothingRawIsShown(t *testing.T) {
	const escapes = "\x1b]0;pwned\x07\x1b[2J\x08\u009b31m\u202e"
	dir := t.TempDir()
	text := filepath.Join(dir, "e"+escapes+".txt")
	if err := os.WriteFile(text, []byte("hello "+escapes+" world\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad"+escapes+".jsonl")
	if err := os.WriteFile(bad, []byte(`{"text": 5, "`+"\u009b"+`": 1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	readable := filepath.Join(dir, "token"+escapes)
	if err := os.WriteFile(readable, []byte("two\nlines\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out"+escapes)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"build", bad, "--out", out, "--progress", "none"}, exitCorrupt},
		{[]string{"build", filepath.Join(dir, escapes), "--out", out, "--progress", "none"}, exitUsage},
		{[]string{"build", text, "--out", out, "--overwrite", "--progress", "none"}, exitDone},
		{[]string{"inspect", out}, exitDone},
		{[]string{"verify", out}, exitDone},
		{[]string{"build", text, "--tokenizer", escapes}, exitUsage},
		{[]string{escapes}, exitUsage},
		{[]string{"build", "--" + escapes}, exitUsage},
		{[]string{"build", "--memory", escapes}, exitUsage},
		{[]string{"tokenizer", "digest", text}, exitDone},
		{[]string{"tokenizer", "train", text, "--vocab-size", "300", "--out", out + ".json"}, exitDone},
		{[]string{"tokenizer", "train", text, "--vocab-size", "300", "--out", out + ".json"}, exitUsage},
		{[]string{"serve", out, "--listen", "127.0.0.1:0", "--token-file", readable}, exitUsage},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(c.args, strings.NewReader(""), &stdout, &stderr); code != c.code {
			t.Errorf("%q: exit code %d: %s", c.args, code, stderr.String())
		}
		shown := stdout.String() + stderr.String()
		if i := strings.IndexFunc(shown, acts); i >= 0 || !utf8.ValidString(shown) || shown == "" {
			t.Errorf("%q: %q", c.args, shown)
		}
	}
}

// TestTerminalWriter checks that nothing written to a terminal acts on it, in whatever pieces it
// comes, and that characters split between pieces come out whole.
func TestTerminalWriter(t *testing.T) {
	const text = "a\x1b]0;pwned\x07\u009b31m é中👩\n\xff\tb\xe4\xb8"
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		w := &terminalWriter{w: &b}
		for at := 0; at < len(text); at += size {
			part := text[at:min(at+size, len(text))]
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		w.flush()
		if want := printable(text); b.String() != want {
			t.Fatalf("pieces of %d: %q, want %q", size, b.String(), want)
		}
	}
}

// TestBarLine checks that the line is always shorter than the terminal is wide, and says more if
// there is room.
func TestBarLine(t *testing.T) {
	known := report.Progress{Totals: report.Totals{Examples: 12_345_678, Tokens: 3e9}, Fraction: 0.4321,
		Elapsed: 100 * time.Second, Memory: 123456789, CapBytes: 256 << 20}
	known.TextBytes = 12e9
	unknown := known
	unknown.Fraction = -1
	for _, p := range []report.Progress{known, unknown, {}, {Fraction: 1}} {
		for width := range 250 {
			if line := barLine(p, width); utf8.RuneCountInString(line) > width {
				t.Errorf("%d columns of %d: %q", utf8.RuneCountInString(line), width, line)
			}
		}
	}
	for width, want := range map[int][]string{
		200: {"█", "░", "43%", "12,345,678 examples", "120.0 MB/s", "30,000,000 tokens/s", "2m11s left",
			"117.7MiB of 256MiB"},
		110: {"█", "43%", "12,345,678 examples", "120.0 MB/s", "30,000,000 tokens/s", "2m11s left"},
		60:  {"█", "43%", "12,345,678 examples", "2m11s left"},
		40:  {"█", "43%", "12,345,678 examples"},
		12:  {"43%"},
	} {
		for _, part := range want {
			if line := barLine(known, width); !strings.Contains(line, part) {
				t.Errorf("%d columns lack %q: %q", width, part, line)
			}
		}
	}
}

// TestBarFollowsTheWidth checks that the width is asked for each time, and that nothing is drawn
// after the end.
func TestBarFollowsTheWidth(t *testing.T) {
	var out bytes.Buffer
	width := 80
	b := newBar(&out, func() int { return width })
	p := report.Progress{Totals: report.Totals{Examples: 1000}, Fraction: 0.5, Elapsed: time.Second}
	b.update(p)
	width = 30
	out.Reset()
	b.update(p)
	line := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[J")
	if n := utf8.RuneCountInString(line); n == 0 || n > 29 {
		t.Errorf("%d columns: %q", n, line)
	}
	b.finish()
	out.Reset()
	b.update(p)
	b.finish()
	if out.Len() > 0 {
		t.Errorf("drawn after the end: %q", out.String())
	}
}
