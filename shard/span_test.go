package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

// readSpans reads rows column by column with spans, as examples without document and part.
func readSpans(r *shard.Split, rows []int64) ([]*dataset.Example, error) {
	ids := make([]shard.Span, len(rows))
	if err := r.Locate(ids, rows); err != nil {
		return nil, err
	}
	raw, err := r.AppendIDs([]byte("head"), ids)
	if err != nil {
		return nil, err
	}
	for _, most := range []int64{60, 1 << 20} {
		each, last := []byte("head"), 0
		if _, err := r.EachIDs(nil, ids, most, func(i int, piece []byte) error {
			if i < last || int64(len(piece)) > most || i == last && len(piece) > int(ids[i].Len)*r.IDWidth() {
				return fmt.Errorf("%d bytes of row %d after row %d, with pieces of %d", len(piece), i, last, most)
			}
			each, last = append(each, piece...), i
			return nil
		}); err != nil || !bytes.Equal(each, raw) {
			return nil, fmt.Errorf("in pieces of %d: %d bytes, not %d: %w", most, len(each), len(raw), err)
		}
	}
	out := make([]*dataset.Example, len(rows))
	take := func(raw []byte, spans []shard.Span, set func(e *dataset.Example, ids []uint32)) {
		raw = raw[len("head"):]
		for i, s := range spans {
			n := int(s.Len) * r.IDWidth()
			row := shard.Row{Width: r.IDWidth(), InputIDs: raw[:n]}
			set(out[i], row.AppendInputIDs(nil))
			raw = raw[n:]
		}
		if len(raw) > 0 {
			err = fmt.Errorf("%d bytes too many", len(raw))
		}
	}
	for i := range out {
		out[i] = &dataset.Example{}
	}
	take(raw, ids, func(e *dataset.Example, ids []uint32) { e.InputIDs = ids })
	locate := func(c shard.Columns) (spans []shard.Span) {
		spans = make([]shard.Span, len(rows))
		if err == nil {
			err = r.LocateColumn(c, spans, rows)
		}
		return spans
	}
	schema := r.Schema()
	if schema.Labels {
		spans := locate(shard.ColumnLabels)
		if err == nil {
			raw, err = r.AppendIDs([]byte("head"), spans)
		}
		if err == nil {
			take(raw, spans, func(e *dataset.Example, ids []uint32) { e.Labels = ids })
		}
	}
	if schema.LossMask {
		spans, mask := locate(shard.ColumnLossMask), []bool{true}
		if err == nil {
			mask, err = r.AppendLossMask(mask, spans, ids)
		}
		mask = mask[1:]
		for i, s := range spans {
			if err == nil {
				out[i].LossMask, mask = slices.Clone(mask[:s.Len]), mask[s.Len:]
			}
		}
	}
	if schema.Segments {
		spans, segments := locate(shard.ColumnSegments), []int32{-1}
		if err == nil {
			segments, err = r.AppendSegments(segments, spans, ids)
		}
		segments = segments[1:]
		for i, s := range spans {
			if err == nil {
				out[i].Segments, segments = slices.Clone(segments[:s.Len]), segments[s.Len:]
			}
		}
	}
	return out, err
}

// someRows draws rows of n, some of them alone and some in runs.
func someRows(rnd *rand.Rand, n int64, count int) []int64 {
	rows := make([]int64, count)
	for i := range rows {
		if rows[i] = rnd.Int64N(n); i > 0 && i%3 > 0 {
			rows[i] = min(rows[i-1]+1, n-1)
		}
	}
	return rows
}

func withoutDocument(e *dataset.Example) *dataset.Example {
	c := *normal(e)
	c.Document, c.Part = 0, 0
	return &c
}

// Spans give the rows that were appended, with a cache of places that holds nothing, few pages, or
// all.
// differ is cmp.Diff, which takes long to find that nothing differs.
func differ(want, got *dataset.Example) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func TestSpansProperty(t *testing.T) {
	effort.RacedElsewhere(t)
	for name, c := range corpora {
		t.Run(name, func(t *testing.T) {
			fsys := c.build(t)
			for _, o := range []shard.ReaderOptions{{}, {MaxOffsetBytes: 8 << 10, MaxOpenShards: 1, MaxIndexBytes: 1},
				{MaxOffsetBytes: 1 << 20}} {
				d := openDataset(t, fsys, o)
				for _, sp := range []string{"train", "val"} {
					r, want := split(t, d, sp), c.rows(sp)
					var wg sync.WaitGroup
					for g := range 3 {
						wg.Go(func() {
							rnd := rand.New(rand.NewPCG(1, uint64(g)))
							for range 4 {
								rows := someRows(rnd, r.NumRows(), 100)
								got, err := readSpans(r, rows)
								if err != nil {
									t.Error(err)
									return
								}
								for i, n := range rows {
									if diff := differ(withoutDocument(want[n]), withoutDocument(got[i])); diff != "" {
										t.Errorf("%+v, row %d: %s", o, n, diff)
										return
									}
								}
							}
						})
					}
					wg.Wait()
				}
				d.Close()
			}
		})
	}
}

// From a shard with any byte changed, spans read what ReadColumns reads row by row from it, or give
// an error.
func TestSpansOfDamage(t *testing.T) {
	for _, name := range []string{"plain", "all"} {
		c := corpora[name]
		c.n = 60
		fsys := c.build(t)
		const file = "/d/train-00000.arrow"
		size := int64(len(fsys.Files()[file]))
		rnd := rand.New(rand.NewPCG(20, 4))
		var same, refused int
		for range effort.Of(60, 600, 6000) {
			at, xor := rnd.Int64N(size), byte(1+rnd.IntN(255))
			fsys.Flip(file, at, xor)
			plain, cached := openDataset(t, fsys, shard.ReaderOptions{}),
				openDataset(t, fsys, shard.ReaderOptions{MaxOffsetBytes: 1 << 20})
			r, s := split(t, plain, "train"), split(t, cached, "train")
			var row shard.Row
			for i := range r.NumRows() {
				want := r.ReadColumns(i, shard.ColumnLabels|shard.ColumnLossMask|shard.ColumnSegments, &row)
				got, err := readSpans(s, []int64{i})
				switch {
				case err != nil:
					refused++
					if !errors.Is(err, shard.ErrCorrupt) && !errors.Is(err, shard.ErrTruncated) {
						t.Fatal(err)
					}
					if want == nil && len(row.InputIDs) > 0 && !s.Schema().LossMask {
						t.Fatalf("byte %d ^ %#x, row %d: %v, where the row alone can be read", at, xor, i, err)
					}
				case want != nil:
					t.Fatalf("byte %d ^ %#x, row %d: no error where the row alone gives %v", at, xor, i, want)
				default:
					same++
					if diff := differ(withoutDocument(toExample(&row)), withoutDocument(got[0])); diff != "" {
						t.Fatalf("byte %d ^ %#x, row %d: %s", at, xor, i, diff)
					}
				}
			}
			plain.Close()
			cached.Close()
			fsys.Flip(file, at, xor)
		}
		if same == 0 || refused == 0 {
			t.Errorf("%s: %d rows alike, %d refused", name, same, refused)
		}
	}
}

func TestLocateColumnErrors(t *testing.T) {
	r := split(t, openDataset(t, plain.build(t), shard.ReaderOptions{}), "train")
	for _, c := range []shard.Columns{0, shard.ColumnLabels, shard.ColumnDocument, shard.AllColumns} {
		if err := r.LocateColumn(c, make([]shard.Span, 1), []int64{0}); !errors.Is(err, shard.ErrSchema) {
			t.Errorf("columns %#x: %v", c, err)
		}
	}
	all := split(t, openDataset(t, allCols.build(t), shard.ReaderOptions{}), "train")
	bad := []shard.Span{{Shard: 1 << 20, Len: 1}}
	if _, err := all.AppendLossMask(nil, bad, []shard.Span{{Len: 2}}); !errors.Is(err, shard.ErrRange) {
		t.Error(err)
	}
	if _, err := all.AppendSegments(nil, []shard.Span{{Off: 1 << 40, Len: 1}},
		[]shard.Span{{Len: 1}}); !errors.Is(err, shard.ErrRange) {
		t.Error(err)
	}
}
