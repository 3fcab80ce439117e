package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestChosenKinds: of several kinds of files in the split train the most frequent is read, and of equally many
// the one that the package datasets prefers. The choices are those of datasets 5.2.
func TestChosenKinds(t *testing.T) {
	for _, c := range []struct{ files, read, tied string }{
		{"data/train-0.jsonl data/train-1.parquet extra/x.jsonl", "data/train-1.parquet", ".jsonl"},
		{"train.csv train.jsonl", "train.jsonl", ".csv"},
		{"train.txt train.csv", "train.csv", ".txt"},
		{"train.arrow train.jsonl", "train.arrow", ".jsonl"},
		{"a.tsv b.txt", "b.txt", ".tsv"},
		{"train-a.csv train-b.csv train.parquet", "train-a.csv train-b.csv", ""},
		// Kinds of one module are read together, and are not a tie.
		{"train.json train.jsonl.gz train.csv", "train.json train.jsonl.gz", ".csv"},
		{"train.tsv train.csv", "train.tsv train.csv", ""},
		{"train-1.json train-2.jsonl train-3.ndjson train-a.csv train-b.csv", "train-a.csv train-b.csv", ""},
		// Names that datasets writes come before all others, and files of other splits do not count.
		{"data/train-00000-of-00001.parquet train/a.jsonl train/b.jsonl", "data/train-00000-of-00001.parquet", ""},
		{"train/a.parquet test/a.jsonl test/b.jsonl", "train/a.parquet", ""},
		{"a.jsonl.zip b.jsonl c.parquet", "a.jsonl.zip b.jsonl", ""},
	} {
		choice := newSplitChoice()
		names := strings.Fields(c.files)
		for _, name := range names {
			choice.count(name)
		}
		read := slices.DeleteFunc(names, func(name string) bool {
			return choice.drops(name, name[strings.LastIndexByte(name, '/')+1:])
		})
		if got := strings.Join(read, " "); got != c.read || choice.tied != c.tied {
			t.Errorf("%s: read %s, tied with %q", c.files, got, choice.tied)
		}
		if choice.tied == "" {
			continue
		}
		var text string
		l := &Lister{Note: func(format string, args ...any) { text += fmt.Sprintf(format, args...) }}
		choice.addNotes(l, "hf://datasets/a/b")
		if !strings.Contains(text, "on a tie datasets prefers "+choice.kind+" to "+c.tied) {
			t.Errorf("%s: %s", c.files, text)
		}
	}
}
