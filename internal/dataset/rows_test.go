package dataset

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// someRows makes rows of documents from a number on.
func someRows(rng *rand.Rand, s shard.Schema, from, documents int64) *Rows {
	r := &Rows{Document: from, Documents: documents}
	for range documents {
		for part := range 1 + rng.Int32N(3) {
			ids := make([]uint32, 1+rng.IntN(40))
			for i := range ids {
				ids[i] = rng.Uint32N(uint32(s.VocabSize))
				if s.LossMask {
					r.LossMask = append(r.LossMask, rng.IntN(2) == 1)
				}
			}
			r.IDs, _ = AppendIDs(r.IDs, ids, s)
			r.Lengths, r.Parts = append(r.Lengths, int32(len(ids))), append(r.Parts, part)
			r.Tokens += int64(len(ids))
		}
	}
	return r
}

// each gives the rows one by one.
func (r *Rows) each(s shard.Schema, take func(*Example) error) error {
	ids, mask, document := r.IDs, r.LossMask, r.Document-1
	for i, n := range r.Lengths {
		e := &Example{Length: int(n), Part: r.Parts[i]}
		if e.Part == 0 {
			document++
		}
		e.Document, e.Parts, ids = document, [][]byte{ids[:int(n)*s.IDWidth()]}, ids[int(n)*s.IDWidth():]
		if s.LossMask {
			e.LossMask, mask = mask[:n], mask[n:]
		}
		if err := take(e); err != nil {
			return err
		}
	}
	return nil
}

// TestRowsAreRowByRow: many rows at once make the files that the rows make one by one, and are counted as those.
func TestRowsAreRowByRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, s := range []shard.Schema{{VocabSize: 300}, {VocabSize: 100_000}, {VocabSize: 300, LossMask: true}} {
		for _, shardBytes := range []int64{4 << 10, 1 << 20} {
			o := BuilderOptions{Schema: s, ShardBytes: shardBytes}
			one, many := shardtest.New(), shardtest.New()
			a, _, err := OpenBuilder(one, "data", o)
			if err != nil {
				t.Fatal(err)
			}
			b, _, err := OpenBuilder(many, "data", o)
			if err != nil {
				t.Fatal(err)
			}
			var bySource [2]BySource
			for document := int64(0); document < 3000; {
				for i := range bySource {
					bySource[i].Enter(0, int(document/1000), document, func(int) string { return string(rune('a' + document/1000)) })
				}
				r := someRows(rng, s, document, 1+rng.Int64N(200))
				if r.Loss = r.Tokens; s.LossMask {
					r.Loss = int64(LossOf(r.LossMask))
				}
				split := []string{"train", "val"}[rng.IntN(2)]
				if err := b.Rows(split, r); err != nil {
					t.Fatal(err)
				}
				bySource[1].Rows(0, r)
				if err := r.each(s, func(e *Example) error { bySource[0].Row(0, e); return a.Row(split, e) }); err != nil {
					t.Fatal(err)
				}
				document += r.Documents + rng.Int64N(2)
			}
			for i, c := range []*Builder{a, b} {
				if _, err := c.Finish(Provenance{BySource: &bySource[i]}); err != nil {
					t.Fatal(err)
				}
			}
			want, got := one.Files(), many.Files()
			for name := range want {
				if !bytes.Equal(want[name], got[name]) {
					t.Errorf("%+v, shards of %d bytes: %s differs", s, shardBytes, name)
				}
			}
			if len(want) != len(got) || len(want) < 3 {
				t.Errorf("%d files and %d", len(want), len(got))
			}
		}
	}
}

// TestWrongRows: rows that do not fit are refused and change nothing.
func TestWrongRows(t *testing.T) {
	s := shard.Schema{VocabSize: 300}
	b, _, err := OpenBuilder(shardtest.New(), "data", BuilderOptions{Schema: s, MaxRowTokens: 40})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	good := func() *Rows { return someRows(rand.New(rand.NewPCG(1, 1)), s, 5, 9) }
	if err := b.Rows("train", good()); err != nil {
		t.Fatal(err)
	}
	_, rows, tokens := b.Written("train")
	for name, c := range map[string]struct {
		spoil func(*Rows)
		want  error
	}{
		"a document again":   {func(r *Rows) { r.Document = 13 }, ErrOrder},
		"a part too far":     {func(r *Rows) { r.Parts[0] = 1 }, ErrOrder},
		"too long":           {func(r *Rows) { r.Lengths[2] = 41 }, shard.ErrTooLarge},
		"empty":              {func(r *Rows) { r.Lengths[2] = 0 }, shard.ErrTooLarge},
		"ids missing":        {func(r *Rows) { r.IDs = r.IDs[2:] }, shard.ErrSchema},
		"documents missing":  {func(r *Rows) { r.Documents-- }, shard.ErrSchema},
		"a mask":             {func(r *Rows) { r.LossMask = make([]bool, r.Tokens) }, shard.ErrSchema},
		"a negative ordinal": {func(r *Rows) { r.Document = -9 }, shard.ErrRange},
	} {
		r := good()
		r.Document, r.Lengths, r.Parts = 14, slices.Clone(r.Lengths), slices.Clone(r.Parts)
		c.spoil(r)
		if err := b.Rows("train", r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Rows("test", good()); !errors.Is(err, shard.ErrNoSplit) {
		t.Error(err)
	}
	if _, r, n := b.Written("train"); r != rows || n != tokens {
		t.Errorf("%d rows and %d tokens, want %d and %d", r, n, rows, tokens)
	}
}
