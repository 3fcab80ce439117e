package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// memoryRows is a dataset as plain numbers, the reference for batches.
type memoryRows []shard.Example

// randomRows makes rows of every shape that a schema allows.
func randomRows(n int, schema shard.Schema, seed uint64) (rows memoryRows) {
	rng := rand.New(rand.NewPCG(seed, 1))
	ids := func(n int) []uint32 {
		out := make([]uint32, n)
		for i := range out {
			out[i] = uint32(rng.IntN(schema.VocabSize))
		}
		return out
	}
	for i := range n {
		e := shard.Example{InputIDs: ids(1 + rng.IntN(40)), Document: int64(i)}
		if schema.Labels {
			e.Labels = ids(rng.IntN(30))
		}
		if schema.LossMask {
			e.LossMask = make([]bool, len(e.InputIDs))
			for j := range e.LossMask {
				e.LossMask[j] = rng.IntN(3) > 0
			}
		}
		if schema.Segments {
			for left := len(e.InputIDs); left > 0; {
				k := 1 + rng.IntN(left)
				e.Segments = append(e.Segments, int32(k))
				left -= k
			}
		}
		rows = append(rows, e)
	}
	return rows
}

// write builds the dataset folder with shards of a few rows.
func (rows memoryRows) write(t testing.TB, dir string, schema shard.Schema, shardBytes int64) string {
	t.Helper()
	b, _, err := shard.OpenBuilder(shard.OS(), dir, shard.BuilderOptions{Schema: schema, ShardBytes: shardBytes,
		Settings: []byte(`{"max-length":64}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range rows {
		if err := b.Append("train", &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Finish(shard.Provenance{Tokenizer: shard.TokenizerInfo{Name: "test", Fingerprint: "f",
		VocabSize: schema.VocabSize, Special: map[string]int64{"pad": 5, "eos": 6}}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveDir runs a server for folders; the client reaches it over its socket.
func serveDir(t testing.TB, dirs ...string) *http.Client {
	t.Helper()
	o := Options{Datasets: dirs, Log: slog.New(slog.DiscardHandler)}
	reader, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return serveBackend(t, reader, o)
}

// serveBackend runs a server for what is open, and closes it at the end.
func serveBackend(t testing.TB, reader interface {
	Backend
	io.Closer
}, o Options) *http.Client {
	t.Helper()
	server, err := NewServer(reader, o)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "feed") // short enough for a socket's address
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "s")
	l, err := feed.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Shutdown(ctx)
		if err := errors.Join(<-served, reader.Close(), os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	})
	return client
}

// wireBatch is a record batch as a client sees it.
type wireBatch struct {
	columns              map[string][][]int64 // the padded ones
	length               []int32
	example, order, next []int64
	dataset              []int32
}

// fetch reads a whole stream with arrow-go's reader.
func fetch(client *http.Client, query string) (batches []wireBatch, err error) {
	resp, err := client.Get("http://dsload/v1/batches?" + query)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		body, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %s", resp.Status, body)
	}
	in, err := ipc.NewReader(resp.Body)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	for in.Next() {
		batches = append(batches, decode(in.RecordBatch()))
	}
	if err := in.Err(); err != nil && !errors.Is(err, io.EOF) {
		return batches, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return batches, err
}

// eachRow reads a stream of a dataset's rows, however it ends.
func eachRow(body io.Reader, do func(example int64, ids []int64)) error {
	in, err := ipc.NewReader(body)
	if err != nil {
		return err
	}
	defer in.Release()
	for in.Next() {
		b := decode(in.RecordBatch())
		for i, e := range b.example {
			do(e, b.columns["input_ids"][i][:b.length[i]])
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return err
}

func decode(rec arrow.RecordBatch) wireBatch {
	b := wireBatch{columns: map[string][][]int64{}}
	for i, f := range rec.Schema().Fields() {
		switch col := rec.Column(i).(type) {
		case *array.List:
			rows := make([][]int64, 0, col.Len())
			for r := range col.Len() {
				from, to := col.ValueOffsets(r)
				row := make([]int64, 0, to-from)
				for k := from; k < to; k++ {
					switch v := col.ListValues().(type) {
					case *array.Int64:
						row = append(row, v.Value(int(k)))
					case *array.Int32:
						row = append(row, int64(v.Value(int(k))))
					}
				}
				rows = append(rows, row)
			}
			b.columns[f.Name] = rows
		case *array.Int64:
			*map[string]*[]int64{"example": &b.example, "row": &b.order,
				"next": &b.next}[f.Name] = slices.Clone(col.Int64Values())
		case *array.Int32:
			*map[string]*[]int32{"length": &b.length, "dataset": &b.dataset}[f.Name] = slices.Clone(col.Int32Values())
		}
	}
	return b
}

// slow returns the batch that the given examples should make, computed in the most obvious way.
func (rows memoryRows) slow(q feed.Query, examples []int64, schema shard.Schema) map[string][][]int64 {
	const pad, ignored = 5, -100
	out := map[string][][]int64{}
	add := func(name string, row []int64) { out[name] = append(out[name], row) }
	if q.Labels == collate.Auto {
		q.Labels = map[bool]collate.Labels{true: collate.Seq2Seq, false: collate.Causal}[schema.Labels]
	}
	for _, e := range examples {
		ex := rows[e]
		var ids, mask, labels, position, segment []int64
		for i, id := range ex.InputIDs {
			ids, mask = append(ids, int64(id)), append(mask, 1)
			if q.Labels == collate.Causal && schema.LossMask && !ex.LossMask[i] {
				labels = append(labels, ignored)
			} else if q.Labels == collate.Causal {
				labels = append(labels, int64(id))
			}
		}
		if q.Labels == collate.Seq2Seq {
			for _, id := range ex.Labels {
				labels = append(labels, int64(id))
			}
		}
		for n, l := range ex.Segments {
			if q.Labels == collate.Causal && q.MaskBorders {
				labels[len(position)] = ignored
			}
			for i := range l {
				position, segment = append(position, int64(i)), append(segment, int64(n+1))
			}
		}
		add("input_ids", ids)
		add("attention_mask", mask)
		if q.Labels != collate.NoLabels {
			add("labels", labels)
		}
		if schema.Segments {
			add("position_ids", position)
			add("segments", segment)
		}
	}
	for name, list := range out {
		value := map[string]int64{"input_ids": pad, "labels": ignored}[name]
		longest := 0
		for _, r := range list {
			longest = max(longest, len(r))
		}
		for longest%q.PadToMultipleOf != 0 {
			longest++
		}
		if q.MaxLength {
			for longest = 64; longest%q.PadToMultipleOf != 0; longest++ {
			}
		}
		for i, r := range list {
			fill := slices.Repeat([]int64{value}, longest-len(r))
			if q.Left {
				list[i] = append(fill, r...)
			} else {
				list[i] = append(slices.Clone(r), fill...)
			}
			if list[i] == nil {
				list[i] = []int64{}
			}
		}
	}
	return out
}

var schemas = map[string]shard.Schema{
	"plain": {VocabSize: 50257}, "wide": {VocabSize: 200_000}, "chat": {VocabSize: 1000, LossMask: true},
	"targets": {VocabSize: 1000, Labels: true}, "packed": {VocabSize: 70_000, Segments: true},
	"everything": {VocabSize: 300, Labels: true, LossMask: true, Segments: true},
}

// TestBatchesEqualReference checks that what comes through shard, sampler, collate, encoder, HTTP
// and arrow-go equals the slow reference over the rows in memory, for every kind of row.
func TestBatchesEqualReference(t *testing.T) {
	for name, schema := range schemas {
		t.Run(name, func(t *testing.T) {
			rows := randomRows(300, schema, 1)
			client := serveDir(t, rows.write(t, t.TempDir(), schema, 8<<10))
			rapid.Check(t, func(t *rapid.T) {
				labels := []string{"auto", "causal", "none"}
				if schema.Labels {
					labels = append(labels, "seq2seq")
				}
				query := fmt.Sprintf("batch_size=%d&seed=%d&shuffle=%s&bucket=%d&group=%d&labels=%s&borders=%s&padding_side=%s&pad_to_multiple_of=%d&padding=%s&dtype=%s&start=%d",
					rapid.IntRange(1, 300).Draw(t, "batch"), rapid.IntRange(0, 3).Draw(t, "seed"),
					rapid.SampledFrom([]string{"full", "block", "none"}).Draw(t, "shuffle"),
					rapid.SampledFrom([]int{0, 100, 1000}).Draw(t, "bucket"), rapid.IntRange(1, 50).Draw(t, "group"),
					rapid.SampledFrom(labels).Draw(t, "labels"),
					rapid.SampledFrom([]string{"mask", "keep"}).Draw(t, "borders"),
					rapid.SampledFrom([]string{"left", "right"}).Draw(t, "side"),
					rapid.SampledFrom([]int{1, 8}).Draw(t, "multiple"),
					rapid.SampledFrom([]string{"longest", "max_length"}).Draw(t, "padding"),
					rapid.SampledFrom([]string{"int64", "int32"}).Draw(t, "dtype"),
					rapid.IntRange(0, 300).Draw(t, "start"))
				if rapid.Bool().Draw(t, "by tokens") {
					query += fmt.Sprintf("&max_tokens=%d", rapid.IntRange(80, 4000).Draw(t, "max_tokens"))
				}
				q, err := feed.ParseQuery(query)
				if err != nil {
					t.Fatal(err)
				}
				batches, err := fetch(client, query)
				if err != nil {
					t.Fatal(query, err)
				}
				at := q.Start
				for _, b := range batches {
					if want := rows.slow(q, b.example, schema); !reflect.DeepEqual(want, b.columns) {
						t.Fatal(query, cmp.Diff(want, b.columns))
					}
					if longest := int64(slices.Max(b.length)); q.MaxTokens > 0 &&
						longest*int64(len(b.length)) > q.MaxTokens {
						t.Fatalf("%d rows of %d tokens", len(b.length), longest)
					}
					for i, e := range b.example {
						if b.order[i] != at || int(b.length[i]) != len(rows[e].InputIDs) ||
							b.next[i] != b.order[0]+int64(len(b.order)) {
							t.Fatalf("row %d: order %d length %d next %d", at, b.order[i], b.length[i], b.next[i])
						}
						at++
					}
				}
				if at != 300 {
					t.Fatalf("%s ended at row %d", query, at)
				}
			})
		})
	}
}

func TestMixOfDatasets(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	a, b := randomRows(300, schema, 2), randomRows(900, schema, 3)
	client := serveDir(t, "left="+a.write(t, t.TempDir(), schema, 8<<10),
		"right="+b.write(t, t.TempDir(), schema, 8<<10))
	const query = "mix=left=3,right=1&batch_size=16&epochs=2&seed=4&bucket=200"
	all, err := fetch(client, query)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int32]int{}
	for _, batch := range all {
		for i, d := range batch.dataset {
			counts[d]++
			want := memoryRows{[]memoryRows{a, b}[d][batch.example[i]]}.slow(feed.Query{Labels: collate.Causal,
				PadToMultipleOf: 1}, []int64{0}, schema)
			if diff := cmp.Diff(want["input_ids"][0], batch.columns["input_ids"][i][:batch.length[i]]); diff != "" {
				t.Fatal(diff)
			}
		}
	}
	if n := counts[0] + counts[1]; n != 2400 || counts[0] < n*3/4-60 || counts[0] > n*3/4+60 {
		t.Errorf("%v rows of the two datasets", counts)
	}
	rest, err := fetch(client, fmt.Sprintf("%s&start=%d", query, all[70].next[0]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[71:], rest, cmp.AllowUnexported(wireBatch{})); diff != "" {
		t.Error("resume differs: ", diff[:min(len(diff), 500)])
	}
	for bad, query := range map[string]string{"unknown": "mix=middle=1", "split": "split=val"} {
		if _, err := fetch(client, query); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// TestRanksOverTheWire checks that every step's next is the same on all ranks, and that together
// the ranks give the order.
func TestRanksOverTheWire(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	rows := randomRows(1000, schema, 5)
	client := serveDir(t, rows.write(t, t.TempDir(), schema, 8<<10))
	for _, query := range []string{"batch_size=8", "max_tokens=400", "max_tokens=400&bucket=300",
		"batch_size=8&tail=pad", "batch_size=8&tail=keep"} {
		seen := map[int64]int{}
		var nexts [3][]int64
		for rank := range 3 {
			batches, err := fetch(client, fmt.Sprintf("%s&rank=%d&world=3&seed=9", query, rank))
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range batches {
				nexts[rank] = append(nexts[rank], b.next[0])
				for _, p := range b.order {
					seen[p]++
				}
			}
		}
		if query != "batch_size=8&tail=keep" && !(slices.Equal(nexts[0], nexts[1]) &&
			slices.Equal(nexts[0], nexts[2])) {
			t.Errorf("%s: ranks disagree", query)
		}
		for p, n := range seen {
			if n != 1 && query != "batch_size=8&tail=pad" {
				t.Fatalf("%s: row %d came %d times", query, p, n)
			}
		}
		if len(seen) < 1000-60 || len(seen) != 1000 && (query == "batch_size=8&tail=pad" ||
			query == "batch_size=8&tail=keep") {
			t.Errorf("%s: %d rows", query, len(seen))
		}
	}
}

// TestDamagedShardMidStream damages a shard while it is served. The client's stream breaks with an
// error, asking again gives the reason, and the server reports bad health.
func TestDamagedShardMidStream(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	dir := randomRows(3000, schema, 6).write(t, t.TempDir(), schema, 16<<10)
	client := serveDir(t, dir)
	last := filepath.Join(dir, "train-00003.arrow")
	info, err := os.Stat(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(last, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	batches, err := fetch(client, "shuffle=none&batch_size=10")
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(batches) == 0 {
		t.Fatalf("%d batches, then %v", len(batches), err)
	}
	next := batches[len(batches)-1].next[0]
	if _, err := fetch(client, fmt.Sprintf("shuffle=none&batch_size=10&start=%d", next)); err == nil ||
		!contains(err.Error(), "train-00003.arrow", "truncated") {
		t.Errorf("asking again: %v", err)
	}
	resp, err := client.Get("http://dsload/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 503 || !contains(string(body), "train-00003.arrow") {
		t.Errorf("health: %d %s", resp.StatusCode, body)
	}
}

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func TestOptionsAreChecked(t *testing.T) {
	schema := shard.Schema{VocabSize: 100}
	dir := randomRows(10, schema, 7).write(t, t.TempDir(), schema, 8<<10)
	for name, o := range map[string]Options{"none": {}, "twice": {Datasets: []string{dir, dir}},
		"missing": {Datasets: []string{dir + "/nothing"}}} {
		if r, err := Open(o); err == nil {
			r.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	r, err := Open(Options{Datasets: []string{"a=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := NewServer(r, Options{Memory: 1 << 20}); err == nil {
		t.Error("a cap of 1 MiB was accepted")
	}
	for _, query := range []string{"labels=seq2seq", "max_tokens=3", "start=11", "epochs=2&start=21", "split=val"} {
		q, err := feed.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var re *feed.RequestError
		if _, err := r.Open(q); !errors.As(err, &re) || re.Status != 400 || re.Hint == "" {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestDefaultMemoryHoldsItsStreams checks that under the default cap a stream of large batches
// works ahead, and 256 usual streams that nobody reads still fit next to it.
func TestDefaultMemoryHoldsItsStreams(t *testing.T) {
	rows := make(memoryRows, 300)
	for i := range rows {
		rows[i] = shard.Example{InputIDs: make([]uint32, 512), Document: int64(i)}
	}
	client := serveDir(t, rows.write(t, t.TempDir(), shard.Schema{VocabSize: 50257}, 1<<20))
	ask := func(query string) {
		resp, err := client.Get("http://dsload/v1/batches?epochs=0&" + query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", query, resp.Status)
		}
	}
	type stats struct {
		Streams int   `json:"streams"`
		Leased  int64 `json:"memory_leased_bytes"`
		Cap     int64 `json:"memory_cap_bytes"`
		Clients []struct {
			Leased int64 `json:"lease_bytes"`
		}
	}
	look := func() (s stats) {
		resp, err := client.Get("http://dsload/v1/stats")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const batch = 256 * 512 * 2 // as in the shard
	ask("batch_size=256")
	if s := look(); len(s.Clients) != 1 || s.Clients[0].Leased < 3*batch {
		t.Errorf("%+v: no batches ahead", s)
	}
	for i := range 256 {
		ask(fmt.Sprintf("batch_size=32&seed=%d", i))
	}
	if s := look(); s.Streams != 257 || s.Cap != DefaultMemory || s.Leased > s.Cap {
		t.Errorf("%d streams, %d bytes of %d", s.Streams, s.Leased, s.Cap)
	}
}
