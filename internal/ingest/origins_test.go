package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// blankRich returns text with blank lines between its other lines.
func blankRich(lines int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 8))
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d of %d%s", i, seed, strings.Repeat("\n", 1+rng.IntN(4)))
	}
	return b.String()
}

// checkOrigins compares what a dataset knows of each row's document with the lines of the sources.
func checkOrigins(t *testing.T, fsys shardfile.FS, dir, split string) {
	t.Helper()
	d, err := shard.OpenFS(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	found, err := origins.OpenSplit(fsys, dir, d.Manifest(), split)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	rows, err := d.Split(split)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	var row shard.Row
	for i := range rows.NumRows() {
		if err := rows.ReadRow(i, &row); err != nil {
			t.Fatal(err)
		}
		o, ok, err := found.Find(row.Document)
		if err != nil || !ok {
			t.Fatalf("document %d: %v %v", row.Document, ok, err)
		}
		if lines[o.Source] == nil {
			data, err := os.ReadFile(o.Source)
			if err != nil {
				t.Fatal(err)
			}
			lines[o.Source] = strings.Split(string(data), "\n")
		}
		text := small().Decode(row.AppendInputIDs(nil))
		if line := lines[o.Source][o.Record-1]; row.Part == 0 && !strings.HasPrefix(line, text) ||
			!strings.Contains(line, text) {
			t.Fatalf("document %d: record %d of %s is %q, the row has %q", row.Document, o.Record, o.Source, line, text)
		}
	}
}

// TestOriginsLeadToTheRecords builds from several inputs with blank lines, stopped again and again.
func TestOriginsLeadToTheRecords(t *testing.T) {
	dir := t.TempDir()
	var sources []string
	for i, lines := range []int{4000, 3, 5000} {
		sources = append(sources, filepath.Join(dir, fmt.Sprint("part", i, ".txt")))
		put(t, sources[i], []byte(blankRich(lines, uint64(i))))
	}
	val := filepath.Join(dir, "val.txt")
	put(t, val, []byte(blankRich(6500, 7)))
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, CheckpointEvery: 100, CheckpointInterval: 1},
		Settings:  option.Settings{Sources: sources, ValSources: []string{val}, MaxLength: 8, Format: "text"}}
	whole := base
	wholeFS := shardtest.New()
	whole.FS = wholeFS
	mustBuild(t, whole)
	want, ops := files(wholeFS), wholeFS.Ops()
	for _, name := range []string{shardfile.OriginsName, shardfile.ValOriginsName} {
		if n := len(want[filepath.Join("data", name)]); n < origins.PageBytes {
			t.Fatalf("%s has %d bytes, less than a page: the test shows nothing", name, n)
		}
	}
	checkOrigins(t, wholeFS, "data", "train")
	checkOrigins(t, wholeFS, "data", "val")

	rng := rand.New(rand.NewPCG(1, 2))
	for k := 1 + rng.IntN(20); k <= ops; k += ops/effort.Of(4, 12, 100) + rng.IntN(9) {
		if !wantSameAfterCrash(t, base, k, want) {
			break
		}
	}
	// The last operations are those that finish the dataset.
	for k := ops - effort.Of(6, 16, 60); k <= ops; k++ {
		fsys := shardtest.New()
		fsys.CutAt(k)
		o := base
		o.FS = fsys
		if _, err := Run(context.Background(), o); err == nil {
			break
		}
		for seed := range uint64(effort.Of(2, 4, 4)) {
			if testing.Short() && int(seed) != k%2 {
				continue
			}
			after := fsys.CrashImage([]shardtest.Loss{shardtest.LoseAll, shardtest.LoseSome}[min(seed, 1)], seed)
			o.FS = after
			mustBuild(t, o)
			wantSame(t, fmt.Sprintf("crash at operation %d of %d, seed %d", k, ops, seed), want, files(after))
		}
	}
}
