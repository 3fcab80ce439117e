package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// remoteLines is text of some lines, a few tokens each.
func remoteLines(n int) []byte {
	var b []byte
	for i := range n {
		b = append(append(b, "a line of text and its number "...), strconv.Itoa(i*7919)...)
		b = append(b, '\n')
	}
	return b
}

// servedLines serves remoteLines(n) as /corpus.txt until the test ends.
func servedLines(t *testing.T, n int) (srv *remotetest.Server, data []byte) {
	t.Helper()
	data = remoteLines(n)
	srv = remotetest.New()
	t.Cleanup(srv.Close)
	srv.Put("/corpus.txt", remotetest.File{Data: data})
	return srv, data
}

// runProgram runs the program and returns its exit code and what it printed.
func runProgram(t *testing.T, exe string, args ...string) (code int, output string) {
	t.Helper()
	return runWith(t, nil, exe, args...)
}

// runWith runs the program with more in its environment, in which nothing else is set about Azure.
func runWith(t *testing.T, env []string, exe string, args ...string) (code int, output string) {
	t.Helper()
	cmd := exec.Command(exe, args...)
	cmd.Env = append(append(os.Environ(), remotetest.NoAzure()...), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestKilledDownload(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	killDownload(t, srv, "/corpus.txt", srv.URL+"/corpus.txt", 1)
}

// killDownload kills a build in the middle of a download. The build continues where it was and ends
// with the same bytes, whatever else goes wrong after its first requests.
func killDownload(t *testing.T, srv *remotetest.Server, path, uri string, first int, env ...string) {
	exe, dir := builtProgram(t), t.TempDir()
	data := remoteLines(40_000)
	srv.Put(path, remotetest.File{Data: data})
	build := func(out string) []string {
		return []string{"build", uri, "--out", filepath.Join(dir, out), "--checkpoint-every", "500",
			"--shard-bytes", "256KiB", "--memory", "64MiB", "--workers", "1", "--progress", "none"}
	}
	if code, out := runWith(t, env, exe, build("whole")...); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	want := treeOf(t, filepath.Join(dir, "whole"))

	stalled := make(chan struct{})
	unharmed := make([]remotetest.Fault, first)
	srv.Fail(append(unharmed, remotetest.Fault{Drop: 100_000}, remotetest.Fault{Status: 503},
		remotetest.Fault{Stall: len(data) / 2, Then: func() { close(stalled) }})...)
	cmd := exec.Command(exe, build("killed")...)
	cmd.Env = append(append(os.Environ(), remotetest.NoAzure()...), env...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-stalled
	effort.Await(t, func() bool { // for rows in the checkpoint: an empty one claims the folder
		info, err := os.Stat(filepath.Join(dir, "killed", "build.checkpoint"))
		return err == nil && info.Size() > 4096
	}, "no checkpoint with rows")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	before := len(srv.Requests())
	srv.Fail(append(unharmed, remotetest.Fault{Drop: 100_000})...)
	if code, out := runWith(t, env, exe, build("killed")...); code != 0 ||
		!strings.Contains(out, "resumed at example") {
		t.Fatalf("exit %d: %s\nbefore: %s", code, out, output.String())
	}
	wantTree(t, "after a kill", filepath.Join(dir, "killed"), want)
	for _, r := range srv.Requests()[before:] {
		if r.Method == "GET" && r.Range == "" {
			t.Errorf("the file was read from its beginning again")
		}
	}
}

// TestRemoteAlreadyBuilt checks that a finished build is not repeated while the ETag is the same.
func TestRemoteAlreadyBuilt(t *testing.T) {
	exe, dir := builtProgram(t), t.TempDir()
	srv := remotetest.New()
	defer srv.Close()
	srv.Put("/a.txt", remotetest.File{Data: remoteLines(100)})
	signed := func(secret string) []string {
		address := strings.Replace(srv.URL, "://", "://joe:"+secret+"@", 1) + "/a.txt?token=" + secret
		return []string{"build", address, "--out", filepath.Join(dir, "data"), "--memory", "64MiB"}
	}
	code, first := runProgram(t, exe, signed("pa55wordOne")...)
	if code != 0 {
		t.Fatal(first)
	}
	code, again := runProgram(t, exe, signed("pa55wordTwo")...)
	if code != 0 || !strings.Contains(again, "already built") {
		t.Errorf("exit %d: %s", code, again)
	}
	srv.Put("/a.txt", remotetest.File{Data: remoteLines(101)[1:]})
	code, changed := runProgram(t, exe, signed("pa55wordOne")...)
	if code != 2 || !strings.Contains(changed, "ETag") || !strings.Contains(changed, "--overwrite") {
		t.Errorf("exit %d: %s", code, changed)
	}
	shown := first + again + changed
	for name, text := range treeOf(t, filepath.Join(dir, "data")) {
		shown += name + text
	}
	run, err := os.ReadFile(filepath.Join(dir, "data", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(shown+string(run), "pa55word") {
		t.Error("a credential was shown")
	}
}

func TestRemoteExitCodes(t *testing.T) {
	t.Parallel() // most of it is waiting
	exe, dir := builtProgram(t), t.TempDir()
	srv := remotetest.New()
	defer srv.Close()
	data := remoteLines(50_000)
	srv.Put("/a.txt", remotetest.File{Data: data})
	srv.Put("/secret.txt", remotetest.File{Data: data})
	gone := remotetest.New()
	gone.Close()
	for _, c := range []struct {
		address string
		faults  []remotetest.Fault
		code    int
		words   string
	}{
		{srv.URL + "/missing.txt", nil, 2, "missing.txt: not found: "},
		{gone.URL + "/a.txt", nil, 6, "refused"},
		{"https://name.invalid/a.txt", nil, 6, "cannot be resolved"},
		{"https:///a.txt", nil, 2, "no host"},
		{srv.URL + "/a.txt", []remotetest.Fault{{Status: 403}}, 1, "access denied"},
		{srv.URL + "/a.txt", []remotetest.Fault{{}, {Drop: len(data) / 2, Then: func() {
			srv.Put("/a.txt", remotetest.File{Data: remoteLines(50_001)})
		}}}, 3, "its ETag changed since the build began"},
	} {
		srv.Fail(c.faults...)
		code, out := runProgram(t, exe, "build", c.address, "--out", filepath.Join(dir, "data"), "--memory", "64MiB",
			"--progress", "none")
		if code != c.code || !strings.Contains(out, c.words) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit %d, want %d: %s", c.address, code, c.code, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "data", "manifest.json")); err == nil {
			t.Errorf("%s: a dataset was left", c.address)
		}
	}
}

// TestSharedAccessSignature reads an Azure blob by its address with a shared access signature. Its
// token changes between the runs of a build, and is never shown.
func TestSharedAccessSignature(t *testing.T) {
	t.Parallel() // most of it is waiting
	exe, dir := builtProgram(t), t.TempDir()
	srv := remotetest.New()
	defer srv.Close()
	srv.Put("/container/a b.jsonl",
		remotetest.File{Data: []byte(strings.Repeat("{\"text\": \"a line of text\"}\n", 400))})
	srv.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Query().Get("sig"), "pa55/word+") && r.URL.Query().Get("sp") == "r" {
			return false
		}
		http.Error(w, "no signature", http.StatusForbidden)
		return true
	}
	build := func(sig string) (int, string) {
		return runProgram(t, exe, "build",
			srv.URL+"/container/a%20b.jsonl?sp=r&st=2026-01-01T00:00:00Z&se=2027-01-01T00:00:00Z&spr=https&sv=2024-11-04&sr=b&sig="+sig,
			"--out", filepath.Join(dir, "data"), "--memory", "64MiB", "--progress", "none")
	}
	srv.Fail(remotetest.Fault{}, remotetest.Fault{Drop: 5000}, remotetest.Fault{Status: 503})
	code, first := build("pa55%2Fword%2BOne%3D")
	if code != 0 {
		t.Fatal(first)
	}
	code, again := build("pa55%2Fword%2BTwo%3D")
	if code != 0 || !strings.Contains(again, "already built") {
		t.Errorf("signed anew: exit %d: %s", code, again)
	}
	code, denied := build("other")
	if code != 1 || !strings.Contains(denied, "access denied") || strings.Contains(denied, "sig=") {
		t.Errorf("another signature: exit %d: %s", code, denied)
	}
	shown := first + again + denied
	for name, text := range treeOf(t, filepath.Join(dir, "data")) {
		shown += name + text
	}
	if strings.Contains(shown, "pa55") || strings.Contains(shown, "sig=") || strings.Contains(shown, "se=2027") {
		t.Error("the signature was shown")
	}
}
