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

// TestKilledAdditionsEndWithTheSameBytes kills (SIGKILL) builds with filters and copies, and then
// additions to them, at random moments. After each kill of an addition the dataset is intact.
// DSLOAD_KILLS_APPEND sets the number of kills.
func TestKilledAdditionsEndWithTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("short: TestKilledBuildsEndWithTheSameBytes kills builds")
	}
	wanted := effort.Count(t, "DSLOAD_KILLS_APPEND", 2, 4, 200)
	exe, dir := builtProgram(t), t.TempDir()
	rnd := effort.Random(t)
	var sources [2]string
	for i := range sources {
		var b strings.Builder
		for range 4000 {
			for range 3 + rnd.IntN(40) {
				fmt.Fprintf(&b, "%x ", rnd.Uint32N(1<<(3+rnd.Uint32N(12))))
			}
			b.WriteString("\n")
			if rnd.IntN(4) == 0 {
				fmt.Fprintf(&b, "a line that comes again %d\n", rnd.IntN(1000))
			}
		}
		sources[i] = filepath.Join(dir, fmt.Sprintf("%d.txt", i))
		if err := os.WriteFile(sources[i], []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(step int, out string, workers int) *exec.Cmd {
		args := []string{"build", sources[step], "--out", filepath.Join(dir, out), "--dedup", "near", "--no-match",
			"ab c", "--max-val-examples", "50", "--shard-bytes",
			"256KiB", "--max-length", "64", "--checkpoint-every", "200", "--memory", "64MiB", "--progress", "none",
			"--workers", strconv.Itoa(workers)}
		if step == 1 {
			args = append(args, "--append")
		}
		return exec.Command(exe, args...)
	}
	var want [2]map[string]string
	var alone [2]time.Duration
	for step := range want {
		start := time.Now()
		if out, err := command(step, "whole", 2).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		alone[step], want[step] = time.Since(start), treeOf(t, filepath.Join(dir, "whole"))
	}
	for kills, builds := 0, 0; kills < wanted && builds < 100; builds++ {
		out := "killed" + strconv.Itoa(builds)
		for step := range want {
			for {
				cmd := command(step, out, 1+rnd.IntN(4))
				var output strings.Builder
				cmd.Stdout, cmd.Stderr = &output, &output
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				timer := time.AfterFunc(time.Duration(rnd.Int64N(int64(alone[step]))),
					func() { _ = cmd.Process.Kill() })
				err := cmd.Wait()
				timer.Stop()
				if err == nil {
					break
				}
				if cmd.ProcessState.Exited() {
					t.Fatalf("a run after kills exited by itself: %v\n%s", err, output.String())
				}
				if kills++; step == 1 {
					if out, err := exec.Command(exe, "verify", filepath.Join(dir, out)).CombinedOutput(); err != nil {
						t.Fatalf("the dataset after a kill of an addition: %v\n%s", err, out)
					}
				}
			}
			wantTree(t, "after kills", filepath.Join(dir, out), want[step])
		}
	}
}
