package main

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// versions returns the ETag of each object of a folder.
func (b *bucketTest) versions(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := b.store.List(context.Background(), b.URI+"/"+folder, func(name string, o remote.Object) error {
		out[name] = o.ETag + o.Modified.String()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBucketAppend checks that adding to a dataset in a bucket gives the same bytes as in a folder:
// after a kill, on another machine, and after both. Until the end the old dataset stays there, and
// its shards are never written again.
func TestBucketAppend(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		data := append(remoteLines(1000), remoteLines(25_000)[250_000:]...)
		srv := remotetest.New()
		defer srv.Close()
		srv.Put("/old.txt", remotetest.File{Data: remoteLines(6000)})
		srv.Put("/corpus.txt", remotetest.File{Data: data})
		build := func(source, out string, more ...string) []string {
			return append([]string{"build", srv.URL + source, "--out", out, "--checkpoint-every", "500",
				"--shard-bytes", "128KiB",
				"--memory", "64MiB", "--workers", "1", "--progress", "none", "--dedup", "near", "--max-val-examples",
				"50"}, more...)
		}
		local := filepath.Join(dir, "local")
		b.run(t, dir, 0, build("/old.txt", local)...)
		old := treeOf(t, local)
		b.run(t, dir, 0, build("/corpus.txt", local, "--append")...)
		want := treeOf(t, local)
		whole := map[string]string{"gs": "plain", "s3": "killed", "az": "plain"}[b.URI[:2]]
		for _, c := range []struct {
			kind                  string
			signal                syscall.Signal
			folder, first, second string // the last two are machines
		}{{"gs", 0, "plain", "a", "a"}, {"az", 0, "plain", "a", "a"},
			{"s3", syscall.SIGKILL, "killed", "a", "a"},
			{"gs", syscall.SIGTERM, "moved", "a", "b"}, {"s3", syscall.SIGKILL, "lost", "b", "c"}} {
			if c.kind != b.URI[:2] {
				continue // each kind of bucket runs some of the cases
			}
			out := b.URI + "/append/" + c.folder
			first, second := filepath.Join(dir, c.first), filepath.Join(dir, c.second)
			b.run(t, first, 0, build("/old.txt", out)...)
			before := b.versions(t, "append/"+c.folder)
			add := build("/corpus.txt", out, "--append")
			if c.signal != 0 {
				b.stopMidway(t, srv, 3*len(data)/4, c.signal, first, "append/"+c.folder, add)
				b.run(t, second, 0, "verify", out)
				if shown := b.run(t, second, 0, "inspect", out); !strings.Contains(shown, "an addition is unfinished") {
					t.Errorf("%s: inspect: %s", c.folder, shown)
				}
				if shown := b.run(t, dir, 0, build("/old.txt", out)...); !strings.Contains(shown, "already built") {
					t.Errorf("%s: the first build again: %s", c.folder, shown)
				}
			}
			printed := b.run(t, second, 0, add...)
			if resumed := strings.Contains(printed, "resumed at example"); c.signal != 0 &&
				resumed == (c.folder == "lost") {
				t.Errorf("%s: resumed is %v: %s", c.folder, resumed, printed)
			}
			got := b.tree(t, "append/"+c.folder)
			for name, text := range want {
				if got[name] != text {
					t.Errorf("%s: %s differs", c.folder, name)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s: %d files, want %d: %v", c.folder, len(got), len(want), maps.Keys(got))
			}
			after := b.versions(t, "append/"+c.folder)
			for name := range old {
				if name != "manifest.json" && name != "run.json" && after[name] != before[name] {
					t.Errorf("%s: %s was written again", c.folder, name)
				}
			}
			if again := b.run(t, first, 0, add...); !strings.Contains(again, "already") {
				t.Errorf("%s: again: %s", c.folder, again)
			}
			b.run(t, first, 0, "verify", out)
			for _, machine := range []string{first, second} {
				if left, _ := filepath.Glob(filepath.Join(machine, "dsload", "out", "*", "data", "*")); len(left) > 0 &&
					c.folder != "moved" && c.folder != "lost" {
					t.Errorf("%s: left in the scratch folder: %v", c.folder, left)
				}
			}
		}
		if out := b.run(t, dir, 2, build("/corpus.txt", b.URI+"/append/none", "--append")...); !strings.Contains(out,
			"holds no finished dataset to add to") ||
			!strings.Contains(out, b.URI+"/append/none") {
			t.Errorf("no dataset: %s", out)
		}
		if out := b.run(t, dir, 2, build("/corpus.txt", b.URI+"/append/"+whole, "--append", "--max-length",
			"9")...); !strings.Contains(out, "max-length") {
			t.Errorf("other settings: %s", out)
		}
	})
}
