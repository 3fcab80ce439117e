package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
)

// TestCapHoldsInsideACgroup builds from 500 MB of text, in make soak 2 GB, under a cap of 64 MiB, in a
// control group of 72 MiB without swap, where the kernel kills what takes more. The bytes equal those of
// a build with plenty of memory.
func TestCapHoldsInsideACgroup(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it builds 500 MB twice")
	}
	const capBytes = 64 << 20
	group := needCgroup(t, capBytes+8<<20)
	exe, dir := builtProgram(t), t.TempDir()
	args := func(out, memory, workers string) []string {
		return []string{"build", "synth://wikitext?seed=7", "--max-bytes", effort.Of("500MB", "500MB", "2GB"),
			"--max-examples", "0", "--memory",
			memory, "--workers", workers,
			"--out", filepath.Join(dir, out), "--progress", "none", "--json"}
	}
	capped := exec.Command(exe, args("capped", "64MiB", "2")...)
	var stdout, stderr bytes.Buffer
	capped.Stdout, capped.Stderr = &stdout, &stderr
	if err := group.run(capped); err != nil {
		t.Fatalf("under the cap: %v\n%s", err, stderr.String())
	}
	var summary struct {
		PeakRSSBytes int64 `json:"peak_rss_bytes"`
		TextBytes    int64 `json:"text_bytes"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	t.Logf("peak resident set %.1f MiB under a cap of %d MiB for %d MB of text",
		float64(summary.PeakRSSBytes)/(1<<20), capBytes>>20, summary.TextBytes/1e6)
	if summary.PeakRSSBytes > capBytes {
		t.Errorf("peak resident set %d bytes above the cap of %d", summary.PeakRSSBytes, capBytes)
	}
	if out, err := exec.Command(exe, args("free", "256MiB", "3")...).CombinedOutput(); err != nil {
		t.Fatalf("without the group: %v\n%s", err, out)
	}
	a, b := manifestOf(t, filepath.Join(dir, "capped")), manifestOf(t, filepath.Join(dir, "free"))
	if !bytes.Equal(a, b) {
		t.Error("the manifests, and so the shards' checksums, differ")
	}
}

func manifestOf(t *testing.T, dir string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, shardfile.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// cgroups counts the groups that this process made, for their names.
var cgroups atomic.Int64

// cgroup is a memory control group for one test, version 1 or 2.
type cgroup struct{ procs string }

// needCgroup skips a test where no control group can be made, unless the environment requires one.
func needCgroup(t *testing.T, limit int64) *cgroup {
	t.Helper()
	group, err := newCgroup(t, limit)
	if err != nil {
		if os.Getenv("DSLOAD_REQUIRE_CGROUP") != "" {
			t.Fatalf("no memory control group can be made here: %v", err)
		}
		t.Skipf("no memory control group can be made here: %v", err)
	}
	return group
}

func newCgroup(t *testing.T, limit int64) (*cgroup, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%s has none", runtime.GOOS)
	}
	name := fmt.Sprintf("dsload-test-%d-%d", os.Getpid(), cgroups.Add(1))
	v1 := filepath.Join("/sys/fs/cgroup/memory", name)
	v2 := filepath.Join("/sys/fs/cgroup", name)
	files := map[string]string{} // of the version in use
	dir := v2
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil {
		dir = v1
		files["memory.limit_in_bytes"] = strconv.FormatInt(limit, 10)
	} else {
		files["memory.max"] = strconv.FormatInt(limit, 10)
		files["memory.swap.max"] = "0"
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // the kernel frees it once its processes are gone
	for file, value := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil &&
			!strings.HasPrefix(file, "memory.swap") {
			return nil, err
		}
	}
	procs := filepath.Join(dir, "cgroup.procs")
	if _, err := os.Stat(procs); err != nil {
		return nil, err
	}
	return &cgroup{procs}, nil
}

// run starts cmd inside the group: a shell joins it and becomes the command.
func (g *cgroup) run(cmd *exec.Cmd) error {
	shell := exec.Command("sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, g.procs, cmd.Path},
		cmd.Args[1:]...)...)
	shell.Stdout, shell.Stderr = cmd.Stdout, cmd.Stderr
	return shell.Run()
}
