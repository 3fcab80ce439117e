package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/arrowipc"
	"github.com/dsload/dsload/internal/serve/feed"
)

const words = "../testdata/datasets/words"

// served starts a server of datasets and returns its socket.
func served(t *testing.T, datasets ...string) (socket string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "feed") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- Serve(ctx, ServeOptions{Datasets: datasets, Socket: socket, Log: slog.New(slog.DiscardHandler)})
	}()
	for {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			break
		}
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	stop = func() {
		if cancel(); done != nil {
			if err := <-done; err != nil {
				t.Error(err)
			}
			done = nil
			os.RemoveAll(dir)
		}
	}
	t.Cleanup(stop)
	return socket, stop
}

// read returns all batches of a dataset, or the error of opening or reading it.
func read(t *testing.T, dataset, query string) (batches []Batch, err error) {
	t.Helper()
	l, err := Open(t.Context(), dataset, query)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for b, err := range l.Batches() {
		if err != nil {
			return batches, err
		}
		batches = append(batches, *b)
	}
	return batches, nil
}

// TestFolderAndFeed: a folder and a feed of it give the same batches for random queries, or the same error.
func TestFolderAndFeed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	for _, dataset := range []string{words, "../testdata/datasets/all", "../testdata/datasets/plain"} {
		socket, _ := served(t, dataset)
		_, full := relayed(t, socket) // does not say that the server can send narrow batches
		read1, refused := 0, 0
		for range 60 {
			parameters := []string{"seed=" + pick("0", "7"), "batch_size=" + pick("1", "3", "64"),
				"epochs=" + pick("1", "2"), "shuffle=" + pick("full", "none", "block")}
			for _, p := range []string{"max_tokens=" + pick("8", "600"), "bucket=" + pick("4", "1000"),
				"padding_side=left", "padding=max_length", "pad_to_multiple_of=8", "rank=1&world=3", "start=2",
				"dtype=int32", "labels=" + pick("causal", "seq2seq", "none"), "pack=" + pick("bfd", "wrapped", "bfd_split"),
				"balance=" + pick("tokens", "quadratic"), "tail=" + pick("drop", "keep", "pad", "once"), "borders=keep"} {
				if r.IntN(5) == 0 {
					parameters = append(parameters, p)
				}
			}
			query := strings.Join(parameters, "&")
			want, wantErr := read(t, dataset, query)
			got, err := read(t, pick(socket, "unix:"+socket, "unix://"+socket, full), query)
			if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) {
				t.Fatalf("%s %s: %d batches, %v; the folder has %d, %v", dataset, query, len(got), err, len(want), wantErr)
			}
			if err != nil {
				refused++
				var a, b Error
				if !errors.As(err, &a) || !errors.As(wantErr, &b) || a.Kind() != b.Kind() {
					t.Errorf("%s %s: %v; of the folder %v", dataset, query, err, wantErr)
				}
				continue
			}
			read1++
			for _, b := range got {
				if len(b.InputIDs) != b.Rows*b.Length || len(b.Labels) != b.Rows*b.LabelLength || len(b.Lengths) != b.Rows {
					t.Fatalf("%s %s: the shape of %+v", dataset, query, b)
				}
			}
		}
		if read1 == 0 {
			t.Errorf("%s: all of %d queries are refused", dataset, refused)
		}
	}
}

// TestBatch compares a batch with the rows that it is of.
func TestBatch(t *testing.T) {
	batches, err := read(t, words, "batch_size=2&shuffle=none&max_tokens=1000")
	if err != nil || len(batches) == 0 {
		t.Fatal(len(batches), err)
	}
	b := batches[0]
	if b.Rows != 2 || !slices.Equal(b.Examples, []int64{0, 1}) || b.Next != 2 || int64(b.Length) != max(b.Lengths[0], b.Lengths[1]) {
		t.Errorf("%+v", b)
	}
	for row := range b.Rows {
		for i := range b.Length {
			at, inside := row*b.Length+i, int64(i) < b.Lengths[row]
			if (b.AttentionMask[at] == 1) != inside || (b.Labels[at] == -100) == inside || inside && b.Labels[at] != b.InputIDs[at] {
				t.Errorf("row %d, element %d: %+v", row, i, b)
			}
		}
	}
	if b.PositionIDs != nil || b.Segments != nil || b.Datasets != nil {
		t.Errorf("columns of other datasets: %+v", b)
	}
}

// relay is a server in front of another that can break streams off and change seals.
type relay struct {
	sync.Mutex
	cut  int    // bytes of a stream after which it is cut; 0 for none
	seal string // in place of the server's
	gone bool
	asks int // requests for batches
}

// relayed serves a feed through a relay over TCP.
func relayed(t *testing.T, socket string) (*relay, string) {
	r := &relay{}
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.Lock()
		if request.URL.Path == "/v1/batches" {
			r.asks++
		}
		cut, seal, gone := r.cut, r.seal, r.gone
		r.Unlock()
		if gone {
			panic(http.ErrAbortHandler)
		}
		answer, err := client.Get("http://dsload" + request.URL.String())
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		w.Header().Set(feed.SealHeader, answer.Header.Get(feed.SealHeader))
		if seal != "" {
			w.Header().Set(feed.SealHeader, seal)
		}
		w.WriteHeader(answer.StatusCode)
		if request.URL.Path != "/v1/batches" || cut == 0 {
			_, _ = io.Copy(w, answer.Body) // the client may be gone
			return
		}
		if _, err := io.CopyN(w, answer.Body, int64(cut)); err == io.EOF {
			return // it is shorter
		}
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(client.CloseIdleConnections)
	return r, server.URL
}

// TestStreamsAreContinued: a stream that is cut anywhere is continued with no batch lost or repeated.
func TestStreamsAreContinued(t *testing.T) {
	const query = "batch_size=1&epochs=20&seed=5"
	want, err := read(t, words, query)
	if err != nil {
		t.Fatal(err)
	}
	socket, _ := served(t, words)
	r, address := relayed(t, socket)
	for _, cut := range []int{4000, 5555, 9001} {
		r.Lock()
		r.cut, r.asks = cut, 0
		r.Unlock()
		got, err := read(t, address, query)
		r.Lock()
		if err != nil || !reflect.DeepEqual(got, want) || r.asks < 3 {
			t.Errorf("cut after %d bytes: %d batches after %d requests, %v", cut, len(got), r.asks, err)
		}
		r.Unlock()
	}
}

// TestPackingStays: what a server packs by itself is asked for by its name, since it may be started again
// without it while batches are read.
func TestPackingStays(t *testing.T) {
	for _, c := range []struct{ defaults, query, want string }{
		{"", "", "pack=none&start=0"},
		{"max_length=32&pack=bfd", "seed=3", "max_length=32&pack=bfd&seed=3&start=0"},
		{"max_length=32&pack=bfd", "max_length=16", "max_length=16&pack=bfd&start=0"},
		{"max_length=32&pack=bfd", "pack=none", "pack=none&start=0"},
		{"", "pack=wrapped&max_length=8", "max_length=8&pack=wrapped&start=0"},
	} {
		asked := make(chan string, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Dsload-Seal", "ab")
			if c.defaults != "" {
				w.Header().Set("Dsload-Defaults", c.defaults)
			}
			if r.URL.Path == "/v1/batches" {
				asked <- r.URL.RawQuery
				w.WriteHeader(http.StatusBadRequest)
			}
		}))
		if _, err := read(t, server.URL, c.query); err == nil {
			t.Errorf("%+v: no error", c)
		} else if got := <-asked; got != c.want {
			t.Errorf("%+v: asked for %s", c, got)
		}
		server.Close()
	}
}

// TestOpenAsksAgain: a busy server may close a connection before it has read the request.
func TestOpenAsksAgain(t *testing.T) {
	for _, lingers := range []int{-1, 0} { // an end, and a reset
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) < 3 {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil || c.(*net.TCPConn).SetLinger(lingers) != nil || c.Close() != nil {
					t.Error(err)
				}
				return
			}
			w.Header().Set(feed.SealHeader, "ab")
		}))
		l, err := Open(t.Context(), server.URL, "")
		if err != nil || asked.Load() != 3 || l.Close() != nil {
			t.Errorf("linger %d: %v after %d requests", lingers, err, asked.Load())
		}
		server.Close()
	}
}

// TestRowsGoForward: batches of before the start are an error, not rows once more.
func TestRowsGoForward(t *testing.T) {
	socket, _ := served(t, words)
	client := http.Client{Transport: feed.Transport(socket)}
	defer client.CloseIdleConnections()
	for _, start := range []string{"0", "2"} { // every batch moves on; the first ends before the start
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(feed.SealHeader, "ab")
			if r.URL.Path != "/v1/batches" {
				return
			}
			answer, err := client.Get("http://dsload/v1/batches?shuffle=none&batch_size=1&start=0")
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			defer answer.Body.Close()
			_, _ = io.Copy(w, answer.Body) // the client may be gone
		}))
		got, err := read(t, server.URL, "shuffle=none&batch_size=1&start="+start)
		var e Error
		if start == "0" && (err != nil || len(got) != 4) {
			t.Errorf("%d batches, %v", len(got), err)
		} else if start == "2" && (len(got) != 0 || !errors.As(err, &e) || e.Kind() != Corrupt ||
			!strings.Contains(err.Error(), "after row 2 comes row 1")) {
			t.Errorf("%d batches, %v", len(got), err)
		}
		server.Close()
	}
}

// TestStreamsThatEnd: what ends a stream for good is an error, with a kind.
func TestStreamsThatEnd(t *testing.T) {
	for _, c := range []struct {
		name, kind, words string
		then              func(*relay)
	}{
		{"a server that is gone", Unreachable, "before its end", func(r *relay) { r.gone = true }},
		{"another dataset", Corrupt, "another dataset", func(r *relay) { r.seal = "ab12" }},
	} {
		socket, _ := served(t, words)
		r, address := relayed(t, socket)
		r.cut = 5000
		l, err := Open(t.Context(), address, "batch_size=3&epochs=9")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		var last error
		for b, err := range l.Batches() {
			if n++; err != nil {
				last = err
			} else if b == nil || last != nil {
				t.Errorf("%s: batch %d is %v after %v", c.name, n, b, last)
			}
			r.Lock()
			c.then(r)
			r.Unlock()
		}
		var e Error
		if n < 2 || !errors.As(last, &e) || e.Kind() != c.kind || !strings.Contains(last.Error(), c.words) {
			t.Errorf("%s: after %d batches %v", c.name, n, last)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// copied returns a copy of a dataset.
func copied(t *testing.T, dataset string) string {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(dataset)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDamage: damaged rows are an error of a folder and of a feed.
func TestDamage(t *testing.T) {
	dir := copied(t, words)
	shards, err := filepath.Glob(dir + "/train-*.arrow")
	if err != nil || len(shards) == 0 {
		t.Fatal(shards, err)
	}
	data, err := os.ReadFile(shards[0])
	if err != nil {
		t.Fatal(err)
	}
	socket, _ := served(t, dir)
	for i := 300; i < len(data)-300; i += 7 {
		data[i] ^= 0x55
	}
	if err := os.WriteFile(shards[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dataset := range []string{dir, socket} {
		got, err := read(t, dataset, "batch_size=1&shuffle=none")
		var e Error
		if !errors.As(err, &e) || e.Kind() != Corrupt {
			t.Errorf("%s: %d batches, %v", dataset, len(got), err)
		}
	}
}

// TestOpenRefuses: what cannot be opened is an error with a kind and with what to do.
func TestOpenRefuses(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	defer other.Close()
	socket, stop := served(t, words)
	for _, c := range []struct{ dataset, query, kind, want string }{
		{words, "batchsize=3", Usage, "did you mean batch_size?"},
		{words, "wire=narrow", Usage, "leave it out"},
		{words, "split=test", Usage, "no split"},
		{words, "max_tokens=1", Usage, "longest row"},
		{socket, "%zz", Usage, "query"},
		{"s3://bucket/data", "", Usage, "s3://"},
		{"http://:secret@example.com/", "", Usage, "https only"},
		{"https://secret@example.com/", "", Usage, "https://:TOKEN@example.com"},
		{other.URL, "", Unreachable, "not a server of dsload"},
		{"unix:/nothing/here", "", Unreachable, "dsload serve"},
	} {
		_, err := Open(t.Context(), c.dataset, c.query)
		var e Error
		if !errors.As(err, &e) || e.Kind() != c.kind || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "secret") && strings.HasPrefix(c.dataset, "http:") {
			t.Errorf("%s %s: %v", c.dataset, c.query, err)
		}
	}
	if _, err := Open(t.Context(), t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := read(t, socket, "split=test"); err == nil || !strings.Contains(err.Error(), "no split") {
		t.Errorf("a split that is not there: %v", err)
	}
	stop()
}

// TestCloseEndsBatches: so does the end of the context.
func TestCloseEndsBatches(t *testing.T) {
	socket, _ := served(t, words)
	for _, dataset := range []string{words, socket} {
		for _, closes := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			l, err := Open(ctx, dataset, "epochs=0")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err = range l.Batches() {
				if n++; n == 3 {
					if closes {
						l.Close()
					} else {
						cancel()
					}
				}
			}
			if closes != errors.Is(err, errClosed) || closes == errors.Is(err, context.Canceled) || n != 4 { // three batches and the error
				t.Errorf("%s: after %d batches %v", dataset, n, err)
			}
			for range l.Batches() {
				break // an error, whatever was read before
			}
			cancel()
			l.Close()
		}
	}
}

// TestBatchesBeginAnew: each range has all batches, and one that is left early leaves nothing behind.
func TestBatchesBeginAnew(t *testing.T) {
	socket, _ := served(t, words)
	for _, dataset := range []string{words, socket} {
		l, err := Open(t.Context(), dataset, "batch_size=2&start=2")
		if err != nil {
			t.Fatal(err)
		}
		var first [2][]int64
		for i := range first {
			for b := range l.Batches() {
				first[i] = b.Positions
				break
			}
		}
		if !slices.Equal(first[0], []int64{2, 3}) || !slices.Equal(first[1], first[0]) {
			t.Errorf("%s: the first batches have the rows %v", dataset, first)
		}
		l.Close()
	}
}

// TestReceivedRefuses: a batch without its columns is not a batch.
func TestReceivedRefuses(t *testing.T) {
	fields := []arrowipc.Field{{Name: "row", Type: arrowipc.Int64}}
	stream := arrowipc.AppendBatch(arrowipc.AppendSchema(nil, fields, nil), 1, []int64{1}, []int64{0, 8})
	stream = append(append(stream, make([]byte, arrowipc.Alignment)...), arrowipc.EndOfStream...)
	r, err := arrowipc.NewReader(strings.NewReader(string(stream)))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := received(r, rows, feed.Query{}); !errors.Is(err, arrowipc.ErrCorrupt) {
		t.Error(err)
	}
	for _, tokens := range []int64{-1, 3} {
		b := Batch{Rows: 1, Length: 2, InputIDs: []int64{7, 8}, Lengths: []int64{tokens}, Positions: []int64{0}}
		if err := b.complete(feed.Query{}); !errors.Is(err, arrowipc.ErrCorrupt) {
			t.Errorf("%d tokens in a row of two: %v", tokens, err)
		}
	}
}
