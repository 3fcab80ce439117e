package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

// Blobs give the dataset that the same files on disk give, and every failure is one line with what to
// do, without credentials.
func TestAzureSources(t *testing.T) {
	c := remotetest.Azure(t)
	exe, dir := builtProgram(t), t.TempDir()
	local := filepath.Join(dir, "local")
	for name, n := range map[string]int{"t/a.txt": 3000, "t/sub/b.txt": 500, "t/sub/README.md": 1, "t/c d é.txt": 10} {
		c.Put(t, name, remoteLines(n), nil)
		path := filepath.Join(local, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, remoteLines(n), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	build := func(source, out string) []string {
		return []string{"build", source, "--out", filepath.Join(dir, out), "--memory", "64MiB", "--max-val-examples",
			"5"}
	}
	connection := []string{"AZURE_STORAGE_CONNECTION_STRING=BlobEndpoint=" + c.Endpoint + ";AccountName=" + c.Account +
		";AccountKey=" + c.Key}
	for i, source := range []string{"/t", "/t/**/*.txt", "/t/sub/b.txt", "/t/c d é.txt"} {
		env := c.Env
		if i%2 == 1 {
			env = connection
		}
		for out, address := range map[string]string{"want": local + source, "got": c.URI + source} {
			if code, text := runWith(t, env, exe, append(build(address, out), "--overwrite")...); code != 0 {
				t.Fatalf("%s: exit %d: %s", address, code, text)
			}
		}
		wantFiles, gotFiles := treeOf(t, filepath.Join(dir, "want")), treeOf(t, filepath.Join(dir, "got"))
		for _, name := range []string{"train-00000.arrow", "val-00000.arrow"} {
			if wantFiles[name] != gotFiles[name] || wantFiles[name] == "" {
				t.Errorf("%s: %s differs", source, name)
			}
		}
		for name, text := range gotFiles {
			if strings.Contains(text, c.Key) {
				t.Errorf("%s holds the key", name)
			}
		}
		if code, text := runWith(t, env, exe, build(c.URI+source, "got")...); code != 0 ||
			!strings.Contains(text, "already built") {
			t.Errorf("%s: exit %d: %s", source, code, text)
		}
	}
	for _, source := range []string{"az://bucket/t/a.txt?sv=1&sig=" + c.Key, "az://bucket/t?sv=1&sig=" + c.Key,
		"az://bucket/t/*.txt?sig=" + c.Key, "az://" + c.Account + ":" + c.Key[:20] + "@bucket/t/a.txt"} {
		code, text := runWith(t, c.Env, exe, build(source, "none")...)
		if code != 2 || strings.Contains(text, c.Key[:20]) || strings.Count(text, "\n") != 1 ||
			!strings.Contains(text, "dsload: read az://bucket/t") {
			t.Errorf("%s: exit %d: %s", source, code, text)
		}
	}
	with := func(settings ...string) []string { return append(append([]string{}, c.Env...), settings...) }
	for _, f := range []struct {
		env          []string
		source, says string
		code         int
	}{
		{c.Env, "az://bucket/none.txt", "az://bucket/none.txt: there is nothing of this name; check the address", 2},
		{c.Env, "az://bucket/t/*.csv", "no file matches", 2},
		{c.Env, "az://nothere/x", "no such container; check the container's name", 2},
		{with("AZURE_STORAGE_KEY=d3Jvbmc="), "az://bucket/t/a.txt", "check the account's name, its key", 1},
		{with("AZURE_STORAGE_KEY="), "az://bucket/t/a.txt",
			"set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING", -1},
		{with("AZURE_STORAGE_KEY=", "AZURE_STORAGE_SAS_TOKEN=sv=2024-01-01&sig="+c.Key), "az://bucket/t/a.txt",
			"check the shared access signature", 1},
		{nil, "az://bucket/t/a.txt",
			"no storage account is named; set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT", 2},
		{with("AZURE_STORAGE_BLOB_ENDPOINT=http://127.0.0.1:9"), "az://bucket/t/a.txt", "refused", 6},
	} {
		code, text := runWith(t, f.env, exe, build(f.source, "none")...)
		if f.code >= 0 && code != f.code || code == 0 || !strings.Contains(text, f.says) ||
			strings.Contains(text, c.Key) ||
			strings.Count(text, "\n") != 1 || !strings.Contains(text, f.source) {
			t.Errorf("%s: exit %d, want %d: %s", f.source, code, f.code, text)
		}
	}
	for _, args := range [][]string{{"build", local, "--out", "az://bucket/new"}, {"serve", "az://bucket/new"}} {
		if code, text := runWith(t, c.Env, exe, args...); code != 2 ||
			!strings.Contains(text, "addresses of kind az:// cannot be") {
			t.Errorf("%v: exit %d: %s", args, code, text)
		}
	}
}

// A build of a blob that is killed in the middle resumes there, and ends with the same bytes.
func TestAzureKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("short: TestKilledDownload does the same over HTTP")
	}
	srv := remotetest.NewBlobs()
	defer srv.Close()
	killDownload(t, srv, "/con/corpus.txt", "az://con/corpus.txt", 2, "AZURE_STORAGE_BLOB_ENDPOINT="+srv.URL)
}
