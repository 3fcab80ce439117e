package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
)

// build writes a dataset of random rows in several shards.
func build(t *testing.T, dir string, rows int, seed uint64) string {
	t.Helper()
	b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 50_000},
		ShardBytes: 256 << 10, Settings: []byte(`{"max-length":200}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range rows {
		ids := make([]uint32, 1+rng.IntN(200))
		for j := range ids {
			ids[j] = rng.Uint32N(50_000)
		}
		if err := b.Row("train", &dataset.Example{InputIDs: ids, Document: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Finish(dataset.Provenance{Tokenizer: shard.TokenizerInfo{Name: "test", Fingerprint: "f",
		VocabSize: 50_000}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// upload writes the files of a folder to a bucket, the manifest last.
func upload(t *testing.T, dir, uri string) {
	t.Helper()
	store := remote.NewStore(remote.Options{})
	defer store.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			_, err = store.Put(context.Background(), uri+"/"+name, bytes.NewReader(data), int64(len(data)), remote.Condition{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		if e.Name() != shardfile.ManifestName {
			put(e.Name())
		}
	}
	put(shardfile.ManifestName)
}

// start serves a dataset, and returns the server's address.
func start(t *testing.T, fsys shardfile.ReadFS, dir string) string {
	t.Helper()
	buckets, _ := fsys.(*store.Reader)
	o := serve.Options{Datasets: []string{dir}, FS: fsys, Buckets: buckets, Feed: feed.Options{Log: slog.New(slog.DiscardHandler)}}
	reader, err := serve.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve.NewServer(reader, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := feed.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Shutdown(ctx)
		if err := errors.Join(<-served, reader.Close()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func open(t *testing.T, o store.ReaderOptions) *store.Reader {
	t.Helper()
	o.Dir = t.TempDir()
	f, err := store.NewReader(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// get returns a whole answer. err is an error of the connection.
func get(url string) (status int, body []byte, err error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// A droppingProxy forwards connections to a server, and breaks some of the first in the middle of
// their first answers.
type droppingProxy struct {
	net.Listener
	dropped atomic.Int64
}

func newDroppingProxy(t *testing.T, target string) *droppingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &droppingProxy{Listener: l}
	var conns sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	conns.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { p.forward(c, target, n < 16 && n%3 == 0) })
		}
	})
	return p
}

func (p *droppingProxy) forward(c net.Conn, target string, drop bool) {
	defer c.Close()
	s, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		_, _ = io.Copy(s, c) // until either side closes
		s.Close()
	}()
	if !drop {
		_, _ = io.Copy(c, s)
		return
	}
	if _, err := io.CopyN(c, s, 9000); err == nil {
		p.dropped.Add(1)
	}
}

func kinds(t *testing.T, test func(t *testing.T, b remotetest.Bucket)) {
	buckets := remotetest.Buckets(t)
	for _, kind := range []string{"s3", "gs", "az"} {
		t.Run(kind, func(t *testing.T) {
			for _, e := range buckets[kind].Env {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, value)
			}
			test(t, buckets[kind])
		})
	}
}

// TestServedFromABucket checks that batches from a bucket are those from the disk, with a cache far
// smaller than the dataset, several streams at once, and connections that break.
func TestServedFromABucket(t *testing.T) {
	kinds(t, func(t *testing.T, b remotetest.Bucket) {
		dir, uri := build(t, filepath.Join(t.TempDir(), "data"), effort.Of(3000, 8000, 8000), 1), b.URI+"/sub/data"
		upload(t, dir, uri)
		var proxy *droppingProxy
		if endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL")); err == nil && strings.HasPrefix(uri, "s3:") {
			proxy = newDroppingProxy(t, endpoint.Host)
			t.Setenv("AWS_ENDPOINT_URL", "http://"+proxy.Addr().String())
		}
		fsys := open(t, store.ReaderOptions{BlockBytes: 16 << 10, CacheBytes: 256 << 10})
		local, far := start(t, shardfile.OS(), dir), start(t, fsys, uri+"/")
		var group sync.WaitGroup
		for _, query := range []string{"shuffle=none&batch_size=64", "shuffle=block&seed=3&bucket=512",
			"shuffle=full&seed=1&rank=1&world=16",
			"shuffle=full&seed=2&rank=3&world=16&max_tokens=4096"} {
			group.Go(func() {
				_, want, err := get(local + "/v1/batches?" + query)
				status, got, err2 := get(far + "/v1/batches?" + query)
				if err := errors.Join(err, err2); err != nil || status != http.StatusOK || !bytes.Equal(got, want) ||
					len(want) < 10_000 {
					t.Errorf(
						"%s: %v, status %d, %d bytes, want %d: %.300s",
						query,
						err,
						status,
						len(got),
						len(want),
						got,
					)
				}
			})
		}
		group.Wait()
		if proxy != nil && proxy.dropped.Load() == 0 {
			t.Error("no connection was broken")
		}
		damage, err := shard.Verify(context.Background(), fsys, uri, nil)
		if err != nil || len(damage) > 0 {
			t.Errorf("verify: %v %v", damage, err)
		}
	})
}

// TestReplacedInTheBucket checks that a dataset replaced in the bucket is noticed: by the next
// check of its manifest, and earlier by a read of a part that is not in the cache.
func TestReplacedInTheBucket(t *testing.T) {
	kinds(t, func(t *testing.T, b remotetest.Bucket) {
		dir, uri := build(t, filepath.Join(t.TempDir(), "data"), 3000, 1), b.URI+"/data"
		other := build(t, filepath.Join(t.TempDir(), "data"), 3000, 2)
		upload(t, dir, uri)
		often, seldom := open(
			t,
			store.ReaderOptions{Interval: time.Millisecond},
		), open(
			t,
			store.ReaderOptions{Interval: time.Hour},
		)
		watching, reading := start(t, often, uri), start(t, seldom, uri)
		for _, server := range []string{watching, reading} {
			if status, body, err := get(server + "/v1/dataset"); err != nil || status != http.StatusOK {
				t.Fatal(status, err, string(body))
			}
		}
		upload(t, other, uri)
		effort.Await(t, func() bool {
			status, body, err := get(watching + "/v1/dataset")
			if err != nil {
				t.Fatal(err)
			}
			return status == http.StatusConflict && strings.Contains(string(body), "rebuilt")
		}, "not noticed")
		status, body, err := get(reading + "/v1/batches?shuffle=none")
		if status == http.StatusOK && err == nil {
			t.Errorf("rows of another dataset: %d bytes", len(body))
		}
		if status != http.StatusOK && !strings.Contains(string(body), "rebuilt") {
			t.Errorf("status %d: %s", status, body)
		}
	})
}

// TestReadOnly checks that nothing in a bucket is changed, and that other names are the operating
// system's.
func TestReadOnly(t *testing.T) {
	f := open(t, store.ReaderOptions{})
	if _, err := f.OpenFile("s3://b/x", os.O_RDWR); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	if _, writes := any(f).(shardfile.FS); writes {
		t.Error("a Reader can write")
	}
	name := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(name, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(name); err != nil || info.Size() != 3 {
		t.Error(fmt.Sprint(info, err))
	}
}
