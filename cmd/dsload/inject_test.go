//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
)

// injection is a failure that strace injects into a system call of the real program.
type injection struct {
	calls string // as strace -e inject= takes them
	fault string
	path  bool // only calls on the source
	exit  int  // -1: killed
	says  string
}

var injections = []injection{
	{"pwrite64", "error=ENOSPC", false, exitLimit, "make room there and run the same command again"},
	{"pwrite64", "error=EIO", false, exitFailed, "run the same command again"},
	{"pwrite64", "error=EDQUOT", false, exitLimit, "make room there and run the same command again"},
	{"fsync", "error=EIO", false, exitFailed, "run the same command again"},
	{"fsync", "error=ENOSPC", false, exitLimit, "make room there and run the same command again"},
	{"renameat", "error=EROFS", false, exitFailed, "run the same command again"},
	{"renameat", "error=EACCES", false, exitFailed, "make the folder writable"},
	{"read", "error=EIO", true, exitFailed, "once it can be read again"},
	{"pwrite64,fsync,renameat,unlinkat", "signal=KILL", false, -1, ""},
	{"pwrite64,fsync,renameat,unlinkat", "signal=TERM", false, exitInterrupted, "stopping at a safe point"},
	// two threads may get it, and the second one ends the process,
}

// TestInjectedFaults makes system calls of the program fail, or sends a signal during one. Each
// time the exit code and the message are right, and the same command run again gives the same
// bytes. DSLOAD_FAULTS sets the number of faults.
func TestInjectedFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it builds under strace")
	}
	wanted := effort.Count(t, "DSLOAD_FAULTS", 3, 12, 300)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace, which makes the faults, is not installed")
	}
	if out, err := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v: %s", err, out)
	}
	exe, dir := builtProgram(t), t.TempDir()
	rnd := effort.Random(t)
	var text bytes.Buffer
	for text.Len() < 1<<20 {
		fmt.Fprintf(&text, "%x %x and a number %d\n", rnd.Uint64(), rnd.Uint32(), rnd.IntN(1000))
	}
	source := filepath.Join(dir, "source.txt")
	if err := os.WriteFile(source, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	build := func(out string, tracer ...string) (int, string) {
		args := append(tracer, exe, "build", source, "--format", "text", "--max-examples", "0", "--max-val-examples",
			"40", "--max-length", "64",
			"--shard-bytes", "256KiB", "--checkpoint-every", "50", "--workers", "1", "--memory", "64MiB", "--out",
			out, "--progress", "none")
		cmd := exec.Command(args[0], args[1:]...)
		var messages bytes.Buffer
		cmd.Stderr = &messages
		_ = cmd.Run() // the exit code tells
		return cmd.ProcessState.ExitCode(), messages.String()
	}
	whole := filepath.Join(dir, "whole")
	if code, messages := build(whole); code != exitDone {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	want := treeOf(t, whole)

	met := map[string]int{}
	total := 0
	for tries := 0; total < wanted; tries++ {
		if tries > 10*wanted {
			t.Fatalf("%d of %d builds met a fault: %v", total, tries, met)
		}
		in := injections[tries%len(injections)]
		// strace counts the calls of each thread, and the program has several, so some faults never
		// happen.
		when := strconv.Itoa(1 + rnd.IntN(12))
		if rnd.IntN(2) == 0 && in.exit >= 0 && strings.HasPrefix(in.fault, "error") {
			when += "+" // and at every later call
		}
		inject := in.calls + ":" + in.fault + ":when=" + when
		tracer := []string{strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=" + in.calls, "-e", "inject=" + inject}
		if in.path {
			tracer = append(tracer, "-P", source)
		}
		out := filepath.Join(dir, "faulty")
		code, messages := build(out, tracer...)
		if code != exitDone {
			total++
			met[in.calls+" "+in.fault]++
			if code != in.exit || !strings.Contains(messages, in.says) {
				t.Errorf("%s: exit code %d, want %d: %s", inject, code, in.exit, messages)
			}
		}
		if code, messages := build(out); code != exitDone {
			t.Fatalf("%s: the same command afterwards: exit code %d: %s", inject, code, messages)
		}
		wantTree(t, inject, out, want)
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d faults met: %v", total, met)
}
