package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// lineFile writes a file of one record and returns its path.
func lineFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	put(t, path, []byte(fmt.Sprintf("{\"text\": %q}\n", text)))
	return path
}

// sourceNames returns the base names of the sources that a dataset lists.
func sourceNames(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	for _, s := range must(shard.ReadManifest(shardfile.OS(), dir)).Sources {
		names = append(names, filepath.Base(s.URI))
	}
	return strings.Join(names, " ")
}

// TestAppendFolder adds a folder again and again: of it, what the dataset has is skipped, however it is
// named, and files that changed are refused.
func TestAppendFolder(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "corpus")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	first := lineFile(t, dir, "a.jsonl", "first one")
	lineFile(t, dir, "sub/b.jsonl", "second one")
	o := option.Options{Resources: option.Resources{LoadedTokenizer: small()},
		Out:      filepath.Join(home, "data"),
		Settings: option.Settings{Sources: []string{dir}}}
	mustBuild(t, o)
	o.Append = true

	s := mustBuild(t, o)
	if !s.AlreadyBuilt || !strings.Contains(s.Stopped.String(), "every file") {
		t.Errorf("nothing new: %+v", s)
	}
	lineFile(t, dir, "sub/c.jsonl", "third one")
	if s = mustBuild(t, o); s.Added != 1 || !strings.Contains(fault.Join(s.Notes, "\n").String(),
		"skipped 2 files that the dataset has already (a.jsonl, …)") || strings.Contains(fault.Join(s.Notes, "\n").String(), "explicitly") {
		t.Errorf("added %d: %q", s.Added, s.Notes)
	}
	// Under equal settings, a second addition of the same folder is another one.
	lineFile(t, dir, "d.jsonl", "fourth one")
	t.Chdir(home)
	o.Sources = []string{"corpus/**/*.jsonl"}
	if s = mustBuild(t, o); s.Added != 1 {
		t.Errorf("a pattern, and another path: added %d: %q", s.Added, s.Notes)
	}
	if s = mustBuild(t, o); !s.AlreadyBuilt {
		t.Errorf("the same again: %+v", s)
	}
	lineFile(t, dir, "e.jsonl", "fifth one")
	if s = mustBuild(t, o); s.Added != 1 {
		t.Errorf("the same pattern once more: added %d", s.Added)
	}
	if got := sourceNames(t, o.Out); got != "a.jsonl b.jsonl c.jsonl d.jsonl e.jsonl" {
		t.Errorf("sources %s", got)
	}

	// A file that was only touched is read and compared; the sources before the additions, too.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(first, later, later); err != nil {
		t.Fatal(err)
	}
	if s = mustBuild(t, o); !s.AlreadyBuilt {
		t.Errorf("after a touch: %+v", s)
	}
	lineFile(t, dir, "a.jsonl", "FIRST one")
	lineFile(t, dir, "sub/c.jsonl", "the third one is longer")
	lineFile(t, dir, "f.jsonl", "sixth one")
	_, err := Run(context.Background(), o)
	var option *fault.Error
	if !errors.As(err, &option) ||
		!strings.Contains(err.Error(), "corpus/a.jsonl, corpus/sub/c.jsonl; nothing was added") {
		t.Errorf("changed files: %v", err)
	}
	o.Exclude = []string{"a.jsonl", "c.jsonl"}
	if s = mustBuild(t, o); s.Added != 1 {
		t.Errorf("without the changed files: added %d", s.Added)
	}
	if damage, err := shard.Verify(context.Background(), shardfile.OS(), o.Out, nil); err != nil || len(damage) > 0 {
		t.Errorf("verify: %v %v", damage, err)
	}
}

// TestAppendFolderWithoutTimes: where run.json is lost, or says nothing about a file, content decides.
func TestAppendFolderWithoutTimes(t *testing.T) {
	home := t.TempDir()
	first := lineFile(t, home, "a.jsonl", "first one")
	o := option.Options{Resources: option.Resources{LoadedTokenizer: small()},
		Out:      filepath.Join(t.TempDir(), "data"),
		Settings: option.Settings{Sources: []string{home}}}
	mustBuild(t, o)
	if err := os.Remove(filepath.Join(o.Out, shardfile.RunName)); err != nil {
		t.Fatal(err)
	}
	lineFile(t, home, "b.jsonl", "second one")
	o.Append = true
	if s := mustBuild(t, o); s.Added != 1 {
		t.Errorf("added %d", s.Added)
	}
	lineFile(t, home, "a.jsonl", "FIRST one")
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("a changed file: %v", err)
	}
}

// TestAppendToUnlistedFolder: the files of a large folder are not listed, so that none of them can be told
// from a new one.
func TestAppendToUnlistedFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 1001 {
		lineFile(t, dir, fmt.Sprintf("%04d.jsonl", i), "one")
	}
	o := option.Options{Resources: option.Resources{LoadedTokenizer: small()},
		Out:      filepath.Join(t.TempDir(), "data"),
		Settings: option.Settings{Sources: []string{dir}}}
	mustBuild(t, o)
	lineFile(t, dir, "new.jsonl", "new")
	o.Append = true
	for _, arg := range []string{dir, filepath.Join(dir, "*.jsonl")} {
		o.Sources = []string{arg}
		if _, err := Run(context.Background(), o); err == nil ||
			!strings.Contains(err.Error(), "from 1001 files of "+dir) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	o.Sources = []string{filepath.Join(dir, "new.jsonl")}
	if s := mustBuild(t, o); s.Added != 1 {
		t.Errorf("a file by name: added %d", s.Added)
	}
}

// TestDatasetsAmongSources: folders that hold datasets of dsload, whole, damaged, unfinished or in parts, are
// no sources, in folders and globs.
func TestDatasetsAmongSources(t *testing.T) {
	home := t.TempDir()
	text := lineFile(t, home, "a.jsonl", "first one")
	o := option.Options{Resources: option.Resources{LoadedTokenizer: small()},
		Settings: option.Settings{Sources: []string{text}}}
	o.Out = filepath.Join(home, "deep", "down", "old")
	mustBuild(t, o)
	lineFile(t, filepath.Join(home, "deep"), "b.jsonl", "second one")
	put(t, filepath.Join(home, "deep", shardfile.ManifestName), []byte(`{"name": "somebody else's"}`))
	buildParts(t, planned(t, o, 1), filepath.Join(home, "parts"))
	broken := filepath.Join(home, "broken.jsonl.txt")
	put(t, broken, []byte(jsonLines(0, 300, 250)))
	unfinished := o
	unfinished.Sources, unfinished.Format, unfinished.Out = []string{broken}, "jsonl", filepath.Join(home, "unfinished")
	unfinished.CheckpointEvery, unfinished.CheckpointInterval = 1, 1
	if _, err := Run(context.Background(), unfinished); err == nil {
		t.Fatal("a broken record was built")
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arg, note string }{
		{home, "3 folders of datasets that dsload built (deep/down/old, …)"},
		{filepath.Join(home, "**", "*"), "3 folders of datasets that dsload built ("},
		{filepath.Join(home, "*"), "folders of datasets that dsload built ("},
	} {
		all := o
		all.Sources, all.Out = []string{c.arg}, filepath.Join(t.TempDir(), "new")
		s := mustBuild(t, all)
		if notes := fault.Join(s.Notes, "\n").String(); s.Documents != 2 || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %d documents, %q", c.arg, s.Documents, notes)
		}
	}
	damagedDataset(t, o)
	// The files of a dataset that is itself the source are not text; others next to them are.
	inside := o
	inside.Sources, inside.Out = []string{filepath.Join(o.Out, "*")}, filepath.Join(t.TempDir(), "new")
	if _, err := Run(context.Background(), inside); err == nil ||
		!strings.Contains(err.Error(), "of a dataset that dsload built (") {
		t.Errorf("a dataset: %v", err)
	}
	lineFile(t, o.Out, "beside.jsonl", "third one")
	if s := mustBuild(t, inside); s.Documents != 1 {
		t.Errorf("beside a dataset: %d documents", s.Documents)
	}
}

// damagedDataset: a dataset among the sources is recognized by its shards where its manifest is damaged or gone.
func damagedDataset(t *testing.T, built option.Options) {
	home := t.TempDir()
	lineFile(t, home, "a.jsonl", "first one")
	old := filepath.Join(home, "old")
	if err := os.CopyFS(old, os.DirFS(built.Out)); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(old, shardfile.ManifestName)
	all := built
	all.Sources = []string{home}
	for what, damage := range map[string]func() error{
		"cut":   func() error { return os.Truncate(manifest, 5) },
		"empty": func() error { return os.Truncate(manifest, 0) },
		"gone":  func() error { return os.Remove(manifest) },
	} {
		all.Out = filepath.Join(t.TempDir(), "new")
		put(t, manifest, []byte(`{"format"`))
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		s := mustBuild(t, all)
		if notes := fault.Join(s.Notes, "\n").String(); s.Documents != 1 ||
			!strings.Contains(notes, "1 folder of a dataset that dsload built (old)") {
			t.Errorf("manifest %s: %d documents, %q", what, s.Documents, notes)
		}
	}
}
