package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// memoryRows is a dataset as plain numbers, the reference for batches.
type memoryRows []dataset.Example

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
		e := dataset.Example{InputIDs: ids(1 + rng.IntN(40)), Document: int64(i)}
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
func (rows memoryRows) write(t testing.TB, dir string, schema shard.Schema, shardBytes int64, sources ...string) string {
	t.Helper()
	b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, dataset.BuilderOptions{Schema: schema, ShardBytes: shardBytes,
		Settings: []byte(`{"max-length":64}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var by dataset.BySource // as many documents of each of the sources
	for i := range rows {
		if err := b.Row("train", &rows[i]); err != nil {
			t.Fatal(err)
		}
		if len(sources) > 0 {
			by.Enter(0, i*len(sources)/len(rows), rows[i].Document, func(k int) string { return sources[k] })
			by.Row(0, &rows[i])
		}
	}
	if _, err := b.Finish(dataset.Provenance{BySource: &by, Tokenizer: shard.TokenizerInfo{Name: "test", Fingerprint: "f",
		VocabSize: schema.VocabSize, Special: map[string]int64{"pad": 5, "eos": 6}}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveDir runs a server for folders; the client reaches it over its socket.
func serveDir(t testing.TB, dirs ...string) *http.Client {
	t.Helper()
	o := Options{Datasets: dirs, Feed: feed.Options{Log: slog.New(slog.DiscardHandler)}}
	reader, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return serveBackend(t, reader, o)
}

// serveBackend runs a server for what is open, and closes it at the end.
func serveBackend(t testing.TB, reader *Reader, o Options) *http.Client {
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
	dataset, source      []int32
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
			*map[string]*[]int32{"length": &b.length, "dataset": &b.dataset,
				"source": &b.source}[f.Name] = slices.Clone(col.Int32Values())
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
