package dataset

import (
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

// TestBatchesEnd: a record batch ends before its 1,025th row or before it has more than 256 KiB, whichever comes first.
func TestBatchesEnd(t *testing.T) {
	s := shard.Schema{VocabSize: 300}
	for _, c := range []struct {
		tokens, rows int
		want         []uint32
	}{
		{1, 2100, []uint32{1024, 1024, 52}},
		{248, 1200, []uint32{512, 512, 176}},         // of 512 bytes
		{249, 1200, []uint32{510, 510, 180}},         // of 514
		{262144/2 - 8, 3, []uint32{1, 1, 1}},         // of 256 KiB
		{(262144 - 32) / 4, 3, []uint32{2, 1}},       // two of them
		{shardfile.MaxBatchBytes, 2, []uint32{1, 1}}, // each larger
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
