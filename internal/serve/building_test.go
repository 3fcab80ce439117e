package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/shard"
)

// slowBuild is a build that continues when a test tells it to.
type slowBuild struct {
	t       *testing.T
	dir     string
	rows    memoryRows
	next    int
	builder *shard.Builder
	done    chan struct{}
	err     error
}

func newSlowBuild(t *testing.T, rows memoryRows, schema shard.Schema) *slowBuild {
	t.Helper()
	b := &slowBuild{t: t, dir: filepath.Join(t.TempDir(), "data"), rows: rows, done: make(chan struct{})}
	var err error
	b.builder, _, err = shard.OpenBuilder(shard.OS(), b.dir, shard.BuilderOptions{Schema: schema, ShardBytes: 8 << 10,
		Settings: []byte(`{"max-length":64}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.builder.Close() })
	return b
}

// to appends rows up to n, and takes a checkpoint.
func (b *slowBuild) to(n int) {
	for ; b.next < n; b.next++ {
		if err := b.builder.Append("train", &b.rows[b.next]); err != nil {
			b.t.Error(err)
		}
	}
	if err := b.builder.Checkpoint([]byte("cursor")); err != nil {
		b.t.Error(err)
	}
}

func (b *slowBuild) finish() {
	b.to(len(b.rows))
	_, b.err = b.builder.Finish(shard.Provenance{Tokenizer: testTokenizer(b.rows)})
	close(b.done)
}

func testTokenizer(memoryRows) shard.TokenizerInfo {
	return shard.TokenizerInfo{Name: "test", Fingerprint: "f", VocabSize: 1000,
		Special: map[string]int64{"pad": 5, "eos": 6}}
}

// serve serves the build.
func (b *slowBuild) serve() *http.Client {
	o := Options{Datasets: []string{b.dir}, Log: slog.New(slog.DiscardHandler), Seal: "text-1"}
	reader, err := OpenBuilding(o, BuildInfo{Source: "corpus.jsonl", Tokenizer: testTokenizer(b.rows), Done: b.done,
		Err: func() error { return b.err }})
	if err != nil {
		b.t.Fatal(err)
	}
	return serveBackend(b.t, reader, o)
}

// TestStreamsOfABuildEqualThoseOfTheDataset reads streams that begin with the build's first rows and
// end after it.
func TestStreamsOfABuildEqualThoseOfTheDataset(t *testing.T) {
	for _, schema := range []shard.Schema{{VocabSize: 1000}, {VocabSize: 1000, Labels: true},
		{VocabSize: 1000, LossMask: true, Segments: true}} {
		rows := randomRows(700, schema, 5)
		b := newSlowBuild(t, rows, schema)
		b.to(150)
		client := b.serve()
		queries := []string{"epochs=1&batch_size=7", "epochs=1&batch_size=3&world=4&rank=2",
			"epochs=1&batch_size=3&world=4&rank=3&tail=pad", "epochs=1&max_tokens=400",
			"epochs=1&max_tokens=300&batch_size=5&world=2&rank=1", "batch_size=10&start=333&epochs=2",
			"epochs=1&padding=max_length&labels=none", "batch_size=64&epochs=3&world=2&rank=1&tail=keep"}
		results := make([]chan []wireBatch, len(queries))
		for i, q := range queries {
			first := make(chan struct{})
			results[i] = make(chan []wireBatch, 1)
			go func() {
				defer close(results[i])
				batches, err := fetchWith(client, "shuffle=none&"+q, first)
				if err != nil {
					t.Errorf("%s: %v", q, err)
				}
				results[i] <- batches
			}()
			if !strings.Contains(q, "start") {
				<-first // while the build waits
			}
		}
		for _, n := range []int{151, 290, 480, 699} {
			b.to(n)
		}
		b.finish()
		whole := serveDir(t, b.dir)
		for i, q := range queries {
			got := <-results[i]
			want, err := fetch(whole, "shuffle=none&"+q)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s: %d batches differ from the %d of the dataset", q, len(got), len(want))
			}
		}
	}
}

// fetchWith is fetch that closes first with the first batch.
func fetchWith(client *http.Client, query string, first chan struct{}) (batches []wireBatch, err error) {
	resp, err := client.Get("http://dsload/v1/batches?" + query)
	if err != nil {
		close(first)
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		close(first)
		body, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %s", resp.Status, body)
	}
	in, err := ipc.NewReader(resp.Body)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	for in.Next() {
		if batches = append(batches, decode(in.RecordBatch())); len(batches) == 1 {
			close(first)
		}
	}
	if err := in.Err(); err != nil && !errors.Is(err, io.EOF) {
		return batches, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return batches, err
}

// TestOtherRequestsWaitForTheBuild makes requests that need the whole dataset.
func TestOtherRequestsWaitForTheBuild(t *testing.T) {
	schema := shard.Schema{VocabSize: 1000}
	b := newSlowBuild(t, randomRows(300, schema, 6), schema)
	b.to(200)
	client := b.serve()
	type answer struct {
		batches []wireBatch
		err     error
	}
	queries := []string{"shuffle=full&epochs=1", "shuffle=none&bucket=50&epochs=1", "shuffle=none&pack=bfd&epochs=1",
		"shuffle=none&start=1&max_tokens=63&epochs=1"}
	answers := make([]chan answer, len(queries))
	for i, q := range queries {
		answers[i] = make(chan answer, 1)
		go func() {
			batches, err := fetch(client, q)
			answers[i] <- answer{batches, err}
		}()
	}
	resp, err := client.Get("http://dsload/v1/dataset?wait=0")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if got := string(body); !contains(got, `"source":"corpus.jsonl"`, `"train":1`) ||
		resp.Header.Get(feed.SealHeader) != "text-1" {
		t.Errorf("%s %v", got, resp.Header)
	}
	for i, q := range queries {
		select {
		case a := <-answers[i]:
			t.Errorf("%s was answered before the end of the build: %v", q, a.err)
		default:
		}
	}
	b.finish()
	whole := serveDir(t, b.dir)
	for i, q := range queries {
		want, wantErr := fetch(whole, q)
		got := <-answers[i]
		if !reflect.DeepEqual(want, got.batches) || (wantErr == nil) != (got.err == nil) {
			t.Errorf("%s: %d batches and %v, want %d and %v", q, len(got.batches), got.err, len(want), wantErr)
		}
	}
	resp, err = client.Get("http://dsload/v1/dataset?wait=0")
	if err != nil {
		t.Fatal(err)
	}
	body, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
	if !contains(string(body), `"max-length":64`, `300`) {
		t.Errorf("%.200s", body)
	}
}

// TestAFailedBuildCutsItsStreams fails a build in the middle: no stream ends without an error.
func TestAFailedBuildCutsItsStreams(t *testing.T) {
	schema := shard.Schema{VocabSize: 1000}
	b := newSlowBuild(t, randomRows(300, schema, 7), schema)
	b.to(200)
	client := b.serve()
	first, ended := make(chan struct{}), make(chan error, 2)
	go func() {
		_, err := fetchWith(client, "shuffle=none&epochs=1&batch_size=10", first)
		ended <- err
	}()
	<-first
	go func() {
		_, err := fetch(client, "shuffle=full&epochs=1")
		ended <- err
	}()
	b.err = errors.New("record 250 is no JSON")
	close(b.done)
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a stream ended quietly")
		}
	}
	if _, err := fetch(client, "shuffle=none&epochs=1"); err == nil ||
		!contains(err.Error(), "500", "build corpus.jsonl: record 250 is no JSON") {
		t.Errorf("%v", err)
	}
	resp, err := client.Get("http://dsload/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Error(resp.Status)
	}
}

// TestWaitingRequestsEndWithTheirClients closes clients whose requests wait.
func TestWaitingRequestsEndWithTheirClients(t *testing.T) {
	schema := shard.Schema{VocabSize: 1000}
	b := newSlowBuild(t, randomRows(300, schema, 8), schema)
	b.to(200)
	client := b.serve()
	for _, q := range []string{"shuffle=full", "shuffle=none&start=290"} {
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://dsload/v1/batches?"+q, nil)
		if err != nil {
			t.Fatal(err)
		}
		go cancel()
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("%s was answered", q)
		}
	}
}
