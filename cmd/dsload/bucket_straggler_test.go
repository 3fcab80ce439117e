//go:build unix

package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// TestBucketStraggler holds a process in the middle of a partition until another machine has built
// it and the parts are merged, with a budget that removes the partition's last shards.
func TestBucketStraggler(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		srv := remotetest.New()
		defer srv.Close()
		srv.Put("/corpus.txt", remotetest.File{Data: remoteLines(90_000)})
		plan, out := filepath.Join(dir, "plan.json"), b.URI+"/late"
		b.run(t, dir+"/a", 0, "plan", "-n", "2", "--out", plan, "--max-examples", "60000", "--shard-bytes", "64KiB",
			"--progress", "none", srv.URL+"/corpus.txt")
		build := func(part int) []string {
			return []string{"build", "--plan", plan, "--partition", strconv.Itoa(part) + "/2", "--out", out,
				"--checkpoint-every", "100", "--memory", "64MiB", "--workers", "1", "--progress", "none"}
		}
		slow := b.command(dir+"/slow", build(1)...)
		var output strings.Builder
		slow.Stdout, slow.Stderr = &output, &output
		broken, goOn := make(chan struct{}), make(chan struct{})
		srv.Fail(remotetest.Fault{Drop: 1_100_000, Then: func() { close(broken); <-goOn }})
		if err := slow.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = slow.Process.Kill() }() // it has ended, unless the test failed while it was stopped
		<-broken
		effort.Await(t, func() bool {
			_, err := b.store.Describe(t.Context(), out+"/train-p00001-00003.arrow")
			return err == nil
		}, "no shard of what was read before the connection broke")
		if err := slow.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		for part := range 2 {
			b.run(t, dir+"/b", 0, build(part)...)
		}
		b.run(t, dir+"/b", 0, "merge", out)
		want := b.tree(t, "late")
		if err := slow.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err := slow.Wait(); err != nil ||
			!strings.Contains(output.String(), "another process committed the partition first") {
			t.Errorf("the straggler: %v\n%s", err, output.String())
		}
		got := b.tree(t, "late")
		for name, text := range got {
			if want[name] != text {
				t.Errorf("the straggler left or changed %s", name)
			}
		}
		if len(got) < len(want) {
			t.Errorf("%d objects, %d before the straggler continued", len(got), len(want))
		}
		b.run(t, dir+"/b", 0, "verify", out)
	})
}
