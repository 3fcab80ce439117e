package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
)

// TestKilledBuildsEndWithTheSameBytes kills builds (SIGKILL) at random moments, resumes them with
// other numbers of workers until they are done, and compares every file but run.json with those of
// an uninterrupted build. The builds have several shards, both splits, and plain and compressed
// inputs. DSLOAD_KILLS sets the number of kills.
func TestKilledBuildsEndWithTheSameBytes(t *testing.T) {
	wanted := effort.Count(t, "DSLOAD_KILLS", 3, 12, 1000)
	exe, dir := builtProgram(t), t.TempDir()
	rnd, paragraphs := effort.Random(t), effort.Of(700, 10_000, 20_000)
	text := func(paragraphs int) string {
		var b strings.Builder
		for range paragraphs {
			for range 5 + rnd.IntN(80) {
				fmt.Fprintf(&b, "%x ", rnd.Uint32N(1<<20))
			}
			b.WriteString("and so on\n")
		}
		return b.String()
	}
	sources := map[string][]byte{
		"a.txt": []byte(text(paragraphs)), "b.txt.gz": gzipped(t, text(paragraphs)),
		"c.txt.zst": zstded(t, text(paragraphs)),
	}
	args := []string{"build"}
	for _, name := range []string{"a.txt", "b.txt.gz", "c.txt.zst"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, sources[name], 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	args = append(args, "synth://recipes?seed=3", "--format", "auto", "--max-examples", strconv.Itoa(4*paragraphs),
		"--max-val-examples",
		"300", "--max-length", "128",
		"--shard-bytes", effort.Of("256KiB", "1MiB", "1MiB"), "--checkpoint-every", "500", "--memory", "128MiB", "--progress", "none")
	build := func(out string, workers int) *exec.Cmd {
		return exec.Command(exe, append(args, "--out", filepath.Join(dir, out), "--workers", strconv.Itoa(workers))...)
	}
	start := time.Now()
	if out, err := build("whole", 2).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	alone := time.Since(start)
	want := treeOf(t, filepath.Join(dir, "whole"))
	kills, builds, resumed := 0, 0, 0
	for kills < wanted {
		builds++
		out := "killed" + strconv.Itoa(builds)
		for run := 0; ; run++ {
			cmd := build(out, 1+rnd.IntN(5))
			var output strings.Builder
			cmd.Stdout, cmd.Stderr = &output, &output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			timer := time.AfterFunc(time.Duration(rnd.Int64N(int64(alone))), func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if err == nil {
				if run == 0 {
					alone = time.Since(began) // the machine may have become faster or slower
				}
				if run > 0 {
					resumed++
				}
				break
			}
			if cmd.ProcessState.Exited() {
				t.Fatalf("run %d after kills exited by itself: %v\n%s", run, err, output.String())
			}
			kills++
		}
		wantTree(t, "after kills", filepath.Join(dir, out), want)
		if err := os.RemoveAll(filepath.Join(dir, out)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills over %d builds of %.1f s, %d of them resumed; all equal", kills, builds, alone.Seconds(), resumed)
}

// wantTree compares the files of a dataset folder, except run.json, with those of another.
func wantTree(t *testing.T, what, dir string, want map[string]string) {
	t.Helper()
	got := treeOf(t, dir)
	for name, data := range want {
		if got[name] != data {
			t.Errorf("%s: %s differs", what, name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d files, want %d", what, len(got), len(want))
	}
	if t.Failed() {
		t.FailNow()
	}
}

// treeOf is readTree for a test that cannot continue without it.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := readTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
