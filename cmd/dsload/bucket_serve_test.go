package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// served starts a server and returns the body of a request to it.
func (b *bucketTest) served(t *testing.T, machine, query string, args ...string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "feed") // short enough for a socket's address
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "s")
	cmd := b.command(machine, append([]string{"serve", "--socket", socket, "--exit-with-stdin"}, args...)...)
	var logs strings.Builder
	cmd.Stderr = &logs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	_, started := lines.ReadString('\n')
	go io.Copy(io.Discard, lines) //nolint:errcheck // until the server ends
	defer func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil || b.Secret != "" && strings.Contains(logs.String(), b.Secret) {
			t.Errorf("serve %v: %v: %s", args, err, logs.String())
		}
	}()
	if started != nil {
		return ""
	}
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
		},
	}
	resp, err := client.Get("http://dsload/v1/batches?" + query)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v: status %d, %v: %.300s", args, resp.StatusCode, err, body)
	}
	return string(body)
}

// TestBucketServe checks that a dataset that a build wrote to a bucket is served from there as from
// a folder: alone, packed, and together with a local one. Nothing is left of the cache.
func TestBucketServe(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		local, far := filepath.Join(dir, "data"), b.URI+"/serve/data"
		for _, out := range []string{local, far} {
			b.run(
				t,
				dir,
				0,
				"build",
				"synth://wikitext?seed=4",
				"--out",
				out,
				"--max-examples",
				"2000",
				"--memory",
				"64MiB",
				"--progress",
				"none",
			)
		}
		for _, c := range []struct {
			query       string
			here, there []string
		}{
			{"shuffle=full&seed=1", []string{local}, []string{far, "--cache", "16MiB"}},
			{"shuffle=none", []string{local, "--verify"}, []string{far + "/", "--verify"}},
			{"seed=1", []string{local, "--pack", "bfd", "--max-length", "512"},
				[]string{far, "--pack", "bfd", "--max-length", "512"}},
			{"mix=a=0.3,b=0.7&seed=2", []string{"a=" + local, "b=" + local}, []string{"a=" + local, "b=" + far}},
		} {
			want, got := b.served(t, dir, c.query, c.here...), b.served(t, dir, c.query, c.there...)
			if got != want || len(want) < 10_000 {
				t.Errorf("%v: %d bytes, want %d", c.there, len(got), len(want))
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "dsload", "serve", "*")); len(left) > 0 {
			t.Errorf("left of the cache: %v", left)
		}
		for address, words := range map[string]string{
			b.URI + "/serve/none":                                "check the address",
			strings.Replace(b.URI, "://", "://no-", 1) + "/data": "no-",
			b.URI:                     "not the address of a folder",
			"x=" + b.URI + "/serve/*": "not the address of a folder",
		} {
			if out := b.run(t, dir, 2, "serve", address); !strings.Contains(out, words) ||
				strings.Count(out, "\n") != 1 {
				t.Errorf("%s: %s", address, out)
			}
		}
		b.run(t, dir, 2, "serve", far, "--cache", "1MiB")
		b.put(t, "unfinished/build.checkpoint", []byte("x"))
		if out := b.run(t, dir, 2, "serve", b.URI+"/unfinished"); !strings.Contains(out, "unfinished") {
			t.Errorf("an unfinished build: %s", out)
		}
		b.put(t, "damaged/manifest.json", []byte("{}"))
		b.run(t, dir, 3, "serve", b.URI+"/damaged")
		away := *b
		away.Env = append(away.Env, "AWS_ENDPOINT_URL=http://127.0.0.1:9", "STORAGE_EMULATOR_HOST=http://127.0.0.1:9",
			"AZURE_STORAGE_BLOB_ENDPOINT=http://127.0.0.1:9")
		if out := away.run(t, dir, 6, "serve", far); !strings.Contains(out, "refused") || !strings.Contains(out, far) {
			t.Errorf("no server: %s", out)
		}
		if b.Secret != "" && !b.Open {
			wrong := *b
			wrong.Env = append(wrong.Env, "AWS_SECRET_ACCESS_KEY=wrong"+b.Secret,
				"AZURE_STORAGE_KEY="+base64.StdEncoding.EncodeToString([]byte("wrong")))
			if out := wrong.run(t, dir, 1, "serve", far); !strings.Contains(out, "check the credentials") {
				t.Errorf("a wrong secret: %s", out)
			}
		}
	})
}
