package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/earlier"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// halves returns two corpora of short documents, some of them in both, and the sources that hold
// them.
func halves(t *testing.T) (first, second []testDocument, sources [2]string) {
	t.Helper()
	documents := corpusWithCopies(700, 11)
	for i := range documents { // about a row each
		documents[i].text = strings.ToValidUTF8(documents[i].text[:min(len(documents[i].text), 300)], "")
	}
	first, second = documents[:400], documents[400:]
	return first, second, [2]string{writeDocuments(t, first), writeDocuments(t, second)}
}

// appendTo builds the first source and adds the second, both with the same options.
func appendTo(t *testing.T, o option.Options, sources [2]string) (fsys *shardtest.FS, old map[string][]byte,
	s *report.Summary) {
	t.Helper()
	fsys = shardtest.New()
	o.FS, o.Out, o.LoadedTokenizer = fsys, "data", small()
	o.Sources = sources[:1]
	mustBuild(t, o)
	old = fsys.Files()
	o.Sources, o.Append = sources[1:], true
	return fsys, old, mustBuild(t, o)
}

func TestAppendedRows(t *testing.T) {
	_, _, sources := halves(t)
	base := option.Options{Settings: option.Settings{MaxLength: 40, ShardBytes: 24 << 10}}
	fsys, old, s := appendTo(t, base, sources)
	for name, data := range old {
		if strings.HasSuffix(name, shardfile.ManifestName) || strings.HasSuffix(name, shardfile.RunName) {
			continue
		}
		if got := fsys.Files()[name]; string(got) != string(data) {
			t.Errorf("%s was %d bytes and is %d, or others", name, len(data), len(got))
		}
	}
	whole := base
	whole.FS, whole.Out, whole.LoadedTokenizer, whole.Sources = shardtest.New(), "data", small(), sources[:]
	mustBuild(t, whole)
	want, wantDocuments := splitRows(t, whole.FS, "data", splitTrain)
	got, documents := splitRows(t, fsys, "data", splitTrain)
	if !slices.EqualFunc(want, got, slices.Equal) || !slices.Equal(wantDocuments, documents) {
		t.Errorf("%d rows, want the %d of a build from both sources", len(got), len(want))
	}
	m, err := shard.ReadManifest(fsys, "data")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Sources) != 2 || m.Sources[0].URI != sources[0] || m.Sources[1].URI != sources[1] ||
		m.Counters["documents"] != 700 {
		t.Errorf("sources %v, counters %v", m.Sources, m.Counters)
	}
	if n := int64(len(got)); s.Added >= n || s.Added == 0 || s.Splits[0].Examples != n {
		t.Errorf("added %d of %d, and the summary has %+v", s.Added, n, s.Splits)
	}
	if damage, err := shard.Verify(context.Background(), fsys, "data", nil); err != nil || len(damage) > 0 {
		t.Errorf("verify: %v, %v", damage, err)
	}
}

// TestAppendedCopies: what was held out stays out of train, and copies of what was there are found.
func TestAppendedCopies(t *testing.T) {
	first, second, sources := halves(t)
	fsys, _, s := appendTo(t, option.Options{Settings: option.Settings{MaxLength: 200, MaxValExamples: 60}}, sources)
	val, _ := splitRows(t, fsys, "data", splitVal)
	train, _ := splitRows(t, fsys, "data", splitTrain)
	held := map[string]bool{}
	for _, ids := range val {
		held[fmt.Sprint(ids)] = true
	}
	for _, ids := range train {
		if held[fmt.Sprint(ids)] {
			t.Fatal("a held-out text is in train")
		}
	}
	if len(val) != 60 || s.Copies == 0 {
		t.Errorf("%d rows held out, %d copies of them left out", len(val), s.Copies)
	}

	for _, dedup := range []filter.Dedup{filter.Exact, filter.Near} {
		o := option.Options{Settings: option.Settings{MaxLength: 200, Dedup: dedup}, Resources: option.Resources{Memory: 64 << 20}}
		fsys, _, _ := appendTo(t, o, sources)
		o.FS, o.Out, o.LoadedTokenizer, o.Sources = shardtest.New(), "data", small(), sources[:]
		whole := mustBuild(t, o)
		want, _ := splitRows(t, o.FS, "data", splitTrain)
		got, _ := splitRows(t, fsys, "data", splitTrain)
		m, err := shard.ReadManifest(fsys, "data")
		if err != nil || !slices.EqualFunc(want, got, slices.Equal) || !maps.Equal(m.Dropped, whole.DroppedBy) {
			t.Errorf("%s: %d rows, left out %v; of both sources at once %d, %v; %v", dedup, len(got), m.Dropped,
				len(want), whole.DroppedBy, err)
		}
		// A third addition compares with all before it.
		o.FS, o.Append, o.Sources = fsys, true,
			[]string{writeDocuments(t, append(slices.Clone(first[:40]),
				append(second[:40:40], testDocument{"en", 1, "something new at last"})...))}
		if s := mustBuild(t, o); s.Added != 1 || s.DroppedBy["dedup"] != 80 {
			t.Errorf("%s: added %d, left out %v", dedup, s.Added, s.DroppedBy)
		}
	}
}

func TestAppendBudgetsCountTheAddition(t *testing.T) {
	_, _, sources := halves(t)
	o := option.Options{Settings: option.Settings{MaxLength: 40, MaxExamples: 100, Sources: sources[:1]},
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Out:       "data"}
	mustBuild(t, o)
	o.Append, o.Sources, o.MaxExamples = true, sources[1:], 30
	s := mustBuild(t, o)
	if s.Added != 30 || s.Splits[0].Examples != 130 || !strings.Contains(s.Stopped.String(), "`max-examples` 30") {
		t.Errorf("added %d of %+v, stopped: %s", s.Added, s.Splits, s.Stopped)
	}
}

// TestAppendCrashes stops additions at operations of the file system and loses what was not synced.
// Until the end the folder is the old dataset; the same addition again ends with the same bytes.
func TestAppendCrashes(t *testing.T) {
	_, _, sources := halves(t)
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20, CheckpointEvery: 20,
			CheckpointInterval: 1},
		Settings: option.Settings{MaxLength: 40, ShardBytes: 16 << 10, Dedup: filter.Exact, MaxValExamples: 10,
			Sources: sources[:1]}}
	made := shardtest.New()
	base.FS = made
	mustBuild(t, base)
	oldManifest := made.Files()["data/"+shardfile.ManifestName]
	addition := base
	addition.Append, addition.Sources = true, sources[1:]
	third := addition
	third.Sources, third.MaxExamples = []string{writeCorpus(t, 40, 3)}, 5

	fresh := func() *shardtest.FS { return made.CrashImage(shardtest.LoseNone, 0) }
	whole := fresh()
	addition.FS = whole
	mustBuild(t, addition)
	want, ops, crashes, late := files(whole), whole.Ops(), 0, 0
	losses := []shardtest.Loss{shardtest.LoseAll, shardtest.LoseSome, shardtest.LoseNone}
	for k := 1; k <= ops; k++ {
		if k%effort.Of(16, 4, 1) > 0 && k < ops-12 {
			continue
		}
		fsys := fresh()
		fsys.CutAt(k)
		addition.FS = fsys
		if _, err := Run(context.Background(), addition); err == nil {
			break // checkpoints depend on time
		}
		after := fsys.CrashImage(losses[k%len(losses)], uint64(k))
		at := fmt.Sprintf("crash at operation %d of %d", k, ops)
		if now := after.Files()["data/"+shardfile.ManifestName]; string(now) != string(oldManifest) &&
			string(now) != string(want["data/"+shardfile.ManifestName]) {
			t.Fatalf("%s: the manifest is neither the old nor the new one", at)
		}
		if dataset.HasAddition(after, "data") &&
			string(after.Files()["data/"+shardfile.ManifestName]) != string(oldManifest) {
			third.FS = after.CrashImage(shardtest.LoseNone,
				0) // another addition removes what is left of the finished one
			mustBuild(t, third)
			late++
		}
		if damage, err := shard.Verify(context.Background(), after, "data", nil); err != nil || len(damage) > 0 {
			t.Fatalf("%s: verify: %v, %v", at, damage, err)
		}
		addition.FS = after
		if _, err := Run(context.Background(), addition); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		wantSame(t, at, want, files(after))
		crashes++
	}
	t.Logf("%d crashes in an addition of %d operations", crashes, ops)
	if crashes < 14 || late == 0 {
		t.Errorf("hardly any crash, %d after the new manifest was there", late)
	}
}

func TestAppendRefusals(t *testing.T) {
	_, _, sources := halves(t)
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings:  option.Settings{MaxLength: 40, Sources: sources[:1], MaxValExamples: 10}}
	added := o
	added.Append, added.Sources = true, sources[1:]
	if _, err := Run(context.Background(), added); err == nil || !strings.Contains(err.Error(), "no finished dataset") {
		t.Errorf("added to nothing: %v", err)
	}
	mustBuild(t, o)
	for _, c := range []struct {
		change func(*option.Options)
		want   string
	}{
		{func(o *option.Options) { o.MaxLength = 41 }, "`max-length` = 40, not 41; leave `max-length` out"},
		{func(o *option.Options) { o.Filter.MinChars = 3 }, "`min-chars` = unset, not 3"},
		{func(o *option.Options) { o.EOS = option.OwnToken }, "`eos` = unset"},
		{func(o *option.Options) { o.Dedup = filter.Exact }, "`dedup` = unset"},
		{func(o *option.Options) { o.MaxValExamples = 11 }, "leave the option out"},
		{func(o *option.Options) { o.MaxValExamples, o.ValSources = 0, sources[1:] }, "adds to train alone"},
		{func(o *option.Options) { o.Sources = nil }, "name the sources"},
		{func(o *option.Options) { o.Sources = sources[:] }, "is in data already"},
	} {
		bad := added
		c.change(&bad)
		if _, err := Run(context.Background(), bad); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	// The first build's value may be given again. The second time there is nothing to do.
	mustBuild(t, added)
	again := files(added.FS.(*shardtest.FS))
	added.MaxValExamples = 0
	if s := mustBuild(t, added); !s.AlreadyBuilt {
		t.Error("the same addition was made twice")
	}
	wantSame(t, "added twice", again, files(added.FS.(*shardtest.FS)))
	var settings *dataset.SettingsError
	if _, err := Run(context.Background(), o); !errors.As(err, &settings) || settings.Name != "additions" {
		t.Errorf("the first build again: %v", err)
	}
}

// TestAnotherAddition: an unfinished addition is finished, or given up, before another begins.
func TestAnotherAddition(t *testing.T) {
	_, second, sources := halves(t)
	fsys := shardtest.New()
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: fsys, Memory: 64 << 20},
		Settings:  option.Settings{MaxLength: 40, ShardBytes: 16 << 10, Dedup: filter.Exact, Sources: sources[:1]}}
	mustBuild(t, o)
	old := files(fsys)
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	put(t, broken, []byte(jsonLines(0, 3000, 2500)))
	o.Append, o.CheckpointEvery, o.CheckpointInterval = true, 50, 1
	o.Sources = []string{broken}
	if _, err := Run(context.Background(), o); err == nil {
		t.Fatal("a broken record was added")
	}
	if !dataset.HasAddition(fsys, "data") {
		t.Fatal("the unfinished addition left no checkpoint")
	}
	if damage, err := shard.Verify(context.Background(), fsys, "data", nil); err != nil || len(damage) > 0 {
		t.Errorf("verify with an unfinished addition: %v, %v", damage, err)
	}
	for name, data := range old {
		if string(fsys.Files()[name]) != string(data) {
			t.Errorf("%s changed", name)
		}
	}
	other := o
	other.Sources = []string{writeDocuments(t, second)}
	var settings *dataset.SettingsError
	if _, err := Run(context.Background(), other); !errors.As(err, &settings) ||
		!strings.Contains(err.Error(), "additions") {
		t.Errorf("another addition at the same time: %v", err)
	}
	image := fsys.CrashImage(shardtest.LoseNone, 0)
	skipping := o
	skipping.FS, skipping.OnBadRecord = image, option.SkipBadRecord
	if s := mustBuild(t, skipping); !s.Resumed || s.Rejected != 1 ||
		image.Files()["data/"+shardfile.AdditionName(shardfile.RejectsName, 1)] == nil {
		t.Errorf("resumed %v, %d bad records", s.Resumed, s.Rejected)
	}
	m, err := shard.ReadManifest(image, "data")
	if err != nil {
		t.Fatal(err)
	}
	var built struct {
		option.Settings
		Additions []option.Settings `json:"additions"`
	}
	if err := json.Unmarshal(m.Settings, &built); err != nil || built.OnBadRecord != option.FailAtBadRecord ||
		built.Additions[0].OnBadRecord != option.SkipBadRecord {
		t.Errorf("%s: %v", m.Settings, err)
	}
	skipping.OnBadRecord = option.FailAtBadRecord
	if s := mustBuild(t, skipping); !s.AlreadyBuilt {
		t.Error("the addition was made twice")
	}
	other.Overwrite = true
	mustBuild(t, other)
	clean := shardtest.New()
	for name, data := range old {
		clean.Put(name, data)
	}
	other.Overwrite, other.FS = false, clean
	mustBuild(t, other)
	wantSame(t, "after another addition was given up", files(clean), files(fsys))
}

// TestAppendNothing: an addition that keeps no document leaves no trace.
func TestAppendNothing(t *testing.T) {
	first, _, sources := halves(t)
	fsys := shardtest.New()
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: fsys, Memory: 64 << 20, CheckpointEvery: 1, CheckpointInterval: 1},
		Settings:  option.Settings{Dedup: filter.Exact, Sources: sources[:1]}}
	mustBuild(t, o)
	old := fsys.Files()
	o.Append, o.Sources = true, []string{writeDocuments(t, first)}
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "no document is left") {
		t.Fatalf("added copies alone: %v", err)
	}
	wantSame(t, "after nothing was added", old, fsys.Files())
}

// TestAppendToDamaged: what the dataset keeps for additions is compared with the manifest.
func TestAppendToDamaged(t *testing.T) {
	_, _, sources := halves(t)
	for _, name := range []string{shardfile.HashesName(0), shardfile.HeldOutName} {
		fsys := shardtest.New()
		o := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), FS: fsys, Memory: 64 << 20},
			Settings:  option.Settings{Dedup: filter.Exact, MaxValExamples: 20, Sources: sources[:1]}}
		mustBuild(t, o)
		fsys.Flip("data/"+name, 9, 1)
		o.Append, o.Sources = true, sources[1:]
		if _, err := Run(context.Background(), o); !errors.Is(err, shard.ErrCorrupt) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s with a flipped bit: %v", name, err)
		}
		if n := fsys.OpenFiles(); n > 0 {
			t.Errorf("%d files are open", n)
		}
	}
}

// TestAppendStandardInput: standard input brings something else on every run.
func TestAppendStandardInput(t *testing.T) {
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings:  option.Settings{Sources: []string{"-"}, Format: "text"}}
	for i, text := range []string{"one\ntwo\n", "three\n", "three\nfour\n"} {
		o.Append, o.Stdin = i > 0, strings.NewReader(text)
		mustBuild(t, o)
	}
	if rows, documents := splitRows(t, o.FS, "data", splitTrain); len(rows) != 5 ||
		!slices.Equal(documents, []int64{0, 1, 2, 3, 4}) {
		t.Errorf("%d rows of documents %v", len(rows), documents)
	}
}

// TestAppendInherits: what an addition does not say is as in the dataset, and its rows are those of one build of both;
// a value that is said, the default too, is compared.
func TestAppendInherits(t *testing.T) {
	_, _, sources := halves(t)
	fs := shardtest.New()
	o := option.Options{Out: "both", Resources: option.Resources{LoadedTokenizer: small(), FS: fs},
		Settings: option.Settings{MaxLength: 40, Sources: sources[:], EOS: option.OwnToken, Overflow: example.Truncate,
			Filter: filter.Options{MinChars: 5}}}
	mustBuild(t, o)
	want, _ := splitRows(t, fs, "both", "train")
	o.Out, o.Sources = "data", sources[:1]
	mustBuild(t, o)
	added := option.Options{Out: "data", Append: true, Resources: option.Resources{LoadedTokenizer: small(), FS: fs},
		Settings: option.Settings{Sources: sources[1:]}}
	for _, given := range [][]string{{"max-length"}, {"eos"}, {"overflow"}, {"min-chars"}, {"pack"}} {
		bad := added
		bad.Given, bad.MaxLength = given, 512
		if given[0] == "pack" {
			bad.Pack = pack.BFD
		}
		var differs *earlier.AppendError
		if _, err := Run(context.Background(), bad); !errors.As(err, &differs) || differs.Name != given[0] {
			t.Errorf("%v given: %v", given, err)
		}
	}
	pattern := added
	pattern.Given, pattern.TokenizerPattern = []string{"tokenizer-pattern"}, "gpt2"
	if _, err := Run(context.Background(), pattern); err == nil || !strings.Contains(err.Error(), "is about a `tokenizer` that is given with it") {
		t.Errorf("a pattern without its tokenizer: %v", err)
	}
	mustBuild(t, added)
	if got, _ := splitRows(t, fs, "data", "train"); !reflect.DeepEqual(got, want) {
		t.Errorf("%d rows, not the %d of one build", len(got), len(want))
	}
}

// TestAppendReadsTheSameField: an addition is of the field that the dataset was made from, where no other is given.
func TestAppendReadsTheSameField(t *testing.T) {
	fs, paths := shardtest.New(), [2]string{filepath.Join(t.TempDir(), "a.jsonl"), filepath.Join(t.TempDir(), "b.jsonl")}
	for i, path := range paths {
		put(t, path, fmt.Appendf(nil, `{"text":"what is read by default","body":"number %d"}`, i))
	}
	o := option.Options{Out: "whole", Resources: option.Resources{LoadedTokenizer: small(), FS: fs},
		Settings: option.Settings{Sources: paths[:], TextField: "body"}}
	mustBuild(t, o)
	o.Out, o.Sources = "data", paths[:1]
	mustBuild(t, o)
	o.Append, o.Sources, o.TextField = true, paths[1:], ""
	mustBuild(t, o)
	want, _ := splitRows(t, fs, "whole", splitTrain)
	if got, _ := splitRows(t, fs, "data", splitTrain); !reflect.DeepEqual(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}
