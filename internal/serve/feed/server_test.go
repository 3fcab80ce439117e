package feed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/effort"
)

// checkRows holds rows against what the fake dataset has from `first` on.
func checkRows(t *testing.T, rows []row, first, n int64) {
	t.Helper()
	if int64(len(rows)) != n {
		t.Fatalf("%d rows, want %d", len(rows), n)
	}
	for i, r := range rows {
		pos := first + int64(i)
		want := 1 + r.example%37
		if r.pos != pos || int64(r.length) != want || r.ids[0] != r.example || r.ids[want-1] != r.example+want-1 ||
			r.next <= pos {
			t.Fatalf("row %d is %+v", pos, r)
		}
		for j := range r.ids {
			real := int64(j) < want
			if real != (r.mask[j] == 1) || real != (r.labels[j] != -100) || !real && r.ids[j] != 7 {
				t.Fatalf("row %d, token %d: %+v", pos, j, r)
			}
		}
	}
}

func TestStreamOverSocket(t *testing.T) {
	_, client, _ := start(t, Options{Backend: &fakeBackend{rows: 1000}})
	for _, c := range []struct {
		query    string
		first, n int64
	}{
		{"", 0, 1000}, {"batch_size=7&epochs=2", 0, 2000}, {"start=990", 990, 10}, {"start=1000", 1000, 0},
		{"batch_size=5000", 0, 1000},
	} {
		resp := get(t, client, c.query)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != contentType {
			t.Fatalf("%s: %v", c.query, resp)
		}
		rows, err := readAll(resp.Body)
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		checkRows(t, rows, c.first, c.n)
	}
}

// The same bytes come out with and without a goroutine that works ahead.
func TestWorkingAheadChangesNothing(t *testing.T) {
	const query = "batch_size=600&epochs=40"
	var bodies [2]string
	for i, capBytes := range []int64{1 << 20, 64 << 20} {
		s, client, _ := start(t, Options{Backend: &fakeBackend{rows: 1000}, Ledger: budget.New(capBytes)})
		resp := get(t, client, query)
		for deadline := 0; deadline < 1000; deadline++ { // until the stream shows what it leased
			if st := s.stats(); len(st.Clients) == 1 && st.Clients[0].LeaseBytes > 0 {
				if ahead := st.Clients[0].LeaseBytes > 900<<10; ahead != (i == 1) {
					t.Errorf("cap %d: leased %d", capBytes, st.Clients[0].LeaseBytes)
				}
				break
			}
			runtime.Gosched()
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		bodies[i] = string(body)
	}
	if bodies[0] != bodies[1] || len(bodies[0]) < 1<<20 {
		t.Errorf("%d and %d bytes differ", len(bodies[0]), len(bodies[1]))
	}
}

// A stream gets the best extras that memory is left for, and those that add little to what it needs also where
// the streams have taken much.
func TestExtras(t *testing.T) {
	const streams = 24 << 20 // what the ledger has for them
	for _, c := range []struct {
		name                string
		window, rows, taken int64
		world               int
		searched            bool
		piece               int
		ahead               bool
	}{
		{"small batches", 0, 8, 0, 1, true, 128 << 10, false},
		{"large batches", 0, 1024, 0, 1, true, 128 << 10, true},
		{"large batches in order", 0, 1024, 0, 1, false, 128 << 10, false},
		{"much is taken", 0, 8, 2 << 20, 1, true, 128 << 10, false},
		{"an eighth is nearly taken", 0, 8, 2<<20 + 512<<10, 1, true, 32 << 10, false},
		{"an eighth is nearly taken, large batches", 0, 1024, 2 << 20, 1, true, 128 << 10, false},
		{"an eighth is taken", 0, 8, 3 << 20, 1, true, smallPiece, false},
		{"a window of packed rows", 2 << 20, 1024, 0, 1, true, 128 << 10, false},
		{"the last of eight such", 2 << 20, 1024, 19 << 20, 8, true, 128 << 10, false},
		{"a smaller window, where much is taken", 1 << 20, 8, 6 << 20, 8, true, 128 << 10, false},
		{"a smaller window, where more is taken", 1 << 20, 8, 15 << 20, 8, true, 32 << 10, false},
		{"the last of eight", 0, 8, 7 * 570 << 10, 8, true, 128 << 10, false},
		{"the last of eight beside others", 0, 8, 3<<20 + 7*570<<10, 8, true, 128 << 10, false},
		{"the last of eight beside more", 0, 8, 4<<20 + 7*570<<10, 8, true, smallPiece, false},
		{"the last of 64", 0, 8, 63 * 185 << 10, 64, true, 32 << 10, false},
		{"the first of 120, which leave no room for as many", 0, 8, 3 << 20, 120, true, smallPiece, false},
		{"a large window", 12 << 20, 1024, 0, 1, true, 128 << 10, true},
		{"eight that just fit", 2<<20 + 900<<10, 8, 0, 8, true, smallPiece, false},
		{"no memory is left", 2 << 20, 8, streams - 2<<20 - 140<<10, 1, true, smallPiece, false},
	} {
		const fixed = 1 << 20
		ledger := budget.New(streams + fixed)
		if _, ok := ledger.TryAcquire(fixed + c.taken); !ok {
			t.Fatal(c.name)
		}
		o := &Opening{BatchRows: int(c.rows), BatchTokens: 64 * c.rows, WindowBytes: c.window, Searched: c.searched}
		s := stream{query: Query{World: c.world}, opening: o, enc: newEncoder(o, false)}
		if err := s.acquire(t.Context(), ledger, fixed, time.Second, make(chan struct{}, 1)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if s.piece != c.piece || (s.ahead > 0) != c.ahead {
			t.Errorf("%s: pieces of %d bytes and %d batches ahead, want %d and %v", c.name, s.piece, s.ahead, c.piece, c.ahead)
		}
		if used := ledger.Used(); used != fixed+c.taken+s.leased.Load() {
			t.Errorf("%s: %d bytes are leased, the stream shows %d", c.name, used-fixed-c.taken, s.leased.Load())
		}
	}
}

// The first stream that memory makes slow says so. One of small batches is not slow.
func TestShortMemoryIsSaid(t *testing.T) {
	var log bytes.Buffer
	s := NewServer(Options{Backend: &fakeBackend{}, Ledger: budget.New(4 << 20),
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if _, ok := s.opts.Ledger.TryAcquire(s.opts.Ledger.Cap() - s.opts.Ledger.Used() - 1<<20); !ok {
		t.Fatal("no memory at the start")
	}
	for i, rows := range []int{8, 1024, 1024} {
		o := &Opening{BatchRows: rows, BatchTokens: 64 * int64(rows)}
		st := &stream{id: uint64(i), opening: o, enc: newEncoder(o, false)}
		if err := s.admit(httptest.NewRequest("GET", "/v1/batches", nil), st); err != nil {
			t.Fatal(err)
		}
		st.lease.Release()
		if said := strings.Count(log.String(), "small pieces"); said != min(i, 1) {
			t.Errorf("after stream %d it was said %d times: %s", i, said, log.String())
		}
	}
}

// TestOtherPathsIgnoreQueries: probes and scrapers may add parameters of their own.
func TestOtherPathsIgnoreQueries(t *testing.T) {
	_, client, _ := start(t, Options{Backend: &fakeBackend{rows: 100}, Ledger: budget.New(4 << 20)})
	for _, path := range []string{"/healthz", "/metrics", "/v1/stats", "/v1/live", "/"} {
		resp, err := client.Get("http://dsload" + path + "?probe=a&probe=b&%zz")
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != 200 {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	_, client, path := start(t, Options{Backend: &fakeBackend{rows: 100, damagedAt: 1}, Ledger: budget.New(4 << 20)})
	for _, c := range []struct {
		target string
		status int
		says   string
	}{
		{"/v1/batches?batch_size=0", 400, "batch_size"}, {"/v1/batches?batch_size=x", 400, "batch_size"},
		{"/v1/batches?batch_size=99999999", 400, "65536"},
		{"/v1/batches?batchsize=3", 400, "no such parameter"}, {"/v1/batches?seed=1&seed=2", 400, "more than once"},
		{"/v1/batches?seed=1.5", 400, "seed"},
		{"/v1/batches?rank=2&world=2", 400, "rank"}, {"/v1/batches?shuffle=yes", 400, "full, block, none"},
		{"/v1/batches?split=test", 400, "no split"},
		{"/v1/batches?%zz", 400, "cannot be read"}, {"/v1/batches?a=" + strings.Repeat("b", 9000), 414, "8 KiB"},
		{"/v1/batches?start=-1", 400, "start"}, {"/v1/batches?group=32", 400, "no window of rows"},
		{"/v1/dataset?nam=a", 400, "no such parameter"}, {"/v1/dataset?name=a&name=b", 400, "more than once"},
		{"/v1/batches?mix=a", 400, "name=weight"}, {"/v1/batches?mix=a=1,a=2", 400, "twice"},
		{"/v1/batches?mix=a=-1", 400, "above 0"},
		{"/v1/batches?batch_size=50000", 413, "memory cap"}, {"/v1/batches", 500, "checksum differs"},
		{"/nothing", 404, "nothing is served"},
		{"/v1/batches/", 404, "nothing is served"},
	} {
		resp, err := client.Get("http://dsload" + c.target)
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ Error, Hint string }
		err = json.NewDecoder(resp.Body).Decode(&body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || !strings.Contains(body.Error, c.says) || body.Hint == "" {
			t.Errorf("%.60s: %d %+v %v", c.target, resp.StatusCode, body, err)
		}
	}
	for request, status := range map[string]string{
		"POST /v1/batches HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n":          "405",
		"GET /v1/batches HTTP/1.0\r\n\r\n":                                           "505",
		"GET /v1/batches HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello":      "413",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 40000) + "\r\n\r\n": "431",
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(line, status) {
			t.Errorf("%.40q: %q %v, want %s", request, line, err, status)
		}
		conn.Close()
	}
}

// A row that cannot be read in the middle of a stream: what came before arrives, then the client
// gets an error, never an end.
func TestDamageMidwayIsAnError(t *testing.T) {
	for name, query := range map[string]string{"small batches": "batch_size=10", "ahead": "batch_size=400"} {
		_, client, _ := start(t, Options{Backend: &fakeBackend{rows: 5000, damagedAt: 4000}})
		rows, err := readAll(get(t, client, query).Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v after %d rows", name, err, len(rows))
		}
		checkRows(t, rows, 0, 4000)
	}
}

func TestShutdownLetsStreamsEndAndCutsTheRest(t *testing.T) {
	s, client, _ := start(t, Options{Backend: &fakeBackend{rows: 1000}})
	endless := get(t, client, "epochs=0")
	short := get(t, client, "epochs=3")
	rows, err := readAll(short.Body)
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, rows, 0, 3000)
	for s.numStreams() > 1 { // the client has all of the short one before the server is through with it
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no patience
	if cut, stuck := s.Shutdown(ctx); cut != 1 || stuck != 0 {
		t.Errorf("%d streams cut, want the endless one", cut)
	}
	if _, err := io.Copy(io.Discard, endless.Body); err == nil {
		t.Error("a cut stream read as a whole one")
	}
	if err := s.register(&stream{}); err == nil {
		t.Error("a stream began after the shutdown")
	}
}

// 256 clients at once, each reading at its own pace, all get exactly their rows, and never more
// memory is leased than the cap.
func TestManyClients(t *testing.T) {
	clients := effort.Of(32, 256, 256)
	ledger := budget.New(24 << 20)
	s, client, _ := start(t, Options{Backend: &fakeBackend{rows: 600}, Ledger: ledger})
	var held, done sync.WaitGroup
	held.Add(clients)
	done.Add(clients)
	errs := make(chan error, clients)
	for i := range clients {
		go func() {
			defer done.Done()
			errs <- func() error {
				url := fmt.Sprintf("http://dsload/v1/batches?batch_size=%d&start=%d&epochs=3", 1+i%40, i)
				resp, err := client.Get(url)
				// One that is slow to ask on a busy machine loses its place, and asks again.
				for errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
					resp, err = client.Get(url)
				}
				if err == nil && resp.StatusCode != 200 {
					err = errors.New(resp.Status)
				}
				held.Done()
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				held.Wait() // all streams exist now, and none has ended: three epochs fit no socket buffer
				rows, err := readAll(resp.Body)
				if err == nil && (len(rows) != 1800-i || rows[0].pos != int64(i)) {
					err = fmt.Errorf("client %d got %d rows", i, len(rows))
				}
				return err
			}()
		}()
	}
	held.Wait()
	if n := s.numStreams(); n != clients {
		t.Errorf("%d streams at once, want %d", n, clients)
	}
	done.Wait()
	for range clients {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if ledger.Peak() > ledger.Cap() {
		t.Errorf("leased %d of %d", ledger.Peak(), ledger.Cap())
	}
	if total := s.metrics.total(); total.Rows != int64(clients*1800-clients*(clients-1)/2) {
		t.Errorf("%d rows counted", total.Rows)
	}
}

// Clients that stall, and clients that leave, neither stop others nor leave anything behind (goleak
// and start check that).
func TestStalledAndVanishedClients(t *testing.T) {
	_, client, path := start(t, Options{Backend: &fakeBackend{rows: 1000}, Ledger: budget.New(16 << 20)})
	for i := range 60 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /v1/batches?epochs=0&batch_size=%d HTTP/1.1\r\nHost: x\r\n\r\n", 1+i*5)
		if i%3 == 0 {
			conn.Close() // vanishes before the answer
		} else {
			defer conn.Close() // never reads
		}
	}
	rows, err := readAll(get(t, client, "").Body)
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, rows, 0, 1000)
}

// Time stands still but for timers: a client that takes nothing is cut after exactly the timeout.
func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Backend: &fakeBackend{rows: 100}, Ledger: budget.New(16 << 20),
			WriteTimeout: time.Hour, Log: slog.New(slog.DiscardHandler)})
		ours, theirs := net.Pipe()
		defer ours.Close()
		l := &oneConn{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conns <- theirs
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		began := time.Now()
		if _, err := io.WriteString(ours, "GET /v1/batches?epochs=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		s.running.Wait() // nobody reads on: only the timeout can end it
		if waited := time.Since(began); waited != time.Hour {
			t.Errorf("cut after %v", waited)
		}
		s.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// oneConn is a listener of connections made elsewhere.
type oneConn struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func TestPagesBesideTheStream(t *testing.T) {
	_, client, _ := start(t, Options{Backend: &fakeBackend{rows: 100}})
	if _, err := readAll(get(t, client, "").Body); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		"/": "<title>dsload feed</title>", "/v1/dataset": `"format":"dsload"`,
		"/metrics": "dsload_feed_rows_total 100", "/v1/stats": `"rows":100`,
	} {
		resp, err := client.Get("http://dsload" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), says) {
			t.Errorf("%s: %d %v, %q is missing in %.300s", path, resp.StatusCode, err, says, body)
		}
	}
	resp, err := client.Head("http://dsload/v1/batches")
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("HEAD: %v %v", resp, err)
	}
	resp.Body.Close()
}

func FuzzParseQuery(f *testing.F) {
	f.Add("split=val&batch_size=3&max_tokens=100&mix=a=1,b=2.5&rank=1&world=2&seed=-1")
	f.Add("padding=max_length&padding_side=left&dtype=int32&labels=none&tail=pad&start=9223372036854775807")
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := ParseQuery(raw)
		var re *RequestError
		if err != nil {
			if !errors.As(err, &re) || re.Status < 400 || re.Status > 499 || re.Reason == "" || re.Hint == "" {
				t.Fatalf("%q: %#v", raw, err)
			}
			return
		}
		if q.BatchSize < 1 || q.BatchSize > maxBatchRows || q.World < 1 || q.Rank < 0 || q.Rank >= q.World ||
			q.Start < 0 || q.Group < 1 {
			t.Fatalf("%q: %+v", raw, q)
		}
	})
}

func BenchmarkSocket(b *testing.B) {
	for name, query := range map[string]string{"32": "batch_size=32", "4096": "batch_size=4096"} {
		b.Run(name, func(b *testing.B) {
			_, client, _ := start(b, Options{Backend: &fakeBackend{rows: 100_000}})
			resp := get(b, client, "epochs=0&"+query)
			in, err := ipc.NewReader(resp.Body)
			if err != nil {
				b.Fatal(err)
			}
			defer in.Release()
			rows := int64(0)
			for b.Loop() {
				if !in.Next() {
					b.Fatal(in.Err())
				}
				rows += in.RecordBatch().NumRows()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
		})
	}
}
