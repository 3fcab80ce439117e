package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBucketMap builds into a bucket through a command, is killed and continues: the bytes are those of a local build
// of what the command answers.
func TestBucketMap(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		srv, data := servedLines(t, 40_000)
		build := func(out string) []string {
			return []string{"build", srv.URL + "/corpus.txt", "--map", "sed s/number/words/", "--out", out,
				"--checkpoint-every", "500", "--shard-bytes", "256KiB", "--memory", "128MiB", "--workers", "1",
				"--progress", "none"}
		}
		b.run(t, dir, 0, build(filepath.Join(dir, "whole"))...)
		want := treeOf(t, filepath.Join(dir, "whole"))
		out, machine := b.URI+"/mapped", filepath.Join(dir, "machine")
		b.stopMidway(t, srv, len(data)/2, syscall.SIGKILL, machine, "mapped", build(out))
		if printed := b.run(t, machine, 0, build(out)...); !strings.Contains(printed, "resumed at example") ||
			!strings.Contains(printed, "records that went through --map: 40,000") {
			t.Errorf("continued: %s", printed)
		}
		got := b.tree(t, "mapped")
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s differs", name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d files, want %d", len(got), len(want))
		}
		if again := b.run(t, machine, 0, build(out)...); !strings.Contains(again, "already built: "+out) {
			t.Errorf("built again: %s", again)
		}
	})
}
