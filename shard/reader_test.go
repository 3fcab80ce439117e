package shard_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// rows gives the corpus' rows of a split in order.
func (c corpus) rows(split string) []*dataset.Example {
	var out []*dataset.Example
	for i := range c.n {
		if s, e := c.row(i); s == split {
			out = append(out, e)
		}
	}
	return out
}

func openDataset(t testing.TB, fsys shardfile.FS, o shard.ReaderOptions) *shard.Dataset {
	t.Helper()
	d, err := o.Open(fsys, "/d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func split(t testing.TB, d *shard.Dataset, name string) *shard.Split {
	t.Helper()
	r, err := d.Split(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// toExample copies a row that was read.
func toExample(row *shard.Row) *dataset.Example {
	e := &dataset.Example{InputIDs: row.AppendInputIDs(nil), Document: row.Document, Part: row.Part}
	e.Labels = row.AppendLabels(nil)
	e.LossMask = append([]bool(nil), row.LossMask...)
	e.Segments = append([]int32(nil), row.Segments...)
	return e
}

func normal(e *dataset.Example) *dataset.Example {
	c := *e
	if len(c.Labels) == 0 {
		c.Labels = nil
	}
	return &c
}

// Every row comes back as it was appended, by each way of reading, in any order, with few files
// open.
func TestReadRows(t *testing.T) {
	effort.RacedElsewhere(t)
	for name, c := range corpora {
		t.Run(name, func(t *testing.T) {
			fsys := c.build(t)
			for _, maxOpen := range []int{1, 2, 100} {
				d := openDataset(t, fsys, shard.ReaderOptions{MaxOpenShards: maxOpen, MaxIndexBytes: 100})
				for _, sp := range []string{"train", "val"} {
					r, want := split(t, d, sp), c.rows(sp)
					if r.NumRows() != int64(len(want)) {
						t.Fatalf("%d rows, want %d", r.NumRows(), len(want))
					}
					var row shard.Row
					for i, e := range want {
						if err := r.ReadRow(int64(i), &row); err != nil {
							t.Fatal(err)
						}
						if diff := differ(normal(e), toExample(&row)); diff != "" {
							t.Fatalf("row %d: %s", i, diff)
						}
					}
					checkSpans(t, r, want)
				}
				if n := fsys.OpenFiles(); n > maxOpen {
					t.Errorf("%d files open, limit %d", n, maxOpen)
				}
				if err := d.Close(); err != nil || fsys.OpenFiles() != 0 {
					t.Errorf("close: %v, %d files left open", err, fsys.OpenFiles())
				}
			}
		})
	}
}

// checkSpans reads random rows by Locate, Lengths and AppendIDs.
func checkSpans(t *testing.T, r *shard.Split, want []*dataset.Example) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	rows := make([]int64, 500)
	for i := range rows {
		if rows[i] = rnd.Int64N(r.NumRows()); i > 0 && i%3 > 0 {
			rows[i] = min(rows[i-1]+1, r.NumRows()-1) // runs
		}
	}
	spans, lengths := make([]shard.Span, len(rows)), make([]int32, len(rows))
	if err := errors.Join(r.Locate(spans, rows), r.Lengths(lengths, rows)); err != nil {
		t.Fatal(err)
	}
	raw, err := r.AppendIDs([]byte("head"), spans)
	if err != nil {
		t.Fatal(err)
	}
	raw = raw[4:]
	for i, n := range rows {
		ids := want[n].InputIDs
		if int(lengths[i]) != len(ids) || int(spans[i].Len) != len(ids) {
			t.Fatalf("row %d: length %d and %d, want %d", n, lengths[i], spans[i].Len, len(ids))
		}
		row := shard.Row{Width: r.IDWidth(), InputIDs: raw[:len(ids)*r.IDWidth()]}
		if got := row.AppendInputIDs(nil); !slices.Equal(got, ids) {
			t.Fatalf("row %d: ids %v, want %v", n, got, ids)
		}
		raw = raw[len(row.InputIDs):]
	}
	if len(raw) != 0 {
		t.Fatalf("%d bytes too many", len(raw))
	}
}

func TestReadConcurrently(t *testing.T) {
	c := allCols
	d := openDataset(t, c.build(t), shard.ReaderOptions{MaxOpenShards: 2, MaxIndexBytes: 64})
	r, want := split(t, d, "train"), c.rows("train")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			readAtRandom(t, r, want, rand.New(rand.NewPCG(uint64(g), 9)), 400, func(int) {})
		})
	}
	wg.Wait()
}

// readAtRandom reads n rows in any order and compares them; before each it calls before with its number.
// It may be called by any goroutine.
func readAtRandom(t *testing.T, r *shard.Split, want []*dataset.Example, rnd *rand.Rand, n int,
	before func(n int)) {
	var row shard.Row
	for n := range n {
		before(n)
		i := rnd.IntN(len(want))
		if err := r.ReadRow(int64(i), &row); err != nil {
			t.Error(err)
			return
		}
		if differ(normal(want[i]), toExample(&row)) != "" {
			t.Errorf("row %d differs", i)
			return
		}
	}
}

func TestReadErrors(t *testing.T) {
	fsys := plain.build(t)
	d := openDataset(t, fsys, shard.ReaderOptions{})
	if _, err := d.Split("test"); !errors.Is(err, shard.ErrNoSplit) {
		t.Error(err)
	}
	r := split(t, d, "train")
	var row shard.Row
	for _, i := range []int64{-1, r.NumRows(), 1 << 62} {
		if err := r.ReadRow(i, &row); !errors.Is(err, shard.ErrRange) {
			t.Errorf("row %d: %v", i, err)
		}
	}
	for _, s := range []shard.Span{{Shard: -1}, {Shard: 1000}, {Off: -1}, {Off: 1 << 40, Len: 1}, {Len: 1 << 30}} {
		if _, err := r.AppendIDs(nil, []shard.Span{s}); !errors.Is(err, shard.ErrRange) {
			t.Errorf("span %v: %v", s, err)
		}
	}
	d.Close()
	if err := r.ReadRow(0, &row); !errors.Is(err, shard.ErrClosed) {
		t.Error(err)
	}
	if _, err := shard.OpenFS(shardtest.New(), "/d"); !errors.Is(err, shard.ErrNotFound) {
		t.Error(err)
	}
	// A shard that is gone or has another size is noticed when the dataset is opened, and when that
	// happens later, when it is first touched.
	const name = "/d/train-00001.arrow"
	whole := fsys.Files()[name]
	for what, data := range map[string][]byte{
		"missing": nil, "cut": whole[:len(whole)-64], "longer": append(slices.Clone(whole), 0), "empty": {},
		"another": fsys.Files()["/d/train-00003.arrow"], "another's end": slices.Concat(whole[:len(whole)-80],
			fsys.Files()["/d/train-00002.arrow"][len(whole)-80:]),
	} {
		fsys.Put(name, whole)
		d := openDataset(t, fsys, shard.ReaderOptions{})
		fsys.Put(name, data)
		r := split(t, d, "train")
		at := d.Manifest().Splits[0].Shards[0].Rows
		bad := func(err error) {
			t.Helper()
			var fe *shardfile.FileError
			if !errors.As(err, &fe) || fe.File != name || !errors.Is(err, shard.ErrCorrupt) &&
				!errors.Is(err, shard.ErrTruncated) {
				t.Errorf("%s: %v", what, err)
			}
		}
		bad(r.ReadRow(at, &row))
		if err := r.ReadRow(0, &row); err != nil {
			t.Errorf("%s: the shard before: %v", what, err)
		}
		if len(data) != len(whole) {
			_, err := shard.OpenFS(fsys, "/d")
			bad(err)
		}
	}
}

// Any shape of rows comes back, by our reader and by arrow-go's, and verifies.
func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shard.Schema{VocabSize: rapid.SampledFrom([]int{1, 2, 300, 65536, 65537, 1 << 31}).Draw(t, "vocab"),
			Labels: rapid.Bool().Draw(t, "labels"), LossMask: rapid.Bool().Draw(t, "mask"),
			Segments: rapid.Bool().Draw(t, "segments")}
		c := corpus{schema: s, n: rapid.IntRange(0, 60).Draw(t, "rows"),
			maxLen: rapid.SampledFrom([]int{1, 3, 40, effort.Of(300, 400, 3000)}).Draw(t, "length")}
		fsys := shardtest.New()
		if err := c.run(fsys, "/d", every(rapid.IntRange(1, 50).Draw(t, "every"))); err != nil {
			t.Fatal(err)
		}
		if damage, err := shard.Verify(ctx, fsys, "/d", nil); err != nil || len(damage) > 0 {
			t.Fatal(damage, err)
		}
		d, err := shard.OpenFS(fsys, "/d")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, sp := range d.Manifest().Splits {
			r, err := d.Split(sp.Name)
			if err != nil {
				t.Fatal(err)
			}
			want := c.rows(sp.Name)
			var row shard.Row
			for i, e := range want {
				if err := r.ReadRow(int64(i), &row); err != nil {
					t.Fatal(err)
				}
				if diff := differ(normal(e), toExample(&row)); diff != "" {
					t.Fatal(diff)
				}
			}
			if got := readWithArrow(t, fsys, sp); !cmp.Equal(got, normals(want)) {
				t.Fatal(cmp.Diff(got, normals(want)))
			}
		}
	})
}

func normals(in []*dataset.Example) (out []*dataset.Example) {
	for _, e := range in {
		out = append(out, normal(e))
	}
	return out
}

func TestManifestCounts(t *testing.T) {
	c := wide
	m, err := shard.ReadManifest(c.build(t), "/d")
	if err != nil {
		t.Fatal(err)
	}
	for _, sp := range m.Splits {
		want := shard.SplitInfo{Name: sp.Name, MinLength: 1 << 40, Shards: sp.Shards}
		hist := map[int64][2]int64{}
		for _, e := range c.rows(sp.Name) {
			n := int64(len(e.InputIDs))
			want.Examples++
			want.Tokens += n
			want.LabelTokens += int64(len(e.Labels))
			want.MinLength, want.MaxLength, want.MaxLabels = min(want.MinLength, n), max(want.MaxLength, n),
				max(want.MaxLabels, int64(len(e.Labels)))
			hist[n] = [2]int64{hist[n][0] + 1, hist[n][1] + n} // all below 128: a bucket a length
		}
		for n, h := range hist {
			want.Lengths = append(want.Lengths, [3]int64{n, h[0], h[1]})
		}
		slices.SortFunc(want.Lengths, func(a, b [3]int64) int { return int(a[0] - b[0]) })
		if diff := cmp.Diff(want, sp); diff != "" {
			t.Error(diff)
		}
		if len(sp.Shards) < 2 || !strings.HasPrefix(sp.Shards[1].Name, sp.Name) {
			t.Errorf("shards %v", sp.Shards)
		}
	}
}

func TestBucketBounds(t *testing.T) {
	next := int64(0)
	for next <= 1<<28 {
		low, high := shard.BucketBounds(next)
		if low != next || high < low || (high-low+1)*64 > max(low, 64) {
			t.Fatalf("bucket of %d is %d to %d", next, low, high)
		}
		for _, n := range []int64{low, high, (low + high) / 2} {
			if l, h := shard.BucketBounds(n); l != low || h != high {
				t.Fatalf("length %d is in %d to %d, not in %d to %d", n, l, h, low, high)
			}
		}
		next = high + 1
	}
}
