//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A plan takes the place of a plan, never of a pipe or a device.
func TestPlanReplacesNoPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	var stdout, stderr strings.Builder
	code := run([]string{"plan", "synth://wikitext?docs=3", "--partitions", "2", "--out", pipe}, strings.NewReader(""),
		&stdout, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "is not a regular file; name a file to write") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is now %v, %v", info, err)
	}
}
