package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// A testDocument is a document of a generated corpus.
type testDocument struct {
	lang string
	n    int
	text string
}

// corpusWithCopies makes n documents. Many come twice, and a few are longer than a piece.
func corpusWithCopies(n int, seed uint64) (documents []testDocument) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	for i := range n {
		d := testDocument{lang: []string{"en", "de", "fr"}[rnd.IntN(3)], n: i % 10}
		words := 1 + rnd.IntN(40)
		if i%400 == 100 {
			words = 3 * job.PieceBytes / 6
		}
		var b strings.Builder
		for range words {
			fmt.Fprintf(&b, "%s%d ", []string{"word", "größe", "語"}[rnd.IntN(3)], rnd.IntN(500))
		}
		if d.text = b.String(); rnd.IntN(3) == 0 && i > 0 {
			d.text = documents[rnd.IntN(i)].text
		}
		documents = append(documents, d)
	}
	return documents
}

func writeDocuments(t testing.TB, documents []testDocument) string {
	t.Helper()
	var b strings.Builder
	for i, d := range documents {
		fmt.Fprintf(&b, "{\"id\": %d, \"meta\": {\"lang\": %q, \"n\": %d.0}, \"text\": %q}\n", i, d.lang, d.n, d.text)
	}
	path := filepath.Join(t.TempDir(), "corpus.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// splitRows returns the ids of all rows of a split.
func splitRows(t testing.TB, fsys shardfile.FS, dir, split string) (rows [][]uint32, documents []int64) {
	t.Helper()
	for _, row := range readRows(t, fsys, dir, split) {
		rows, documents = append(rows, row.AppendInputIDs(nil)), append(documents, row.Document)
	}
	return rows, documents
}

// filteredOptions returns options that use every filter at once.
func filteredOptions(source string, dedup filter.Dedup) option.Options {
	return option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Memory: 64 << 20, Workers: 2},
		Settings: option.Settings{Sources: []string{source}, ShardBytes: 24 << 10, MaxLength: 100, Dedup: dedup,
			Filter: filter.Options{Where: []string{"meta.lang=en", "meta.lang=de", "meta.n=1", "meta.n=2", "meta.n=3",
				"meta.n=0"}, Match: []string{"word[0-9]", "ß"}, NoMatch: []string{"word77 "}, MinChars: 30,
				MaxChars: 1 << 19}}}
}

// TestShapingEqualsAReference compares filters with plain loops over the same documents.
func TestShapingEqualsAReference(t *testing.T) {
	documents := corpusWithCopies(2500, 1)
	fsys := shardtest.New()
	o := filteredOptions(writeDocuments(t, documents), filter.Exact)
	o.FS = fsys
	s := mustBuild(t, o)

	dropped, seen := map[string]int64{}, map[string]bool{}
	var kept []testDocument
	var ordinals []int64
	for i, d := range documents {
		chars := utf8.RuneCountInString(d.text)
		switch {
		case d.lang == "fr" || d.n > 3:
			dropped["where"]++
		case chars < 30:
			dropped["min-chars"]++
		case chars > 1<<19:
			dropped["max-chars"]++
		case !regexp.MustCompile("word[0-9]").MatchString(d.text) || !strings.Contains(d.text, "ß"):
			dropped["match"]++
		case strings.Contains(d.text, "word77 "):
			dropped["no-match"]++
		case seen[d.text]:
			dropped["dedup"]++
		default:
			seen[d.text] = true
			kept, ordinals = append(kept, d), append(ordinals, int64(i))
		}
	}
	if !maps.Equal(s.DroppedBy, dropped) || s.Documents != int64(len(documents)) {
		t.Errorf("left out %v of %d, want %v of %d", s.DroppedBy, s.Documents, dropped, len(documents))
	}
	m, err := shard.ReadManifest(fsys, "data")
	if err != nil || !maps.Equal(m.Dropped, dropped) {
		t.Errorf("the manifest has %v, %v", m.Dropped, err)
	}
	plain := shardtest.New()
	mustBuild(t, option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: plain},
		Settings:  option.Settings{Sources: []string{writeDocuments(t, kept)}, MaxLength: 100}})
	want, _ := splitRows(t, plain, "data", splitTrain)
	got, of := splitRows(t, fsys, "data", splitTrain)
	if !slices.EqualFunc(want, got, slices.Equal) {
		t.Errorf("%d rows, want %d, or other ids", len(got), len(want))
	}
	if !slices.Equal(slices.Compact(of), ordinals) {
		t.Error("documents have other ordinals than in the source")
	}
}

func TestShapedBytesDependOnOutputOptionsOnly(t *testing.T) {
	path := writeDocuments(t, corpusWithCopies(1500, 2))
	for _, dedup := range []filter.Dedup{filter.Exact, filter.Near} {
		base := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), Memory: 64 << 20, Workers: 2},
			Settings: option.Settings{Sources: []string{path}, MaxLength: 100, Dedup: dedup, MaxValExamples: 60,
				Filter: filter.Options{Sample: 0.8}}}
		want, _ := builtWhole(t, base)
		wantSameWithAnyResources(t, base, want)
	}
}

// TestShapedCrashes stops builds at operations of the file system, loses what was not synced, and
// continues.
func TestShapedCrashes(t *testing.T) {
	path := writeDocuments(t, corpusWithCopies(400, 3))
	for _, dedup := range []filter.Dedup{filter.Exact, filter.Near} {
		base := filteredOptions(path, dedup)
		base.MaxValExamples, base.Workers, base.CheckpointEvery, base.CheckpointInterval = 10, 2, 5, 1
		want, ops := builtWhole(t, base)
		crashes := 0
		for k := 1; k <= ops && wantSameAfterCrash(t, base, k, want); k += effort.Of(11, 5, 1) {
			crashes++
		}
		t.Logf("%d crashes in a build of %d operations", crashes, ops)
		if crashes < 5 {
			t.Error("hardly any crash")
		}
	}
}

// TestCopiesAcrossSplits: no text is in both splits, and each kind of copy is counted.
func TestCopiesAcrossSplits(t *testing.T) {
	documents := corpusWithCopies(1200, 4)
	for i := range documents { // short: a document a row
		documents[i].text = strings.ToValidUTF8(documents[i].text[:min(len(documents[i].text), 40)], "")
	}
	documents = append(documents, documents...)
	path := writeDocuments(t, documents)
	distinct := map[string]bool{}
	for _, d := range documents {
		distinct[d.text] = true
	}
	check := func(o option.Options) *report.Summary {
		t.Helper()
		fsys := shardtest.New()
		o.FS, o.Out, o.LoadedTokenizer, o.Dedup = fsys, "data", small(), filter.Exact
		s := mustBuild(t, o)
		train, _ := splitRows(t, fsys, "data", splitTrain)
		val, _ := splitRows(t, fsys, "data", splitVal)
		all := map[string]bool{}
		for _, ids := range append(train, val...) {
			if all[fmt.Sprint(ids)] {
				t.Fatal("a text is twice in the dataset")
			}
			all[fmt.Sprint(ids)] = true
		}
		if len(all) != len(distinct) {
			t.Errorf("%d texts, want %d", len(all), len(distinct))
		}
		return s
	}
	s := check(option.Options{Settings: option.Settings{Sources: []string{path}, MaxValExamples: 30}})
	if s.Copies == 0 || s.Copies+s.DroppedBy["dedup"] != int64(len(documents)-len(distinct)) {
		t.Errorf("%d copies of held-out documents and %v of %d", s.Copies, s.DroppedBy, len(documents)-len(distinct))
	}
	other := corpusWithCopies(1, 9)
	other[0].text = "a text of val alone"
	distinct[other[0].text] = true
	s = check(option.Options{Settings: option.Settings{Sources: []string{path},
		ValSources: []string{writeDocuments(t, append(documents[:50:50], other...))}}})
	if s.DroppedBy["dedup-val"] != 50 {
		t.Errorf("left out of val: %v", s.DroppedBy)
	}
}

func TestFiltersThatLeaveNothing(t *testing.T) {
	path := writeDocuments(t, corpusWithCopies(50, 5))
	text := filepath.Join(t.TempDir(), "plain.txt")
	put(t, text, []byte("one line\n"+strings.Repeat("long ", 1<<20)+"\n"))
	for _, c := range []struct {
		source string
		filter filter.Options
		dedup  filter.Dedup
		want   []string
	}{
		{path, filter.Options{Where: []string{"lnag=en"}}, "", []string{"`where`: 50 of 50",
			`no record has the field "lnag"; the first has id, meta, text`}},
		{path, filter.Options{Match: []string{"never"}, MinChars: 100}, "", []string{"`match`", "`min-chars`"}},
		{text, filter.Options{Where: []string{"lang=en"}}, "", []string{"`where` lang=en",
			"format text have no fields", "plain.txt"}},
		{text, filter.Options{}, filter.Exact, []string{"plain.txt, row 2", "judge whole documents",
			"`on-bad-record` skip"}},
	} {
		fsys := shardtest.New()
		o := option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), FS: fsys, CheckpointEvery: 1, CheckpointInterval: 1},
			Settings:  option.Settings{Sources: []string{c.source}, Filter: c.filter, Dedup: c.dedup}}
		_, err := Run(context.Background(), o)
		if err == nil {
			t.Fatalf("%+v: a dataset of nothing", c.filter)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v\nwant %s", c.filter, err, want)
			}
		}
		if _, err := shard.ReadManifest(fsys, "data"); !errors.Is(err, shard.ErrNotFound) {
			t.Errorf("%+v: a manifest: %v", c.filter, err)
		}
		o.Filter, o.Dedup, o.OnBadRecord = filter.Options{}, filter.Exact,
			option.SkipBadRecord // other settings in the same folder
		if c.dedup == "" {
			mustBuild(t, o)
		}
	}
	var bad *fault.Error
	if _, err := Run(context.Background(), option.Options{Settings: option.Settings{Sources: []string{path},
		Dedup: "some"},
		Resources: option.Resources{FS: shardtest.New()}}); !errors.As(err, &bad) {
		t.Errorf("an unknown kind of dedup: %v", err)
	}
}
