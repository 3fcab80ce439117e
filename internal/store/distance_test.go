package store_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
)

// TestDistance prints what an epoch costs over a bucket whose answers are delayed by
// DSLOAD_DISTANCE, such as DSLOAD_DISTANCE=30ms.
func TestDistance(t *testing.T) {
	delay, err := time.ParseDuration(os.Getenv("DSLOAD_DISTANCE"))
	if err != nil {
		t.Skip("set DSLOAD_DISTANCE to measure")
	}
	const rows, length = 250_000, 512
	dir := filepath.Join(t.TempDir(), "data")
	b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 50_000},
		ShardBytes: 8 << 20, Settings: []byte(`{"max-length":512}`)})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	ids := make([]uint32, length)
	for i := range rows {
		for j := range ids {
			ids[j] = rng.Uint32N(50_000)
		}
		if err := b.Row("train", &dataset.Example{InputIDs: ids[:1+rng.IntN(length)],
			Document: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Finish(dataset.Provenance{Tokenizer: shard.TokenizerInfo{Name: "test", Fingerprint: "f",
		VocabSize: 50_000}}); err != nil {
		t.Fatal(err)
	}
	real := remotetest.Buckets(t)["s3"]
	proxy := via(t, real)
	upload(t, dir, real.URI+"/data")
	proxy.Delay = delay
	for _, c := range []struct {
		query string
		cache int64
	}{
		{"shuffle=none&batch_size=32", 0},
		{"shuffle=block&batch_size=32", 0},
		{"shuffle=full&batch_size=32", 0},
		{"shuffle=full&batch_size=32&bucket=4096", 0},
		{"shuffle=full&batch_size=32", 16 << 20},
		{"shuffle=full&batch_size=32", 64 << 20},
		{"shuffle=block&batch_size=32&bucket=4096", 16 << 20},
		{"shuffle=none&batch_size=32", 16 << 20},
	} {
		fsys := open(t, store.ReaderOptions{CacheBytes: c.cache})
		base := start(t, fsys, real.URI+"/data")
		before := proxy.Requests()
		began := time.Now()
		resp, err := http.Get(base + "/v1/batches?padding=max_length&dtype=int32&labels=none&epochs=1&" + c.query)
		if err != nil {
			t.Fatal(err)
		}
		// Fifteen seconds are enough to measure.
		time.AfterFunc(15*time.Second, func() { resp.Body.Close() })
		buf, first, got := make([]byte, 64<<10), time.Duration(0), int64(0)
		for {
			n, err := resp.Body.Read(buf)
			if got += int64(n); got > 4096 && first == 0 {
				first = time.Since(began)
			}
			if err != nil {
				if err != io.EOF {
					fmt.Printf("(stopped) ")
				}
				break
			}
		}
		took, sent, n := time.Since(began), 0, 0
		for _, r := range proxy.Requests()[len(before):] {
			sent += r.Sent
			n++
		}
		served := float64(got) / (8*length + 24) // rows, nearly
		fmt.Printf("%-50s cache %3d MiB: %6.1f s, first %4d ms, %7.0f rows/s, %6.4f requests and %7.0f bytes a row, %d at once\n",
			c.query, c.cache>>20, took.Seconds(), first.Milliseconds(), served/took.Seconds(), float64(n)/served,
			float64(sent)/served, proxy.MostAtOnce())
	}
}
