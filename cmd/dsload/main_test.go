package main

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/refdata"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what commands print into the scripts' expectations")

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"dsload": main,
		"heavy":  heavy,
		"served": served,
	})
}

// racedScripts run under the race detector, under which the program starts ten times as slowly: a
// build that is watched, and servers.
var racedScripts = []string{"testdata/script/build_page.txtar", "testdata/script/build_notify.txtar",
	"testdata/script/serve_basic.txtar", "testdata/script/serve_mix.txtar"}

// Machines whose batches would be wrong are refused with what to do.
func TestByteOrder(t *testing.T) {
	if err := checkByteOrder(binary.LittleEndian); err != nil {
		t.Error(err)
	}
	if err := checkByteOrder(binary.BigEndian); err == nil ||
		!strings.Contains(err.Error(), "use a little-endian machine") {
		t.Errorf("big-endian: %v", err)
	}
}

// TestScripts runs testdata/script: each command as a user calls it, with its exit code and
// messages. Scripts find the reference data at $SHARED. Those that need it begin with [!shared]
// skip.
func TestScripts(t *testing.T) {
	shared := refdata.Dir()
	params := testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: false,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"same":  sameTree,
			"pack":  packFiles,
			"harm":  harmFile,
		},
		Condition: func(cond string) (bool, error) {
			return cond == "shared" && shared != "" || cond == "race" && raceDetector, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("SHARED", shared)
			if !raceDetector { // each worker of each build puts the vocabulary into a cache of its own
				env.Setenv("GOMAXPROCS", "1")
			}
			return nil
		},
	}
	if raceDetector {
		params.Dir, params.Files = "", racedScripts
	}
	testscript.Run(t, params)
}

// exits runs a command and checks its exit code: exits 3 dsload verify data.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := err.(interface{ ExitCode() int }); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// sameTree compares two dataset folders byte by byte, except run.json: same a b.
func sameTree(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same dir dir")
	}
	a, err := readTree(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := readTree(ts.MkAbs(args[1]))
	ts.Check(err)
	equal := len(a) == len(b)
	for name, data := range a {
		if b[name] != data {
			equal = false
			if !neg {
				ts.Logf("%s differs", name)
			}
		}
	}
	if equal == neg {
		ts.Fatalf("equal: %v", equal)
	}
}

// readTree reads the files of a dataset folder by name, except run.json, in which equal builds may
// differ.
func readTree(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.Name() == shardfile.RunName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files[e.Name()] = string(data)
	}
	return files, nil
}
