//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
)

// faultBuild is a build from two files that takes a second or two.
type faultBuild struct {
	exe, dir string
	sources  [2]string
}

func newFaultBuild(t *testing.T) *faultBuild {
	t.Helper()
	b := &faultBuild{exe: builtProgram(t), dir: t.TempDir()}
	for i := range b.sources {
		b.sources[i] = filepath.Join(b.dir, "source"+string(rune('a'+i))+".txt")
		line := strings.Repeat("words of source "+string(rune('a'+i))+" and a number 12345 ", 8) + "\n"
		if err := os.WriteFile(b.sources[i], bytes.Repeat([]byte(line), 100_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *faultBuild) command(out string) *exec.Cmd {
	return exec.Command(b.exe, "build", b.sources[0], b.sources[1], "--format", "text", "--max-examples", "0",
		"--max-length", "64", "--shard-bytes", "2MiB",
		"--checkpoint-every", "100", "--workers", "1", "--memory", "64MiB", "--out", out, "--progress", "none")
}

// run starts the build, does something to it after its first checkpoint, and returns its exit code
// and its messages.
func (b *faultBuild) run(t *testing.T, out string, fault func(*exec.Cmd)) (int, string) {
	t.Helper()
	cmd := b.command(out)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if fault != nil {
		effort.Await(t, func() bool {
			_, err := os.Stat(filepath.Join(out, "train-00001.arrow"))
			return err == nil
		}, "the build wrote no second shard")
		fault(cmd)
	}
	_ = cmd.Wait() // the exit code is checked
	return cmd.ProcessState.ExitCode(), messages.String()
}

// completes runs the build to its end and compares it with one that met no fault.
func (b *faultBuild) completes(t *testing.T, out string, want map[string]string) {
	t.Helper()
	if code, messages := b.run(t, out, nil); code != exitDone {
		t.Fatalf("the same command afterwards: exit code %d: %s", code, messages)
	}
	wantTree(t, "the same command afterwards", out, want)
}

func TestFaultsOfTheRealSystem(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it builds 60 MB ten times")
	}
	b := newFaultBuild(t)
	whole := filepath.Join(b.dir, "whole")
	if code, messages := b.run(t, whole, nil); code != exitDone {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	want := treeOf(t, whole)

	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			out := filepath.Join(b.dir, "sig"+sig.String())
			code, messages := b.run(t, out, func(cmd *exec.Cmd) { _ = cmd.Process.Signal(sig) })
			if code != exitInterrupted || !strings.Contains(messages, "run the same command again") {
				t.Errorf("exit code %d: %s", code, messages)
			}
			if _, err := os.Stat(filepath.Join(out, shardfile.ManifestName)); err == nil {
				t.Error("an interrupted build left a manifest")
			}
			b.completes(t, out, want)
		})
	}

	t.Run("vanished source", func(t *testing.T) {
		out, away := filepath.Join(b.dir, "vanished"), b.sources[1]+".away"
		code, messages := b.run(t, out, func(*exec.Cmd) { _ = os.Rename(b.sources[1], away) })
		if code != exitCorrupt || !strings.Contains(messages, b.sources[1]) ||
			!strings.Contains(messages, "restore it") {
			t.Errorf("exit code %d: %s", code, messages)
		}
		if err := os.Rename(away, b.sources[1]); err != nil {
			t.Fatal(err)
		}
		b.completes(t, out, want)
	})

	t.Run("second build", func(t *testing.T) {
		out := filepath.Join(b.dir, "locked")
		code, messages := b.run(t, out, func(*exec.Cmd) {
			if code, second := b.run(t, out, nil); code != exitFailed ||
				!strings.Contains(second, "in use by another build: process") {
				t.Errorf("the second build: exit code %d: %s", code, second)
			}
		})
		if code != exitDone {
			t.Errorf("exit code %d: %s", code, messages)
		}
	})

	// The kernel writes as much as the limit lets it and fails the rest: a short write.
	t.Run("limit on the size of files", func(t *testing.T) {
		out := filepath.Join(b.dir, "limited")
		limited := exec.Command("sh", append([]string{"-c", `ulimit -f 1001 && exec "$0" "$@"`},
			b.command(out).Args...)...)
		var messages bytes.Buffer
		limited.Stderr = &messages
		_ = limited.Run() // the exit code is checked
		if code := limited.ProcessState.ExitCode(); code != exitLimit ||
			!strings.Contains(messages.String(), "ulimit -f") {
			t.Errorf("exit code %d: %s", code, messages.String())
		}
		b.completes(t, out, want)
	})

	t.Run("full disk and read-only folder", func(t *testing.T) {
		disk := filepath.Join(b.dir, "disk")
		mount := func(options string) error {
			return syscall.Mount("tmpfs", disk, "tmpfs", mountFlags(options), mountData(options))
		}
		if err := os.Mkdir(disk, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := mount("size=5m"); err != nil {
			t.Skipf("no small file system can be mounted here: %v", err)
		}
		defer func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }()
		out := filepath.Join(disk, "data")
		code, messages := b.run(t, out, nil)
		if code != exitLimit || !strings.Contains(messages, "no space left on device; make room there") {
			t.Errorf("full disk: exit code %d: %s", code, messages)
		}
		if err := mount("remount,size=200m"); err != nil {
			t.Fatal(err)
		}
		code, messages = b.run(t, out, func(*exec.Cmd) {
			// refused while a file is open for writing: then the build completes
			if err := mount("remount,ro"); err != nil {
				t.Logf("remount: %v", err)
			}
		})
		if code != exitDone && !strings.Contains(messages, "read-only") {
			t.Errorf("read-only: exit code %d: %s", code, messages)
		}
		if err := mount("remount,rw,size=200m"); err != nil {
			t.Fatal(err)
		}
		b.completes(t, out, want)
	})
}

func mountFlags(options string) uintptr {
	var flags uintptr
	if strings.HasPrefix(options, "remount") {
		flags |= syscall.MS_REMOUNT
	}
	if strings.Contains(options, ",ro") {
		flags |= syscall.MS_RDONLY
	}
	return flags
}

func mountData(options string) string {
	for _, o := range strings.Split(options, ",") {
		if strings.HasPrefix(o, "size=") {
			return o
		}
	}
	return ""
}
