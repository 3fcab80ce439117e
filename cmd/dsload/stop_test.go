//go:build linux

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopWhileAPipeIsAwaited stops commands that wait for a writer of a pipe, whichever file the
// pipe replaces. They leave nothing in the folder for temporary files.
func TestStopWhileAPipeIsAwaited(t *testing.T) {
	if testing.Short() {
		t.Skip("short: each command takes its grace")
	}
	exe, dir := builtProgram(t), t.TempDir()
	text, data, pipe := filepath.Join(dir, "text"), filepath.Join(dir, "data"), "pipe"
	if err := os.WriteFile(text, []byte("some text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(exe, "build", text, "--out", data, "--progress", "none").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{
		{"build", pipe, "--out", "o"}, {"build", text, "--val", pipe, "--out", "o"},
		{"build", text, "--tokenizer", pipe, "--out", "o"},
		{"tokenizer", "inspect", pipe}, {"tokenizer", "encode", "--tokenizer", pipe}, {"tokenizer", "digest", pipe},
		{"tokenizer", "train", pipe}, {"survey", pipe}, {"view", pipe},
		{"doctor", pipe}, {"bench", "tokenize", pipe}, {"bench", "build", pipe}, {"serve", data, "--listen", "127.0.0.1:0", "--tls-cert", pipe,
			"--tls-key", pipe},
		{"serve", data, "--listen", "127.0.0.1:0", "--token-file", pipe},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), dir, ""), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(exe, args...)
			cmd.Dir = t.TempDir()
			temporary := t.TempDir()
			cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
			if err := syscall.Mkfifo(filepath.Join(cmd.Dir, pipe), 0o600); err != nil {
				t.Skip(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer openWhenRead(t, filepath.Join(cmd.Dir, pipe)).Close()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			hung := time.AfterFunc(hostileLimit, func() { _ = cmd.Process.Kill() }) // the state is checked
			defer hung.Stop()
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("dsload %q: exit code %d", args, code)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("dsload %q leaves %v, %v", args, left, err)
			}
		})
	}
}

// TestWordsAtASignal: a build stops at a safe point; a server has none, and says what it waits for.
func TestWordsAtASignal(t *testing.T) {
	for _, c := range []struct {
		own  bool
		want string
	}{{false, "dsload: stopping at a safe point; interrupt again to stop at once\n"},
		{true, "dsload: the server stops once its streams have ended, or --drain is over; interrupt again to stop at once\n"}} {
		said, stderr := io.Pipe()
		ctx, stop := notifyContext(t.Context(), stderr)
		if c.own {
			setOwnGrace(ctx)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(said).ReadString('\n'); line != c.want || err != nil {
			t.Errorf("said %q, %v", line, err)
		}
		<-ctx.Done()
		stop()
	}
}

// TestADoubledSignalIsOne: timeout signals its child and then the process group of both, and the build still
// stops at a safe point.
func TestADoubledSignalIsOne(t *testing.T) {
	exe, dir := builtProgram(t), t.TempDir()
	cmd := exec.Command(exe, "build", "synth://wikitext", "--max-bytes", "1TB", "--out", filepath.Join(dir, "data"))
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); said = append(said, lines.Text()) {
		if len(said) == 0 { // it runs
			for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	_ = cmd.Wait()
	if text := strings.Join(said, "\n"); !strings.Contains(text, "run the same command again") ||
		cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("%v: %s", cmd.ProcessState, text)
	}
}

// openWhenRead opens a pipe for writing once somebody reads it.
func openWhenRead(t *testing.T, pipe string) *os.File {
	for end := time.Now().Add(hostileLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			return f
		}
	}
	t.Fatal("nobody reads the pipe")
	return nil
}

// TestEndlessLines checks that lines without an end are refused, not kept.
func TestEndlessLines(t *testing.T) {
	for _, args := range [][]string{{"tokenizer", "encode"}, {"tokenizer", "decode"},
		{"tokenizer", "digest", "/dev/zero"}} {
		var stdout, stderr bytes.Buffer
		if testing.Short() && args[1] != "encode" {
			continue // each reads as much as is taken
		}
		if code := run(args, &endless{text: "\x00"}, &stdout, &stderr); code != exitLimit ||
			!strings.Contains(stderr.String(), "more than 64MiB") {
			t.Errorf("%q: exit code %d: %s", args, code, stderr.String())
		}
	}
}
