package ingest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
)

// TestRejectsByReason: bad records are listed by file and reason, a file without a good one is named, and a build in
// partitions lists the same.
func TestRejectsByReason(t *testing.T) {
	dir := t.TempDir()
	var fell, mixed strings.Builder
	for i := range 1370 {
		fmt.Fprintf(&fell, "{\"content\":\"a document, %d\"%s}\n", i, strings.Repeat(`,"more":1`, i%3/2))
	}
	mixed.WriteString(`{"text":"good"}` + "\n")
	for i := range 500 {
		fmt.Fprintf(&mixed, "{\"text\":%d}\n", i)
		if i%2 == 0 {
			fmt.Fprintf(&mixed, "%s{\"text\":nothing}\n", strings.Repeat(" ", i))
		}
	}
	put(t, filepath.Join(dir, "a.jsonl"), []byte(fell.String()))
	put(t, filepath.Join(dir, "b.jsonl"), []byte(jsonLines(0, 2000, -1)))
	put(t, filepath.Join(dir, "c.jsonl"), []byte(mixed.String()))
	o := option.Options{Out: filepath.Join(t.TempDir(), "whole"),
		Settings:  option.Settings{Sources: []string{dir}, MaxLength: 48, OnBadRecord: option.SkipBadRecord},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	s := mustBuild(t, o)
	list := func(dir string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, shardfile.RejectsName))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := list(o.Out)
	lines := strings.Split(strings.TrimSpace(string(want)), "\n")
	if len(lines) != 3 || s.Rejected != 1370+750 || !strings.Contains(lines[0], `"records":1370,"whole_file":true`) ||
		!strings.Contains(lines[1], `"row":2,`) || !strings.HasSuffix(lines[1], `"records":500}`) ||
		!strings.HasSuffix(lines[2], `"records":250}`) {
		t.Errorf("%s", want)
	}
	notes := fault.Join(s.Notes, "\n").String()
	for _, note := range []string{"nothing of " + filepath.Join(dir, "a.jsonl"), "all of its records are bad ones, 1,370: no field",
		"500 bad records of " + filepath.Join(dir, "c.jsonl") + " left out: field \"text\" is a number"} {
		if !strings.Contains(notes, note) {
			t.Errorf("no %q in %s", note, notes)
		}
	}
	out := filepath.Join(t.TempDir(), "parts")
	buildParts(t, planned(t, o, 5), out)
	merged, err := merge.Run(context.Background(), merge.Options{Dir: out})
	if err != nil {
		t.Fatal(err)
	}
	if got := list(out); !bytes.Equal(got, want) {
		t.Errorf("in partitions: %s", got)
	}
	if got := fault.Join(merged.Notes, "\n").String(); !strings.Contains(got, "nothing of "+filepath.Join(dir, "a.jsonl")) {
		t.Errorf("the merge says %s", got)
	}
}
