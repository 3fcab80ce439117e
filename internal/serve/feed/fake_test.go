package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/serve/collate"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDamaged = errors.New("train-00000.arrow, byte 4711: checksum differs")

// fakeBackend is a dataset made of arithmetic: row i has 1 + i%37 tokens, the first of which is i.
type fakeBackend struct {
	rows      int64
	damagedAt int64 // the row that cannot be read; 0 = none
	sick      error // what Check says
	counted   []*Counted
}

// sources are those of the rows: the first third, and the others.
func (f *fakeBackend) sources() []*Counted {
	if f.counted == nil {
		f.counted = []*Counted{{Dataset: "fake", Split: "train", Source: "a \"b\".txt", Size: f.rows / 3},
			{Dataset: "fake", Split: "train", Source: "c.txt", Size: f.rows - f.rows/3}}
	}
	return f.counted
}

func (f *fakeBackend) ids(row int64) []byte {
	var ids []byte
	for i := range 1 + row%37 {
		ids = binary.LittleEndian.AppendUint32(ids, uint32(row+i))
	}
	return ids
}

func (f *fakeBackend) Open(q Query) (*Opening, error) {
	if q.Split != "train" {
		return nil, BadParam("split", "no split "+q.Split, "there is train")
	}
	return &Opening{
		Collate: collate.Options{PadID: 7, Left: q.Left, Multiple: q.PadToMultipleOf, Narrow: q.Int32,
			Labels: q.Labels, Counters: 2},
		Counted: f.sources(), Asked: map[string]float64{"fake": 1},
		BatchRows: q.BatchSize, BatchTokens: int64(q.BatchSize) * 37, Searched: true,
		Metadata: map[string]string{"dsload.rows": fmt.Sprint(f.rows)},
		Stream:   &fakeStream{f: f, q: q, at: q.Start},
	}, nil
}

func (f *fakeBackend) Dataset(string) ([][]byte, error) {
	return [][]byte{[]byte(`{"format":"dsload",`), []byte(`"name":"fake"}`)}, nil
}
func (f *fakeBackend) About() []About {
	return []About{{Name: "fake", Tokenizer: "none",
		Splits: []AboutSplit{{Name: "train", Rows: f.rows, Tokens: 19 * f.rows,
			Longest: 37, Lengths: [][3]int64{{1, 1, f.rows / 2}, {2, 37, f.rows - f.rows/2}}, Sources: f.sources()}}}}
}
func (f *fakeBackend) Seal() string { return "5ea1" }
func (f *fakeBackend) Check() error { return f.sick }

type fakeStream struct {
	f  *fakeBackend
	q  Query
	at int64
}

func (s *fakeStream) Close() {}

func (s *fakeStream) Next(_ context.Context, b *collate.Batch) error {
	end := s.f.rows * s.q.Epochs
	if s.q.Epochs > 0 && s.at >= end {
		return io.EOF
	}
	for range s.q.BatchSize {
		if s.q.Epochs > 0 && s.at >= end {
			break
		}
		row := s.at % s.f.rows
		if s.f.damagedAt > 0 && row == s.f.damagedAt {
			return errDamaged
		}
		if err := addRow(b, collate.Options{TokenBytes: 4}, collate.Buffers{IDs: s.f.ids(row)},
			collate.Row{Example: row, Position: s.at}); err != nil {
			return err
		}
		b.Count(min(1, int(3*row/s.f.rows)), 1, 1+row%37)
		s.at++
	}
	b.Next = s.at
	return b.Seal()
}

// addRow appends one row with its values to a batch that was made with o.
func addRow(b *collate.Batch, o collate.Options, values collate.Buffers, r collate.Row) error {
	n := collate.Counts{IDs: len(values.IDs) / o.TokenBytes}
	if err := b.Read(func(dst *collate.Buffers) error {
		dst.IDs = append(dst.IDs, values.IDs...)
		if o.Labels == collate.Seq2Seq {
			n.Labels = len(values.Labels) / o.TokenBytes
			dst.Labels = append(dst.Labels, values.Labels...)
		}
		if o.Packed {
			n.Segments = len(values.Segments)
			dst.Segments = append(dst.Segments, values.Segments...)
		}
		return nil
	}); err != nil {
		return err
	}
	return b.Take(n, r)
}

// start runs a server on a unix socket and returns a client for it.
func start(t testing.TB, o Options) (*Server, *http.Client, string) {
	t.Helper()
	if o.Ledger == nil {
		o.Ledger = budget.New(32 << 20)
	}
	o.Log = slog.New(slog.DiscardHandler)
	s := NewServer(o)
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	client := unixClient(path)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
		if used := o.Ledger.Used() - s.fixed; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
		if n := s.conns.held(); n != 0 {
			t.Errorf("%d connections still have a place", n)
		}
	})
	return s, client, path
}

func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

// row is one row of a batch as a client sees it.
type row struct {
	ids, mask, labels []int64
	length            int32
	example, pos      int64
	next              int64
}

// readAll reads a stream with arrow-go's reader, which knows nothing of ours.
func readAll(r io.Reader) (rows []row, err error) {
	in, err := ipc.NewReader(r)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	for in.Next() {
		rows = append(rows, rowsOf(in.RecordBatch())...)
	}
	if err := in.Err(); err != nil && !errors.Is(err, io.EOF) {
		return rows, err
	}
	// arrow-go takes the end of the body for the end of the stream; whether the body was whole, HTTP tells.
	_, err = io.Copy(io.Discard, r)
	return rows, err
}

func rowsOf(rec arrow.RecordBatch) (rows []row) {
	list := func(name string, i int) (out []int64) {
		at := rec.Schema().FieldIndices(name)
		if len(at) == 0 {
			return nil
		}
		col := rec.Column(at[0]).(*array.List)
		from, to := col.ValueOffsets(i)
		for j := from; j < to; j++ {
			switch v := col.ListValues().(type) {
			case *array.Int64:
				out = append(out, v.Value(int(j)))
			case *array.Int32:
				out = append(out, int64(v.Value(int(j))))
			}
		}
		return out
	}
	int64At := func(name string, i int) int64 {
		return rec.Column(rec.Schema().FieldIndices(name)[0]).(*array.Int64).Value(i)
	}
	for i := range int(rec.NumRows()) {
		rows = append(rows, row{
			ids: list("input_ids", i), mask: list("attention_mask", i), labels: list("labels", i),
			length:  rec.Column(rec.Schema().FieldIndices("length")[0]).(*array.Int32).Value(i),
			example: int64At("example", i), pos: int64At("row", i), next: int64At("next", i),
		})
	}
	return rows
}

func get(t testing.TB, c *http.Client, query string) *http.Response {
	t.Helper()
	resp, err := c.Get("http://dsload/v1/batches?" + query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}
