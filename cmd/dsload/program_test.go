package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A suite runs the package's tests with a folder for the program that they build.
type suite struct{ *testing.M }

// programDir is where builtProgram puts the program, for as long as the tests run.
var programDir string

// Run implements testscript.TestingM.
func (s suite) Run() int {
	dir, err := os.MkdirTemp("", "dsload-program")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programDir = dir
	return s.M.Run()
}

// builtProgram returns the program as users have it, built once for all tests. It has no race
// detector, so that there is nothing to run again under that. Quick tests take the test program, as
// scripts do: it is the same main, and is there already.
func builtProgram(t testing.TB) string {
	t.Helper()
	if raceDetector {
		t.Skip("the program is built without the race detector: go test without -race runs this")
	}
	find := buildProgram
	if testing.Short() {
		find = func() (string, error) { return exec.LookPath("dsload") } // testscript.Main's
	}
	path, err := find()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "dsload")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// served is a program that owns a server: dsload serve, whose standard input ends once it has said
// where it is. Input that is empty from the beginning may end it earlier.
func served() {
	cmd := exec.Command("dsload", append(append([]string{"serve"}, os.Args[1:]...), "--exit-with-stdin")...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	line, _ := lines.ReadString('\n') // empty if it ended without a word
	stdin.Close()
	fmt.Print(line)
	_, _ = io.Copy(os.Stdout, lines) // what is missing is noticed by the script
	_ = cmd.Wait()                   // the exit code is passed on
	os.Exit(cmd.ProcessState.ExitCode())
}
