package store_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/store"
)

// TestRanksShareOneReader checks that one server asks the bucket for each byte of the dataset once,
// however many ranks it feeds: the ranks share one cache.
func TestRanksShareOneReader(t *testing.T) {
	kinds(t, func(t *testing.T, b remotetest.Bucket) {
		const ranks = 4
		dir, uri := build(t, filepath.Join(t.TempDir(), "data"), 6000, 3), b.URI+"/shared"
		upload(t, dir, uri)
		name := map[string]string{"s3": "AWS_ENDPOINT_URL", "gs": "STORAGE_EMULATOR_HOST",
			"az": "AZURE_STORAGE_BLOB_ENDPOINT"}[b.URI[:2]]
		target, err := url.Parse(os.Getenv(name))
		if err != nil {
			t.Fatal(err)
		}
		path := target.Path
		target.Path = ""
		var sent atomic.Int64
		proxy := countingProxy(t, target, &sent)
		t.Setenv(name, proxy+path)
		files, err := filepath.Glob(filepath.Join(dir, "*.arrow"))
		if err != nil || len(files) < 4 {
			t.Fatal(files, err)
		}
		var size int64
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
		server := start(t, open(t, store.ReaderOptions{BlockBytes: 64 << 10, CacheBytes: 16 << 20}), uri)
		var group sync.WaitGroup
		for epoch := range 2 {
			for rank := range ranks {
				group.Go(func() {
					status, body, err := get(fmt.Sprintf("%s/v1/batches?epochs=1&seed=%d&rank=%d&world=%d", server,
						epoch, rank, ranks))
					if err != nil || status != http.StatusOK || len(body) < 10_000 {
						t.Errorf("rank %d: %v, status %d: %.200s", rank, err, status, body)
					}
				})
			}
		}
		group.Wait()
		// The proxy counts the manifest and the shards. No block is read twice.
		if n := sent.Load(); n < size || n > size+size/4 {
			t.Errorf("%d bytes were sent for %d bytes of shards, to two epochs of %d ranks", n, size, ranks)
		}
	})
}

// countingProxy forwards requests and counts the bytes of the answers.
func countingProxy(t *testing.T, target *url.URL, sent *atomic.Int64) string {
	t.Helper()
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			host := r.In.Host // which requests are signed with
			r.SetURL(target)
			r.Out.Host = host
		},
		ModifyResponse: func(r *http.Response) error {
			data, err := io.ReadAll(r.Body)
			sent.Add(int64(len(data)))
			r.Body = io.NopCloser(bytes.NewReader(data))
			return err
		},
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s.URL
}
