package store_test

import (
	"bytes"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
)

// TestStreamsAreReadAhead checks that blocks are fetched before a stream reads them, several at
// once and never more than the limit, in any order of rows, and that the rows are the same.
func TestStreamsAreReadAhead(t *testing.T) {
	b := remotetest.Buckets(t)["gs"]
	dir, uri := build(t, filepath.Join(t.TempDir(), "data"), 8000, 1), b.URI+"/data"
	t.Setenv("STORAGE_EMULATOR_HOST", envOf(b, "STORAGE_EMULATOR_HOST"))
	upload(t, dir, uri)
	local := start(t, shardfile.OS(), dir)
	for i, query := range []string{"shuffle=none&epochs=2", "shuffle=block&seed=3",
		"shuffle=full&rank=1&world=3&tail=pad&batch_size=7",
		"shuffle=full&bucket=1000&start=2500", "shuffle=block&max_tokens=2048&rank=1&world=2&balance=tokens",
		"pack=bfd&max_length=300&shuffle=block"} {
		if testing.Short() && i%2 == 0 {
			continue
		}
		t.Run(query, func(t *testing.T) {
			proxy := via(t, b)
			proxy.Delay = 5 * time.Millisecond
			fsys := open(t, store.ReaderOptions{BlockBytes: 32 << 10, CacheBytes: 8 << 20})
			far := start(t, fsys, uri)
			_, want, err := get(local + "/v1/batches?" + query)
			if err != nil {
				t.Fatal(err)
			}
			status, got, err := get(far + "/v1/batches?" + query)
			if err != nil || status != http.StatusOK || !bytes.Equal(got, want) || len(want) < 10_000 {
				t.Fatalf("%v, status %d, %d bytes, want %d: %.300s", err, status, len(got), len(want), got)
			}
			if most := proxy.MostAtOnce(); most < 3 || most > 17 {
				t.Errorf("%d requests at once", most)
			}
			// Requests end when their client goes away.
			resp, err := http.Get(far + "/v1/batches?epochs=0")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		})
	}
}

func envOf(b remotetest.Bucket, name string) string {
	for _, e := range b.Env {
		if value, ok := bytes.CutPrefix([]byte(e), []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}
