package ingest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
)

// TestMergeSaysWhatWasLeftOut compares what a merge reports with what the single build reports.
func TestMergeSaysWhatWasLeftOut(t *testing.T) {
	o := option.Options{Settings: option.Settings{Sources: []string{writeCorpus(t, 400, 1)}, MaxLength: 48,
		MaxValExamples: 20, Filter: filter.Options{MinChars: 3, Sample: 0.8}, Overflow: example.Truncate},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	whole := o
	whole.Out = filepath.Join(t.TempDir(), "whole")
	want := mustBuild(t, whole)
	out := filepath.Join(t.TempDir(), "parts")
	buildParts(t, planned(t, o, 3), out)
	s, err := merge.Run(context.Background(), merge.Options{Dir: out})
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Notes) < 3 {
		t.Fatalf("the single build has the notes %q only", want.Notes)
	}
	have := fault.Join(s.Notes, "\n").String()
	for _, note := range fault.All(want.Notes, nil) {
		if !strings.Contains(have, note) {
			t.Errorf("the merge does not report %q:\n%s", note, have)
		}
	}
}

// TestMergeNotesLinesThatItKept: a budget that ends before the first line leaves nothing to say about lines.
func TestMergeNotesLinesThatItKept(t *testing.T) {
	folder := t.TempDir()
	records, lines := filepath.Join(folder, "a.jsonl"), filepath.Join(folder, "b.txt")
	put(t, records, []byte(jsonLines(0, 300, -1)))
	put(t, lines, []byte(strings.Repeat("a line\n", 4000)))
	o := option.Options{Settings: option.Settings{Sources: []string{records, lines}, MaxLength: 48},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	for examples, said := range map[int64]bool{200: false, 2000: true} {
		o.MaxExamples = examples
		out := filepath.Join(t.TempDir(), "parts")
		buildParts(t, planned(t, o, 2), out)
		s, err := merge.Run(context.Background(), merge.Options{Dir: out})
		if err != nil {
			t.Fatal(err)
		}
		if notes := fault.Join(s.Notes, "\n").String(); strings.Contains(notes, "a line of text") != said {
			t.Errorf("%d examples: %s", examples, notes)
		}
	}
}
