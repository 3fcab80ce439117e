package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/survey"
)

// TestSurveyedCommandsBuild: in a folder of everything the commands that a survey prints build each record that it
// counted, as they stand, and a survey holds no long line.
func TestSurveyedCommandsBuild(t *testing.T) {
	exe, dir := builtProgram(t), t.TempDir()
	jsonl := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	for name, content := range map[string]string{
		"a b's/main.jsonl":    jsonl(7, `{"text": "river %d", "id": 1}`),
		"a b's/[1] {x,y}.txt": jsonl(5, `lines of stone %d`),
		"-odd/-c.jsonl":       jsonl(6, `{"content": "crawled %d", "url": "http://x"}`),
		"-odd/n.csv":          "id;body\n" + jsonl(4, `%d;some words here`),
		"mixed.jsonl":         jsonl(3, `{"text": "one %d"}`) + jsonl(2, `{"body": "other %d"}`),
		"title.jsonl":         jsonl(3, `{"title": "t %d", "body": "the body of it is longer"}`),
		"swapped.jsonl":       jsonl(3, `{"body": "b b %d", "content": "the content of it is the longer one of both, by far, and so it is the text"}`),
		"below.json":          `{"v": 1, "data": [` + strings.TrimSuffix(strings.ReplaceAll(jsonl(4, `{"context": "c d %d"}`), "\n", ","), ",") + `]}`,
		"pairs.jsonl":         jsonl(5, `{"q": "what is %d", "a": "a number"}`),
		"bare.csv":            jsonl(5, `%d,these are the words of a row`),
		"bad.jsonl":           jsonl(4, `{"text": "good %d"}`) + "{\"text\": bad\n" + jsonl(2, `{"text": "more %d"}`),
		"numbers.csv":         "a,b\n1,2\n",
		"line\nbreak.txt":     "not in a command\n",
		"empty.txt":           "",
		"image.png":           "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\x01", 99),
		"long.jsonl":          `{"text": "` + strings.Repeat("long and longer ", 6<<20) + "\"}\n" + jsonl(2, `{"text": "short %d"}`),
		"longer.jsonl":        `{"content": "` + strings.Repeat("long and longer ", 1<<20) + "\"}\n",
	} {
		path := filepath.Join(dir, "all", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(exe, "survey", "all", "--json", "--memory", "64MiB")
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	highest := watchPeak(cmd.Process.Pid)
	_ = cmd.Wait() // the exit code is looked at
	if peak := highest(); peak > 64<<20 {
		t.Errorf("it took %s", formatSize(peak))
	}
	if code := cmd.ProcessState.ExitCode(); code != exitCorrupt {
		t.Fatalf("exit code %d", code)
	}
	var r survey.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	var found, built int64
	for _, f := range r.Files {
		if f.URI != "all/numbers.csv" && f.URI != "all/line\nbreak.txt" {
			found += f.Records
		}
	}
	for _, c := range r.Commands {
		cmd := exec.Command("sh", "-c", c.Command+" --progress none --json")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(exe)+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		var s struct {
			Documents int64 `json:"documents"`
			Rejected  int64 `json:"rejected"`
		}
		if err != nil || json.Unmarshal(out, &s) != nil || s.Documents != c.Records || s.Rejected > 0 != c.Damaged {
			t.Errorf("%s: %v, %d documents of %d, %d rejected", c.Command, err, s.Documents, c.Records, s.Rejected)
		}
		built += s.Documents
	}
	if found != built || found != 57 {
		t.Errorf("%d records were found, %d built", found, built)
	}
	if len(r.Commands) != 7 { // those of texts, and texts too long for a choice, below a key, without a header; pairs; damage
		for _, c := range r.Commands {
			t.Log(c.Command)
		}
		t.Errorf("%d commands", len(r.Commands))
	}
}
