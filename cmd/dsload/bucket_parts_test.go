package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// TestBucketParts builds the partitions of a plan into a bucket, on several machines, some of which
// are killed and some of which run at the same time. It compares the merged dataset with the same
// partitions built into a folder.
func TestBucketParts(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		srv, _ := servedLines(t, 45_000)
		machine := func(name string) string { return filepath.Join(dir, name) }
		plan, local := filepath.Join(dir, "plan.json"), filepath.Join(dir, "local")
		b.run(t, machine("a"), 0, "plan", "-n", "3", "--out", plan, "--max-val-examples", "100", "--shard-bytes",
			"256KiB",
			"--progress", "none", srv.URL+"/corpus.txt")
		text, err := os.ReadFile(plan)
		if err != nil {
			t.Fatal(err)
		}
		b.put(t, "plans/plan.json", text)
		build := func(part int, out string) []string {
			return []string{"build", "--plan", b.URI + "/plans/plan.json", "--partition", strconv.Itoa(part) + "/3",
				"--out", out, "--checkpoint-every", "500", "--memory", "64MiB", "--workers", "1", "--progress", "none"}
		}
		for part := range 3 {
			b.run(t, machine("a"), 0, build(part, local)...)
		}
		b.run(t, machine("a"), 0, "merge", local)
		want := treeOf(t, local)

		out := b.URI + "/parts"
		if text := b.run(t, machine("a"), 2, "merge", out); !strings.Contains(text, "--out "+out) {
			t.Errorf("no parts: %s", text)
		}
		b.stopPart(t, srv, syscall.SIGTERM, machine("a"), build(1, out))
		if text := b.run(t, machine("b"), 0, build(1, out)...); !strings.Contains(text, "resumed at example") ||
			!strings.Contains(text, "wrote "+out) {
			t.Errorf("on another machine: %s", text)
		}
		if text := b.run(t, machine("a"), 0, build(1, out)...); !strings.Contains(text, "already built") {
			t.Errorf("on the first machine: %s", text)
		}
		b.stopPart(t, srv, syscall.SIGKILL, machine("c"), build(2, out))
		if text := b.run(t, machine("c"), 1, "merge", out); !strings.Contains(text, "--plan "+out+"/plan.json") ||
			!strings.Contains(text, "2 of 3 parts are not built: 0, 2") {
			t.Errorf("missing parts: %s", text)
		}
		var twins sync.WaitGroup
		for _, name := range []string{"c", "c", "d", "e"} { // the first machine's own checkpoint, and the bucket's
			for _, part := range []int{0, 2} {
				twins.Go(func() {
					cmd := b.command(machine(name), build(part, out)...)
					if text, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("part %d on %s: %v\n%s", part, name, err, text)
					}
				})
			}
		}
		twins.Wait()
		if text := b.run(t, machine("c"), 0, "merge", out); !strings.Contains(text, "merged 3 partitions into "+out) {
			t.Errorf("merge: %s", text)
		}
		got := b.tree(t, "parts")
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s differs", name)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("left over: %s", name)
		}
		if text := b.run(t, machine("d"), 0, "merge", out); !strings.Contains(text, "already merged") {
			t.Errorf("merged again: %s", text)
		}
		if text := b.run(t, machine("d"), 0, build(0, out)...); !strings.Contains(text,
			"the partitions are already merged") {
			t.Errorf("after the merge: %s", text)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", "dsload", "out", "*")); len(left) > 0 {
			t.Errorf("left in scratch folders: %v", left)
		}
	})
}

// stopPart runs the build of a partition until its source stalls and its checkpoint has rows, then
// ends it.
func (b *bucketTest) stopPart(t *testing.T, srv *remotetest.Server, signal syscall.Signal, machine string,
	args []string) {
	t.Helper()
	stalled := make(chan struct{})
	srv.Fail(remotetest.Fault{Stall: 300_000, Then: func() { close(stalled) }})
	cmd := b.command(machine, args...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-stalled:
	case err := <-ended:
		t.Fatalf("it ended before its source stalled: %v\n%s", err, output.String())
	}
	effort.Await(t, func() bool {
		paths, _ := filepath.Glob(filepath.Join(machine, "dsload", "out", "*", "data", "part-p*.checkpoint"))
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.Size() > 4096 {
				return true
			}
		}
		return false
	}, "no checkpoint with rows")
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatalf("it was not ended: %s", output.String())
	}
}
