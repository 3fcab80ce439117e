package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestStatsMemory describes more different rows than stats distinguishes exactly, and more rows
// than it keeps the lengths of.
func TestStatsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it builds a dataset of 1.7 million rows")
	}
	const rows = 1_700_000
	exe, dir := builtProgram(t), t.TempDir()
	source, err := os.Create(filepath.Join(dir, "lines.txt"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(source)
	for i := range rows {
		fmt.Fprintf(w, "line %d\n", i)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	build := exec.Command(exe, "build", source.Name(), "--out", data, "--format", "text", "--max-examples", "0",
		"--progress", "none")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stats := exec.Command(exe, "stats", data, "--json")
	var out bytes.Buffer
	stats.Stdout = &out
	if err := stats.Start(); err != nil {
		t.Fatal(err)
	}
	highest := watchPeak(stats.Process.Pid)
	err = stats.Wait()
	peak := highest()
	if err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Splits []struct {
			Examples    int64 `json:"examples"`
			Documents   int64 `json:"documents"`
			Sampled     bool  `json:"padding_sampled"`
			Duplicates  int64 `json:"duplicates"`
			Approximate bool  `json:"duplicates_approximate"`
		} `json:"splits"`
	}
	if err := json.Unmarshal(out.Bytes(), &seen); err != nil {
		t.Fatal(err)
	}
	if s := seen.Splits[0]; s.Examples != rows || s.Documents != rows || !s.Sampled || s.Duplicates != 0 ||
		!s.Approximate {
		t.Errorf("%+v", s)
	}
	t.Logf("peak resident set %.1f MiB for %d rows", float64(peak)/(1<<20), rows)
	if peak > 128<<20 {
		t.Errorf("peak resident set %d bytes", peak)
	}
}
