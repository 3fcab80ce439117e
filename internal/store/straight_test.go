package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
)

// via makes the environment point to a bucket behind a proxy.
func via(t *testing.T, b remotetest.Bucket) *remotetest.Proxy {
	t.Helper()
	through, proxy := b.Via(t)
	for _, e := range through.Env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	return proxy
}

// TestVerifiedInOnePass verifies a dataset in one pass: only the end of a shard is requested twice,
// and there is no cache.
func TestVerifiedInOnePass(t *testing.T) {
	kinds(t, func(t *testing.T, b remotetest.Bucket) {
		dir, uri := build(t, filepath.Join(t.TempDir(), "data"), 8000, 1), b.URI+"/data"
		upload(t, dir, uri)
		proxy, cache := via(t, b), t.TempDir()
		fsys, err := store.NewReader(store.ReaderOptions{NoCache: true, Dir: cache})
		if err != nil {
			t.Fatal(err)
		}
		defer fsys.Close()
		done, total := int64(0), int64(0)
		damage, err := shard.Verify(context.Background(), fsys, uri, func(d, t int64) { done, total = d, t })
		if err != nil || len(damage) > 0 || done != total {
			t.Fatalf("verify: %v %v; %d bytes of %d", damage, err, done, total)
		}
		sent, requests := map[string]int{}, map[string]int{}
		for _, r := range proxy.Requests() {
			if strings.Contains(r.Path, ".arrow") {
				sent[filepath.Base(r.Path)] += r.Sent
				requests[filepath.Base(r.Path)]++
			}
		}
		for name, n := range sent {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if n > int(info.Size())+68<<10 || requests[name] > 4 {
				t.Errorf("%s: %d requests for %d bytes, the file has %d", name, requests[name], n, info.Size())
			}
		}
		if entries, _ := os.ReadDir(cache); len(entries) > 0 || len(sent) < 3 {
			t.Errorf("%d shards, left %v", len(sent), entries)
		}
	})
}
