package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// bucketTest is a bucket, and the program with its environment.
type bucketTest struct {
	remotetest.Bucket
	exe   string
	store *remote.Store
}

func (b *bucketTest) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if _, err := b.store.Put(context.Background(), b.URI+"/"+name, bytes.NewReader(data), int64(len(data)),
		remote.Condition{}); err != nil {
		t.Fatal(err)
	}
}

// tree reads all objects of a folder except run.json.
func (b *bucketTest) tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var objects []remote.Object
	if err := b.store.List(context.Background(), b.URI+"/"+folder, func(name string, o remote.Object) error {
		objects = append(objects, o)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if name := filepath.Base(o.URI); name != "run.json" {
			f := b.store.Open(t.Context(), o)
			data, err := io.ReadAll(f)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			out[name] = string(data)
		}
	}
	return out
}

// command returns the program as it runs on a machine, which is a folder for its caches.
func (b *bucketTest) command(machine string, args ...string) *exec.Cmd {
	cmd := exec.Command(b.exe, args...)
	cmd.Env = append(os.Environ(), append(b.Env, "XDG_CACHE_HOME="+machine)...)
	return cmd
}

// run runs the program to its end, and checks its exit code and that it shows no secret.
func (b *bucketTest) run(t *testing.T, machine string, code int, args ...string) string {
	t.Helper()
	cmd := b.command(machine, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v: %v, want exit %d\n%s", args, err, code, out)
	}
	if b.Secret != "" && strings.Contains(string(out), b.Secret) {
		t.Fatalf("%v shows the secret: %s", args, out)
	}
	return string(out)
}

// eachBucket runs a test on each kind of bucket.
func eachBucket(t *testing.T, test func(t *testing.T, b *bucketTest)) {
	if testing.Short() {
		t.Skip("short: the packages below test buckets too")
	}
	buckets := remotetest.Buckets(t)
	exe := builtProgram(t)
	for _, kind := range []string{"s3", "gs", "az"} {
		t.Run(kind, func(t *testing.T) {
			b := &bucketTest{Bucket: buckets[kind], exe: exe}
			for _, e := range b.Env {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, value)
			}
			b.store = remote.NewStore(remote.Options{})
			defer b.store.Close()
			test(t, b)
		})
	}
}

func TestBucketSources(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		for name, n := range map[string]int{"t/a.txt": 3000, "t/sub/b.txt": 500, "t/sub/README.md": 1,
			"t/c d é.txt": 10} {
			b.put(t, name, remoteLines(n))
			path := filepath.Join(dir, "local", name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
				os.WriteFile(path, remoteLines(n), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		local := filepath.Join(dir, "local")
		for i, source := range []string{"/t", "/t/", "/t/**/*.txt", "/t/*.txt", "/t/sub/b.txt", "/t/c d é.txt"} {
			want, got := filepath.Join(dir, "want"), filepath.Join(dir, "got")
			b.run(t, dir, 0, "build", local+source, "--out", want, "--memory", "64MiB", "--overwrite",
				"--max-val-examples", "5")
			b.run(t, dir, 0, "build", b.URI+source, "--out", got, "--memory", "64MiB", "--overwrite",
				"--max-val-examples", "5")
			wantFiles, gotFiles := treeOf(t, want), treeOf(t, got)
			for _, name := range []string{"train-00000.arrow", "val-00000.arrow"} {
				if wantFiles[name] != gotFiles[name] {
					t.Errorf("%d: %s: %s differs", i, source, name)
				}
			}
			if again := b.run(t, dir, 0, "build", b.URI+source, "--out", got, "--memory", "64MiB",
				"--max-val-examples", "5"); !strings.Contains(again, "already built") {
				t.Errorf("%s: %s", source, again)
			}
		}
		for source, words := range map[string]string{"/none.txt": "none.txt", "/none/": "none/",
			"/t/*.csv": "no file matches"} {
			if out := b.run(t, dir, 2, "build", b.URI+source, "--out", filepath.Join(dir, "none"), "--memory",
				"64MiB"); !strings.Contains(out, words) {
				t.Errorf("%s: %s", source, out)
			}
		}
		if b.Secret != "" && !b.Open {
			cmd := b.command(dir, "build", b.URI+"/t/a.txt", "--out", filepath.Join(dir, "none"))
			cmd.Env = append(cmd.Env, "AWS_SECRET_ACCESS_KEY=wrong"+b.Secret)
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 1 || strings.Contains(string(out), b.Secret) ||
				!strings.Contains(string(out), "check the credentials") {
				t.Errorf("a wrong secret: %s", out)
			}
		}
	})
}

// TestBucketOut kills or interrupts a build into a bucket and continues it, on the same machine or
// another. It ends with the bytes of the local build and nothing else in the bucket.
func TestBucketOut(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		srv, data := servedLines(t, 40_000)
		build := func(out string) []string {
			return []string{"build", srv.URL + "/corpus.txt", "--out", out, "--checkpoint-every", "500",
				"--max-val-examples", "100",
				"--shard-bytes", "256KiB", "--memory", "64MiB", "--workers", "1", "--progress", "none"}
		}
		b.run(t, dir, 0, build(filepath.Join(dir, "whole"))...)
		want := treeOf(t, filepath.Join(dir, "whole"))
		for i, c := range []struct {
			signal       syscall.Signal
			first, other string // machines
		}{{syscall.SIGKILL, "a", "a"}, {syscall.SIGTERM, "a", "b"}, {syscall.SIGKILL, "b", "c"}, {}} {
			folder := []string{"killed", "moved", "lost", "plain"}[i]
			out := b.URI + "/" + folder
			first, other := filepath.Join(dir, c.first), filepath.Join(dir, c.other)
			if c.signal != 0 {
				b.stopMidway(t, srv, len(data)/2, c.signal, first, folder, build(out))
			}
			printed := b.run(t, other, 0, build(out)...)
			if resumed := strings.Contains(printed, "resumed at example"); resumed != (c.signal != 0 &&
				folder != "lost") {
				t.Errorf("%s: resumed is %v: %s", folder, resumed, printed)
			}
			if !strings.Contains(printed, "wrote "+out) {
				t.Errorf("%s: %s", folder, printed)
			}
			got := b.tree(t, folder)
			for name, text := range want {
				if got[name] != text {
					t.Errorf("%s: %s differs", folder, name)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s: %d files, want %d", folder, len(got), len(want))
			}
			if again := b.run(t, first, 0, build(out)...); !strings.Contains(again, "already built: "+out) {
				t.Errorf("%s: %s", folder, again)
			}
			if left, _ := filepath.Glob(filepath.Join(other, "dsload", "out", "*")); len(left) > 0 {
				t.Errorf("%s: left in the scratch folder: %v", folder, left)
			}
		}
		srv.Put("/corpus.txt", remotetest.File{Data: remoteLines(10)})
		if out := b.run(t, dir, 2, build(b.URI+"/plain")...); !strings.Contains(out, "build "+b.URI+"/plain: ") ||
			!strings.Contains(out, "--overwrite") {
			t.Errorf("another source: %s", out)
		}
		b.run(t, dir, 0, append(build(b.URI+"/plain"), "--overwrite")...)
		if got := b.tree(t, "plain"); len(got["train-00000.arrow"]) == 0 || len(got["train-00001.arrow"]) != 0 {
			t.Error("overwriting left other shards")
		}
		b.put(t, "mine/notes.txt", []byte("mine"))
		if out := b.run(t, dir, 2, build(b.URI+"/mine")...); !strings.Contains(out, "notes.txt") {
			t.Errorf("a folder with other files: %s", out)
		}
	})
}

// stopMidway runs a build until its source is slow and its checkpoint has rows, then ends it. The source
// never stops: a build asks whether a checkpoint is due when text arrives.
func (b *bucketTest) stopMidway(t *testing.T, srv *remotetest.Server, at int, signal syscall.Signal, machine,
	folder string, args []string) {
	t.Helper()
	stalled := make(chan struct{})
	srv.Fail(remotetest.Fault{}) // its head
	srv.Fail(remotetest.Fault{Stall: at, Drip: 50 * time.Millisecond,
		Then: func() { close(stalled) }})
	cmd := b.command(machine, args...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-stalled
	effort.Await(t, func() bool {
		paths, _ := filepath.Glob(filepath.Join(machine, "dsload", "out", "*", "data", "*.checkpoint"))
		return slices.ContainsFunc(paths, func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.Size() > 4096
		})
	}, "no checkpoint with rows")
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was stopped
	if slices.Contains(args, "--append") {
		return // the manifest is that of the dataset that is added to
	}
	for name := range b.tree(t, folder) {
		if name == "manifest.json" {
			t.Fatalf("a manifest before the end: %s", output.String())
		}
	}
}
