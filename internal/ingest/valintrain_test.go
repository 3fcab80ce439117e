package ingest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// TestValInTrain: the documents of val that train has too are counted, whatever the format they come in.
func TestValInTrain(t *testing.T) {
	dir := t.TempDir()
	var train, val strings.Builder
	val.WriteString("text\n")
	for i := range 2000 {
		fmt.Fprintf(&train, "{\"n\":%d,\"text\":\"document number %d\"}\n", i, i)
		if i%150 == 0 {
			fmt.Fprintf(&val, "document number %d\nanother document %d\n", i, i)
		}
	}
	val.WriteString("document number 300\n")
	for name, text := range map[string]string{"train.jsonl": train.String(), "val.csv": val.String()} {
		put(t, filepath.Join(dir, name), []byte(text))
	}
	o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), CheckpointEvery: 10,
		CheckpointInterval: 1, FS: shardtest.New()},
		Settings: option.Settings{Sources: []string{filepath.Join(dir, "train.jsonl")}, MaxLength: 64,
			ValSources: []string{filepath.Join(dir, "val.csv")}}}
	said := func(s *report.Summary, n int) bool {
		return strings.Contains(fault.Join(s.Notes, "\n").String(), fmt.Sprintf("in train too: %d;", n))
	}
	s := mustBuild(t, o)
	if !said(s, 15) {
		t.Errorf("%q", s.Notes)
	}
	_, ops := builtWhole(t, o)
	for _, k := range []int{ops / 3, ops * 2 / 3, ops - 10} {
		fsys := shardtest.New()
		fsys.CutAt(k)
		o.FS = fsys
		if _, err := Run(context.Background(), o); err == nil {
			t.Fatalf("no crash at operation %d of %d", k, ops)
		}
		o.FS = fsys.CrashImage(shardtest.LoseNone, 1)
		if s := mustBuild(t, o); !said(s, 15) {
			t.Errorf("after a crash at operation %d: %q", k, s.Notes)
		}
	}
	for name, change := range map[string]func(o *option.Options){
		"what the filter leaves out of train": func(o *option.Options) { o.Filter = filter.Options{NoMatch: []string{`r \d+00$`}} },
		"what a budget leaves out of train":   func(o *option.Options) { o.MaxExamples = 10 },
		"copies left out":                     func(o *option.Options) { o.Dedup = filter.Exact },
	} {
		other := o
		other.FS = shardtest.New()
		change(&other)
		if s := mustBuild(t, other); said(s, 15) {
			t.Errorf("%s: %q", name, s.Notes)
		}
	}
}

// A note says that there is no split val where nothing of its sources is left, and never how many of its sources'
// documents were held out, since none are.
func TestValThatIsEmpty(t *testing.T) {
	dir := t.TempDir()
	train, val := filepath.Join(dir, "train.jsonl"), filepath.Join(dir, "val.jsonl")
	put(t, train, []byte(`{"text":"a","lang":"en"}`))
	put(t, val, []byte(`{"text":"b","lang":"de"}`))
	for lang, noted := range map[string]bool{"lang=en": true, "lang!=fr": false} {
		o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
			Settings: option.Settings{Sources: []string{train}, ValSources: []string{val}, MaxValExamples: 3}}
		o.Where = []string{lang}
		notes := fault.Join(mustBuild(t, o).Notes, "\n").String()
		if strings.Contains(notes, "there is no split val") != noted || strings.Contains(notes, "held out") {
			t.Errorf("%s: %q", lang, notes)
		}
	}
}
