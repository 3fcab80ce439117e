package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/klauspost/compress/zstd"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll([]byte(text), nil)
}

// TestBadInput builds from every kind of bad input. Each gives its own exit code and a message of
// its own on one line, and leaves nothing that looks like a finished dataset.
func TestBadInput(t *testing.T) {
	text := strings.Repeat("Some words of an ordinary line, and some more.\n", 5000)
	zip, frame := gzipped(t, text), zstded(t, text)
	broken := bytes.Clone(frame)
	broken[len(broken)/2] ^= 0x55
	for _, c := range []struct {
		name    string
		content []byte // nil if there is no such file
		args    []string
		code    int
		want    []string // in the message
	}{
		{"missing.txt", nil, nil, exitUsage, []string{"missing.txt", "no such file"}},
		{"empty.txt", []byte{}, nil, exitCorrupt, []string{"no documents"}},
		{"blank.txt", []byte(" \n\n\t\n"), nil, exitCorrupt, []string{"no documents"}},
		{"binary.bin", bytes.Repeat([]byte{0, 1, 2, 0x80, 0xff, 0}, 5000), nil, exitCorrupt,
			[]string{"binary.bin", "not text"}},
		{"cut.txt.gz", zip[:len(zip)/2], nil, exitCorrupt, []string{"cut.txt.gz", "byte", "ends before its end mark"}},
		{"cut.txt.zst", frame[:len(frame)/2], nil, exitCorrupt, []string{"cut.txt.zst", "ends before its end mark"}},
		{"broken.txt.zst", broken, nil, exitCorrupt, []string{"broken.txt.zst"}},
		{"bad.jsonl", []byte("{\"text\": \"fine\"}\n{\"text\": \"not clo\n"), nil, exitCorrupt,
			[]string{"bad.jsonl", "row 2", "--on-bad-record skip"}},
		{"field.jsonl", []byte("{\"body\": \"fine\"}\n"), nil, exitCorrupt,
			[]string{"field.jsonl", "row 1", `"text"`, "has body"}},
		{"bad.csv", []byte("text,more\nfine,1\n\"not closed,2\n"), nil, exitCorrupt, []string{"bad.csv", "row 2"}},
		{"field.csv", []byte("body,more\nfine,1\n"), []string{"--text-field", "nosuch"}, exitCorrupt,
			[]string{"field.csv", `"nosuch"`, "body, more"}},
		{"window.txt.zst", []byte("\x28\xb5\x2f\xfd\x00\x98aaaa"), []string{"--memory", "100MiB"}, exitLimit,
			[]string{"--memory 100MiB", "zstd window of 512MiB"}},
		{"recipe.csv", []byte("title,ingredients,directions\nSoup,\"[\"\"water\"\"]\",not a list\n"),
			[]string{"--format", "recipes"}, exitCorrupt, []string{"recipe.csv", "row 1", "directions"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path, out := filepath.Join(dir, c.name), filepath.Join(dir, "data")
			if c.content != nil {
				if err := os.WriteFile(path, c.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var stdout, stderr bytes.Buffer
			code := run(append([]string{"build", path, "--out", out, "--progress", "none"}, c.args...),
				strings.NewReader(""), &stdout, &stderr)
			message := stderr.String()
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, message)
			}
			if strings.Count(message, "\n") != 1 {
				t.Errorf("the message is not one line: %q", message)
			}
			for _, want := range c.want {
				if !strings.Contains(message, want) {
					t.Errorf("the message lacks %q: %s", want, message)
				}
			}
			if _, err := os.Stat(filepath.Join(out, shardfile.ManifestName)); err == nil {
				t.Error("there is a manifest")
			}
		})
	}
}

func TestBadRecordsAreSkippedAndListed(t *testing.T) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "some.jsonl"), filepath.Join(dir, "data")
	if err := os.WriteFile(path, []byte("{\"text\": \"one\"}\nnonsense\n{\"text\": 5}\n{\"text\": \"two\"}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"build", path, "--out", out, "--on-bad-record", "skip", "--progress", "none"},
		strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "train: 2 examples") || !strings.Contains(stdout.String(),
		"2 bad records skipped") {
		t.Errorf("summary: %s", stdout.String())
	}
	rejects, err := os.ReadFile(filepath.Join(out, shardfile.RejectsName))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(rejects)), "\n"); len(lines) != 2 ||
		!strings.Contains(lines[0], `"row":2`) || !strings.Contains(lines[1], `"row":3`) {
		t.Errorf("rejects.jsonl: %s", rejects)
	}
}

func TestInvalidUTF8IsReplacedAndCounted(t *testing.T) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "some.txt"), filepath.Join(dir, "data")
	if err := os.WriteFile(path, []byte("caf\xc3 \xe2\x82 end\xff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"build", path, "--out", out, "--progress", "none"}, strings.NewReader(""), &stdout,
		&stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "3 ill-formed UTF-8 sequences replaced") {
		t.Errorf("summary: %s", stdout.String())
	}
	stdout.Reset()
	if code := run([]string{"inspect", out}, strings.NewReader(""), &stdout, &stderr); code != 0 ||
		!strings.Contains(stdout.String(), "caf\uFFFD \uFFFD end\uFFFD") {
		t.Errorf("decoded: %s", stdout.String())
	}
}

// TestHugeLineStreams builds from a line of 200 MB under a small cap. The line is cut into pieces
// that have the ids of the whole.
func TestHugeLineStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it tokenizes 200 MB")
	}
	dir := t.TempDir()
	path, out := filepath.Join(dir, "line.txt"), filepath.Join(dir, "data")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := []byte(strings.Repeat("words of one very long line, 12 345 numbers; ", 1<<15))
	for written := 0; written < 200<<20; written += len(block) {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	summary, err := exec.Command(builtProgram(t), "build", path, "--out", out, "--memory", "64MiB", "--max-examples",
		"0", "--progress", "none").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, summary)
	}
	if !strings.Contains(string(summary), "read: 1 document,") {
		t.Errorf("summary: %s", summary)
	}
}

func TestUnwritableOutput(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "some.txt")
	if err := os.WriteFile(path, []byte("words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	// A file in place of the folder is refused even for root, unlike a folder without permissions.
	if code := run([]string{"build", path, "--out", filepath.Join(path, "data"), "--progress", "none"},
		strings.NewReader(""), &stdout, &stderr); code != exitUsage {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if !strings.Contains(stderr.String(), "some.txt/data: it would lie in a file, not in a folder; name another one") {
		t.Errorf("message: %s", stderr.String())
	}
}
