package shard_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/shard/shardtest"
	"github.com/google/go-cmp/cmp"
)

// TestOpenUnfinished reads a build while it runs: what a checkpoint has is what was appended, stays
// readable whatever comes later, and is nearly all of it.
func TestOpenUnfinished(t *testing.T) {
	for _, schema := range []shard.Schema{
		{VocabSize: 300},
		{VocabSize: 70_000, Labels: true},
		{VocabSize: 300, LossMask: true, Segments: true},
	} {
		c := corpus{schema: schema, n: effort.Of(500, 900, 900), maxLen: 30}
		fsys, rnd := shardtest.New(), rand.New(rand.NewPCG(1, 2))
		if _, err := (shard.ReaderOptions{}).OpenUnfinished(fsys, "data", provenance.Tokenizer, 9); !errors.Is(err,
			shard.ErrNotFound) {
			t.Fatalf("without a build: %v", err)
		}
		b, _, err := shard.OpenBuilder(fsys, "data", c.options())
		if err != nil {
			t.Fatal(err)
		}
		appended := map[string][]*shard.Example{}
		var opened []*shard.Dataset
		for i := range c.n {
			split, e := c.row(i)
			if err := b.Append(split, e); err != nil {
				t.Fatal(err)
			}
			appended[split] = append(appended[split], e)
			if rnd.IntN(60) > 0 {
				continue
			}
			if err := b.Checkpoint([]byte("cursor")); err != nil {
				t.Fatal(err)
			}
			if rnd.IntN(3) == 0 { // it is killed, and resumes
				if b.Close(); err == nil {
					b, _, err = shard.OpenBuilder(fsys, "data", c.options())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			d, err := shard.ReaderOptions{MaxOpenShards: 2}.OpenUnfinished(fsys, "data", provenance.Tokenizer, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if left := len(appended["train"]) - checkUnfinished(t, d, appended); left > 120 {
				t.Errorf("after %d rows %d are missing", i+1, left)
			}
			opened = append(opened, d)
		}
		if len(opened) < 5 {
			t.Fatalf("only %d checkpoints", len(opened))
		}
		if _, err := (shard.ReaderOptions{}).OpenUnfinished(fsys, "data", provenance.Tokenizer, 1); !errors.Is(err,
			shard.ErrShardList) {
			t.Errorf("too many shards: %v", err)
		}
		if _, err := b.Finish(provenance); err != nil {
			t.Fatal(err)
		}
		for _, d := range opened { // shards that were open have other names now
			checkUnfinished(t, d, appended)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// checkUnfinished compares the rows of d with the first that were appended, and returns the number of
// those for training.
func checkUnfinished(t *testing.T, d *shard.Dataset, appended map[string][]*shard.Example) (n int) {
	t.Helper()
	for _, split := range []string{"train", "val"} {
		r, err := d.Split(split)
		if err != nil {
			continue
		}
		if split == "train" {
			n = int(r.NumRows())
		}
		var row shard.Row
		for i := range r.NumRows() {
			if err := r.ReadRow(i, &row); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
			e := appended[split][i]
			got := shard.Example{InputIDs: row.AppendInputIDs(nil), Document: row.Document, Part: row.Part}
			if e.Labels != nil {
				got.Labels = row.AppendLabels([]uint32{})
			}
			if e.LossMask != nil {
				got.LossMask, got.Segments = row.LossMask, row.Segments
			}
			if diff := cmp.Diff(*e, got); diff != "" {
				t.Fatalf("row %d: %s", i, diff)
			}
		}
	}
	return n
}
