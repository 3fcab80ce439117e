//go:build unix

package main

import (
	"encoding/base64"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// secretsGiven are what this test gives the program in each way that it takes a secret.
var secretsGiven = map[string]string{
	"the password of an address": "pa55-of-address",
	"a value of its query":       "t0ken-of-query",
	"the address of --notify":    "h00k-of-notify",
	"the token of the feed":      "t0ken-of-feed",
	"AWS_SECRET_ACCESS_KEY":      "s3cret-of-bucket",
	"AWS_SESSION_TOKEN":          "se55ion-of-bucket",
	"HF_TOKEN":                   "hf_t0ken-of-hub",
	"AZURE_STORAGE_KEY":          base64.StdEncoding.EncodeToString([]byte("k3y-of-account")),
}

// TestNoSecretInAnyArtifact gives the program a secret in each way that it takes one, through a
// build that is killed and resumed, its page, a server, exports, reports, and commands that fail
// against a service that repeats what it was sent. None of it is then in anything that was printed
// or written, nor in what the feed answers.
func TestNoSecretInAnyArtifact(t *testing.T) {
	exe, dir := builtProgram(t), t.TempDir()
	secret := secretsGiven
	srv := remotetest.New()
	defer srv.Close()
	data := remoteLines(20_000)
	srv.Put("/corpus.txt", remotetest.File{Data: data})
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = r.Header.Write(w) // a test's server: what is lost is lost
		_, _ = w.Write([]byte(r.URL.String()))
	}))
	defer echo.Close()
	source := strings.Replace(srv.URL, "http://", "http://user:"+secret["the password of an address"]+"@", 1) +
		"/corpus.txt?token=" + secret["a value of its query"]
	env := append(os.Environ(), append(remotetest.NoAzure(),
		"HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"HOOK="+echo.URL+"/"+secret["the address of --notify"],
		"AWS_ACCESS_KEY_ID=an-id", "AWS_REGION=us-east-1", "AWS_ENDPOINT_URL="+echo.URL,
		"AWS_SECRET_ACCESS_KEY="+secret["AWS_SECRET_ACCESS_KEY"], "AWS_SESSION_TOKEN="+secret["AWS_SESSION_TOKEN"],
		"HF_ENDPOINT="+echo.URL, "HF_TOKEN="+secret["HF_TOKEN"],
		"AZURE_STORAGE_ACCOUNT=account", "AZURE_STORAGE_KEY="+secret["AZURE_STORAGE_KEY"],
		"AZURE_STORAGE_BLOB_ENDPOINT="+echo.URL)...)
	shown := map[string]string{}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(exe, args...)
		cmd.Env, cmd.Dir = env, dir
		return cmd
	}
	run := func(ends bool, args ...string) {
		t.Helper()
		out, err := command(args...).CombinedOutput()
		shown["dsload "+args[0]+" "+args[1]] += string(out)
		if (err == nil) != ends {
			t.Errorf("dsload %.200q: %v, want success %t\n%s", args, err, ends, out)
		}
	}

	build := []string{"build", source, "--out", "data", "--checkpoint-every", "500", "--memory", "64MiB", "--workers",
		"1",
		"--shard-bytes", "256KiB", "--progress", "json", "--notify", "env:HOOK"}
	stalled := make(chan struct{})
	srv.Fail(remotetest.Fault{}, remotetest.Fault{Stall: len(data) / 2, Then: func() { close(stalled) }})
	page := "127.0.0.1:" + freePortOf(t)
	killed := command(append(build, "--http", page)...)
	var output strings.Builder
	killed.Stdout, killed.Stderr = &output, &output
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	<-stalled
	effort.Await(t, func() bool {
		info, err := os.Stat(filepath.Join(dir, "data", "build.checkpoint"))
		return err == nil && info.Size() > 0
	}, "no checkpoint")
	shown["the page of a build"] = fetched(t, http.DefaultClient, "http://"+page+"/", "")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	shown["a build that was killed"] = output.String()
	held := collect(t, dir) // the checkpoint and the lock, before the build removes them
	srv.Fail()

	run(true, build...)
	run(true, "survey", source)
	run(true, "survey", source, "--json")
	run(false, "plan", source, "--partitions", "2", "--out", "plan.json") // a plan keeps no secrets
	for _, args := range [][]string{
		{"inspect", "data"}, {"stats", "data"}, {"verify", "data"}, {"which", "data", "--row", "3"}, {"view", "data", "--row", "3"},
		{"export", "data", "--to", "jsonl,parquet,hf,nanogpt", "--out", "exported"},
	} {
		run(true, args...)
	}
	missing := strings.Replace(source, "corpus.txt", "nothing.txt", 1)
	for _, place := range []string{"s3://bucket/a.txt", "az://bucket/a.txt", "hf://datasets/owner/name", missing} {
		run(false, "build", place, "--out", "failed", "--progress", "none", "--notify", "env:HOOK")
	}
	run(false, "build", "synth://recipes?seed=1", "--max-examples", "9", "--out", "s3://bucket/out", "--progress",
		"none")

	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(secret["the token of the feed"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + freePortOf(t)
	server := command("serve", "data", "--listen", address, "--token-file", token, "--log-level", "debug")
	var logs strings.Builder
	server.Stdout, server.Stderr = &logs, &logs
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	effort.Await(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, "no server")
	for _, path := range []string{"/", "/metrics", "/v1/dataset", "/healthz", "/v1/batches?epochs=1", "/v1/nothing"} {
		for _, with := range []string{secret["the token of the feed"], "a guess"} {
			shown["the feed: "+path] += fetched(t, http.DefaultClient, "http://"+address+path, with)
		}
	}
	_ = server.Process.Signal(os.Interrupt)
	_ = server.Wait() // how it ends is for other tests
	shown["the log of a server"] = logs.String()

	for place, text := range collect(t, dir) {
		shown[place] = text
	}
	for place, text := range held {
		shown["while it was built: "+place] = text
	}
	delete(shown, token)
	if len(shown) < 30 || shown[filepath.Join(dir, "data", "manifest.json")] == "" {
		t.Fatalf("only %d artifacts", len(shown))
	}
	for place, text := range shown {
		for what, value := range secret {
			for _, form := range []string{value, url.QueryEscape(value),
				base64.StdEncoding.EncodeToString([]byte(value))} {
				if strings.Contains(text, form) {
					t.Errorf("%s is in %s", what, place)
				}
			}
		}
	}
}

// fetched is what a server answers, with its headers.
func fetched(t *testing.T, client *http.Client, address, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var b strings.Builder
	if err := response.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// collect reads every file below a folder.
func collect(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = path + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// freePortOf returns a port that nobody listens on.
func freePortOf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
