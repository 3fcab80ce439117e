package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// watchedFS calls a function with the names of a folder.
type watchedFS struct {
	shardfile.FS
	list func(names []string) []string
}

func (f *watchedFS) ReadDir(dir string) ([]string, error) {
	names, err := f.FS.ReadDir(dir)
	if f.list != nil {
		names = f.list(names)
	}
	return names, err
}

func lateOptions(t *testing.T) (o option.Options, whole string) {
	o = option.Options{Settings: option.Settings{Sources: []string{writeCorpus(t, 300, 4)}, MaxLength: 64,
		ShardBytes: 8 << 10, MaxExamples: 150},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	single := o
	single.Out = filepath.Join(t.TempDir(), "whole")
	mustBuild(t, single)
	return o, single.Out
}

// TestPartAfterMergeHarmsNothing builds a part again whose files a merge removes while the folder is
// listed, and another after a merge that was killed.
func TestPartAfterMergeHarmsNothing(t *testing.T) {
	o, whole := lateOptions(t)
	p, dir := planned(t, o, 3), filepath.Join(t.TempDir(), "out")
	buildParts(t, p, dir)
	for _, name := range []string{"build.lock", "manifest.json.tmp", "origins.bin.tmp", "run.json.tmp"} {
		put(t, filepath.Join(dir, name), []byte(`{"pid":1}`))
	}
	if s, err := buildPart(p, 1, dir); err != nil || !s.AlreadyBuilt {
		t.Errorf("after a merge that was killed: %+v %v", s, err)
	}
	part := must(p.Partition(0))
	again := part.Options()
	again.Out, again.LoadedTokenizer, again.Memory, again.Workers = dir, small(), 64<<20, 2
	merged := false
	again.FS = &watchedFS{FS: shardfile.OS(), list: func(names []string) []string {
		if merged {
			return names
		}
		merged = true
		if _, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil {
			t.Error(err)
		}
		return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "part-") })
	}}
	if s, err := RunPartition(context.Background(), again, part); err != nil || !merged || !s.AlreadyBuilt {
		t.Errorf("while it was merged: %+v %v", s, err)
	}
	sameDataset(t, dir, whole, false)
	if _, err := dataset.ReadPartManifest(shardfile.OS(), dir, 0); !errors.Is(err, shard.ErrNotFound) {
		t.Errorf("the manifest of part 0 after the merge: %v", err)
	}
}

// TestPartWithABadRecord follows the advice of the error: the flag is one of the plan.
func TestPartWithABadRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	put(t, path, []byte("{\"text\": \"good\"}\n{bad\n{\"text\": \"good too\"}\n"))
	o := option.Options{Settings: option.Settings{Sources: []string{path}},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 1, Memory: 64 << 20}}
	_, err := buildPart(planned(t, o, 1), 0, filepath.Join(t.TempDir(), "out"))
	if err == nil || !strings.Contains(err.Error(), "make the plan again with `on-bad-record` skip") {
		t.Errorf("a part: %v", err)
	}
	o.MaxValExamples = 1
	if _, err := MakePlan(context.Background(), o, 1); err == nil || strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("a plan that reads the record: %v", err)
	}
	o.MaxValExamples, o.OnBadRecord = 0, option.SkipBadRecord
	if s, err := buildPart(planned(t, o, 1), 0, filepath.Join(t.TempDir(), "out")); err != nil || s.Rejected != 1 {
		t.Errorf("with a new plan: %+v %v", s, err)
	}
}

// A merge refuses a part whose origins are cut short anywhere, and removes nothing.
func TestMergeOfCutOrigins(t *testing.T) {
	o, _ := lateOptions(t)
	p, dir := planned(t, o, 3), filepath.Join(t.TempDir(), "out")
	buildParts(t, p, dir)
	path := filepath.Join(dir, "part-p00001.origins")
	whole := must(os.ReadFile(path))
	for _, n := range []int{0, 5, 8, 20, len(whole) - 1} {
		put(t, path, whole[:n])
		before := must(shardfile.OS().ReadDir(dir))
		_, err := merge.Run(context.Background(), merge.Options{Dir: dir})
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(whole), err)
		}
		if after := must(shardfile.OS().ReadDir(dir)); len(after) < len(before) {
			t.Errorf("cut to %d bytes: of %q only %q is left", n, before, after)
		}
	}
	put(t, path, whole)
	if _, err := merge.Run(context.Background(), merge.Options{Dir: dir}); err != nil {
		t.Error(err)
	}
}
