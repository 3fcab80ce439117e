package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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

// builtProgram returns the program as users have it, built once for all tests: the race detector
// would multiply its memory and its time.
func builtProgram(t testing.TB) string {
	t.Helper()
	path, err := buildProgram()
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

// plainProgram makes a script run builtProgram where the tests have the race detector. Scripts that
// are about goroutines say "racing".
func plainProgram(env *testscript.Env) error {
	if !raceDetector {
		return nil // the test binary is as good, and stands in PATH as dsload
	}
	path, err := buildProgram()
	if err != nil {
		return err
	}
	env.Setenv("PATH", filepath.Dir(path)+string(filepath.ListSeparator)+env.Getenv("PATH"))
	return nil
}

// racing makes a script run the test binary as dsload, with the race detector if the tests have it.
func racing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: racing")
	}
	ts.Setenv("PATH", os.Getenv("PATH"))
}
