package dataset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// batchesOf returns the rows of each record batch of the only shard, which must have so many rows.
func batchesOf(t *testing.T, fsys *shardtest.FS, s shard.Schema, rows int64) (batches []uint32) {
	t.Helper()
	d, err := shard.OpenFS(fsys, "data")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if damage, err := shard.Verify(t.Context(), fsys, "data", nil); err != nil || len(damage) > 0 {
		t.Fatal(damage, err)
	}
	info := d.Manifest().Splits[0].Shards[0]
	f, err := shardfile.OpenForReading(fsys, shardfile.Join("data", info.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blocks, err := shardfile.NewLayout(shardfile.Shape(s)).ReadBlocks(f, info.Name,
		shardfile.Entry{Bytes: info.Bytes, Rows: rows, Footer: info.Footer})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range blocks {
		batches = append(batches, k.Rows)
	}
	return batches
}

// TestBatchesEnd: a record batch ends before its 513th row or before it has more than 128 KiB, whichever comes first.
func TestBatchesEnd(t *testing.T) {
	s := shard.Schema{VocabSize: 300}
	for _, c := range []struct {
		tokens, rows int
		want         []uint32
	}{
		{1, 1100, []uint32{512, 512, 76}},
		{248, 600, []uint32{256, 256, 88}},            // of 512 bytes
		{249, 600, []uint32{255, 255, 90}},            // of 514
		{131072/2 - 8, 3, []uint32{1, 1, 1}},          // of 128 KiB
		{(131072 - 32) / 4, 3, []uint32{2, 1}},        // two of them
		{shardfile.FullBatchBytes, 2, []uint32{1, 1}}, // each larger
	} {
		fsys := shardtest.New()
		b, _, err := OpenBuilder(fsys, "data", BuilderOptions{Schema: s})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.rows {
			if err := b.Row("train", &Example{InputIDs: make([]uint32, c.tokens), Document: int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Finish(Provenance{}); err != nil {
			t.Fatal(err)
		}
		if have := batchesOf(t, fsys, s, int64(c.rows)); !slices.Equal(have, c.want) {
			t.Errorf("%d rows of %d tokens: batches of %d, want %d", c.rows, c.tokens, have, c.want)
		}
	}
}

// TestLargerBatchOfCheckpoint: a build that was begun by a program with larger record batches goes on.
func TestLargerBatchOfCheckpoint(t *testing.T) {
	s, rng := shard.Schema{VocabSize: 300}, rand.New(rand.NewPCG(4, 1))
	for name, more := range map[string]func(*Builder) error{
		"row by row": func(b *Builder) error {
			return someRows(rng, s, 900, 1).each(s, func(e *Example) error { return b.Row("train", e) })
		},
		"many": func(b *Builder) error { return b.Rows("train", someRows(rng, s, 900, 1)) },
	} {
		fsys := shardtest.New()
		b, _, err := OpenBuilder(fsys, "data", BuilderOptions{Schema: s})
		if err != nil {
			t.Fatal(err)
		}
		split := &b.splits[0]
		split.prepare(b.layout)
		for i := range int64(900) {
			if err := split.pending.add(b.layout, &Example{InputIDs: make([]uint32, 100), Document: i}); err != nil {
				t.Fatal(err)
			}
			split.stats.Add(100, 0)
			split.document = i
		}
		if err := b.Save(nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if b, _, err = OpenBuilder(fsys, "data", BuilderOptions{Schema: s}); err != nil {
			t.Fatal(err)
		}
		if err := more(b); err != nil {
			t.Fatal(err)
		}
		_, rows, _ := b.Written("train")
		if _, err := b.Finish(Provenance{}); err != nil {
			t.Fatal(err)
		}
		if have, want := batchesOf(t, fsys, s, rows), []uint32{900, uint32(rows) - 900}; !slices.Equal(have, want) {
			t.Errorf("%s: batches of %d, want %d", name, have, want)
		}
	}
}
