package ingest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// TestCutIsSaid: the summary and the manifest say what a budget cut, and only if it cut something.
func TestCutIsSaid(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("some words of a line\n", 10) + "\n\n" // 5 tokens and 20 bytes a line
	one, two := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	put(t, one, []byte(text))
	put(t, two, []byte(text))
	for _, c := range []struct {
		name    string
		o       option.Settings
		cutBy   []string
		stopped string
		left    int64 // bytes left unread, -1 if that is not reported
	}{
		{"no budget", option.Settings{}, nil, stoppedAtEnd, -1},
		{"examples", option.Settings{MaxExamples: 15}, []string{"max-examples"},
			"`max-examples` 15 reached; 108 of 424 bytes", 108},
		{"within the first", option.Settings{MaxExamples: 5}, []string{"max-examples"},
			"`max-examples` 5 reached; 320 of 424 bytes of the sources were left unread, 1 of 2 inputs untouched", 320},
		{"all examples", option.Settings{MaxExamples: 20}, nil, "`max-examples` 20 reached, where the sources ended",
			-1},
		{"more than all", option.Settings{MaxExamples: 21}, nil, stoppedAtEnd, -1},
		{"within a document", option.Settings{MaxExamples: 20, MaxLength: 4}, []string{"max-examples"},
			"`max-examples` 20 reached; ", 212 + 3},
		{"the rest of the last document", option.Settings{MaxExamples: 39,
			MaxLength: 4}, []string{"max-examples"},
			"`max-examples` 39 reached; ", 3},
		{"tokens", option.Settings{MaxTokens: 98}, []string{"max-tokens"}, "`max-tokens` 98 reached; ", 3},
		{"all tokens", option.Settings{MaxTokens: 100}, nil, "`max-tokens` 100 reached, where the sources ended", -1},
		{"bytes", option.Settings{MaxBytes: 399}, []string{"max-bytes"}, "`max-bytes` 399B reached; ", 3},
		{"all bytes", option.Settings{MaxBytes: 400}, nil, "`max-bytes` 400B reached, where the sources ended", -1},
	} {
		for _, jobs := range []int64{1, 64} { // checkpoints end jobs elsewhere
			t.Run(fmt.Sprint(c.name, jobs), func(t *testing.T) {
				o := option.Options{Settings: c.o}
				o.Out, o.LoadedTokenizer, o.Sources, o.FS, o.CheckpointEvery = "data", gpt2(), []string{one, two},
					shardtest.New(), jobs
				s := mustBuild(t, o)
				if !slices.Equal(s.CutBy, c.cutBy) || !strings.HasPrefix(s.Stopped.String(), c.stopped) {
					t.Errorf("cut by %q, stopped: %s", s.CutBy, s.Stopped)
				}
				m, err := shard.ReadManifest(o.FS, "data")
				if err != nil {
					t.Fatal(err)
				}
				left, told := m.Counters["unread_bytes"]
				cutBy := counts.Of(m.Counters, nil).CutBy
				if !slices.Equal(cutBy, c.cutBy) || told != (c.left >= 0) || told && left != c.left {
					t.Errorf("the manifest: cut by %q, %d bytes left unread (%v)", cutBy, left, told)
				}
				if text := report.DescribeCut(m).String(); (text != "") != (c.cutBy != nil) || c.cutBy != nil &&
					!strings.Contains(text, "`"+c.cutBy[0]+"`") {
					t.Errorf("described as %q", text)
				}
			})
		}
	}
}

// TestEveryExampleIsAccountedFor: what is in neither split is counted.
func TestEveryExampleIsAccountedFor(t *testing.T) {
	effort.RacedElsewhere(t)
	for _, maxLength := range []int{8, 100} {
		for seed := range uint64(5) {
			o := option.Options{Out: "data",
				Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
				Settings:  option.Settings{Sources: []string{writeCorpus(t, 600, seed)}, MaxLength: maxLength}}
			all := mustBuild(t, o).Splits[0].Examples
			o.MaxValExamples, o.FS = 20, shardtest.New()
			s := mustBuild(t, o)
			got := s.Splits[0].Examples + s.Splits[1].Examples + s.ValRest + s.CopiedExamples
			if got != all || s.Splits[1].Examples != 20 {
				t.Errorf("max length %d: %d examples of %d are accounted for: %+v", maxLength, got, all, s)
			}
			if note := slices.ContainsFunc(fault.All(s.Notes, nil),
				func(n string) bool { return strings.Contains(n, "in neither split") }); note != (s.ValRest > 0) {
				t.Errorf("notes %q", s.Notes)
			}
		}
	}
}

func TestExamplesBeforeValIsFull(t *testing.T) {
	// Twenty documents in a hundred go to val; training is full long before.
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings:  option.Settings{Sources: []string{writeCorpus(t, 400, 2)}, MaxExamples: 3, MaxValExamples: 10_000}}
	s := mustBuild(t, o)
	if !slices.Equal(s.CutBy, []string{"max-examples"}) ||
		!slices.ContainsFunc(fault.All(s.Notes, nil),
			func(n string) bool { return strings.Contains(n, "`max-examples` 3") }) {
		t.Errorf("cut by %q, notes %q", s.CutBy, s.Notes)
	}
}

func TestValFromTheSourceItself(t *testing.T) {
	effort.RacedElsewhere(t)
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	put(t, path, []byte("some text\n"))
	put(t, other, []byte("other text\n"))
	for _, c := range []struct {
		sources, val []string
		want         bool
	}{
		{[]string{path}, []string{other}, false},
		{[]string{path}, []string{path}, true},
		{[]string{dir}, []string{path}, true},
		{[]string{path}, []string{filepath.Join(dir, "*.txt")}, true},
		{[]string{path}, []string{dir + "/../" + filepath.Base(dir) + "/a.txt"}, true},
		{[]string{"synth://recipes?seed=1"}, []string{"synth://recipes?seed=2"}, false},
	} {
		o := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New(), Workers: 2, Memory: 64 << 20},
			Settings:  option.Settings{Sources: c.sources, ValSources: c.val, MaxExamples: 5, MaxValExamples: 5}}
		s := mustBuild(t, o)
		if warned := slices.ContainsFunc(fault.All(s.Warnings, nil),
			func(w string) bool { return strings.Contains(w, "source of train and of val") }); warned != c.want {
			t.Errorf("%q and %q: warnings %q", c.sources, c.val, s.Warnings)
		}
	}
	var bad *fault.Error
	if _, err := Run(context.Background(), option.Options{Resources: option.Resources{LoadedTokenizer: small(),
		Stdin: strings.NewReader("a\n"), FS: shardtest.New()},
		Settings: option.Settings{Sources: []string{"-"}, ValSources: []string{"-"}}}); !errors.As(err, &bad) {
		t.Errorf("standard input twice: %v", err)
	}
}

func TestOutMustBeAFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	put(t, file, []byte("mine"))
	for _, out := range []string{"s3://bucket", "gs://", "ftp://host/x", "file:///tmp/x", "https://host", file} {
		var bad *fault.Error
		if _, err := Run(context.Background(), option.Options{Resources: option.Resources{LoadedTokenizer: small()},
			Settings: option.Settings{Sources: []string{writeCorpus(t, 5, 1)}},
			Out:      out}); !errors.As(err, &bad) || bad.Option != "out" {
			t.Errorf("%s: %v", out, err)
		}
	}
}

func TestEndlessSourcesNeedABudget(t *testing.T) {
	effort.RacedElsewhere(t)
	corpus := writeCorpus(t, 20, 1)
	for _, c := range []struct {
		o    option.Settings
		want string // the option that is named; "" where the build ends
	}{
		{option.Settings{Sources: []string{"synth://wikitext?seed=1"}}, "max-examples"},
		{option.Settings{Sources: []string{corpus, "synth://recipes"}}, "max-examples"},
		{option.Settings{Sources: []string{"synth://wikitext?seed=1"}, MaxExamples: 3}, ""},
		{option.Settings{Sources: []string{"synth://wikitext?seed=1"}, MaxTokens: 300}, ""},
		{option.Settings{Sources: []string{corpus},
			ValSources: []string{"synth://wikitext?seed=1"}}, "max-val-examples"},
		{option.Settings{Sources: []string{corpus}, ValSources: []string{"synth://recipes?seed=1"},
			MaxValExamples: 3}, ""},
		{option.Settings{Sources: []string{corpus}}, ""},
	} {
		o := option.Options{Settings: c.o, Resources: option.Resources{Workers: 2, Memory: 64 << 20}} // how far it reads ahead
		o.Out, o.LoadedTokenizer, o.FS = "data", small(), shardtest.New()
		_, err := Run(context.Background(), o)
		var bad *fault.Error
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &bad) || string(bad.Option) != c.want) {
			t.Errorf("%q, val %q: %v; want one about %q", o.Sources, o.ValSources, err, c.want)
		}
	}
}

// TestBudgetGivesBackMemory reads until a budget ends the sources. The phase that follows, of the
// split val, needs the memory of the jobs that nobody took.
func TestBudgetGivesBackMemory(t *testing.T) {
	ctx, corpus := context.Background(), writeCorpus(t, 20_000, 1)
	o := option.Options{Resources: option.Resources{FS: shardtest.New(), LoadedTokenizer: small(), Workers: 1,
		Memory: 64 << 20},
		Out:      "data",
		Settings: option.Settings{Sources: []string{corpus}, ValSources: []string{corpus}, MaxExamples: 1}}
	b := newBuild(o.WithDefaults(), nil)
	if err := b.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	out, from, err := dataset.Create(b.opts.FS, b.opts.Out, b.Shards)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	f := must(b.newFlusher(ctx, out, from, nil))
	used := b.Ledger.Used()
	if err := b.runPhase(ctx, f); err != nil || f.stopped != "max-examples" {
		t.Fatalf("stopped by %q: %v", f.stopped, err)
	}
	if now := b.Ledger.Used(); now != used {
		t.Errorf("%d bytes are still leased", now-used)
	}
}
