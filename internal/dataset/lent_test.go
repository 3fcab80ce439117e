package dataset

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// packedRow makes a row whose parts lie at the end of a window.
func packedRow(rng *rand.Rand, s shard.Schema, window []byte, document int64) (*Example, []byte) {
	e, pieces := &Example{Document: document}, 1+rng.IntN(8)
	if rng.IntN(200) == 0 {
		pieces = maxLent - 2 + rng.IntN(5)
	}
	for range pieces {
		ids, at := make([]uint32, 1+rng.IntN(20)), len(window)
		for i := range ids {
			ids[i] = rng.Uint32N(uint32(s.VocabSize))
			if s.LossMask {
				e.LossMask = append(e.LossMask, i%3 == 0)
			}
		}
		window, _ = AppendIDs(window, ids, s)
		e.Parts, e.Segments = append(e.Parts, window[at:]), append(e.Segments, int32(len(ids)))
		e.Length += len(ids)
	}
	return e, window
}

// lentRows builds a dataset of packed rows, most of which are lent if lend is set, and returns its files. Parts are
// cleared as soon as they may change.
func lentRows(t *testing.T, s shard.Schema, lend bool) map[string][]byte {
	rng, fs := rand.New(rand.NewPCG(8, 1)), shardtest.New()
	b, _, err := OpenBuilder(fs, "data", BuilderOptions{Schema: s, ShardBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var e *Example
	var loan Loan
	for round := range int64(5) {
		window := make([]byte, 0, 2<<20)
		for range 1 + rng.IntN(3000) {
			e, window = packedRow(rng, s, window, round)
			if rng.IntN(200) > 0 && lend {
				e.Lent = &loan
			}
			if err := b.Row([]string{"train", "val"}[rng.IntN(2)], e); err != nil {
				t.Fatal(err)
			}
			for _, part := range e.Parts {
				if e.Lent == nil {
					clear(part)
				}
			}
		}
		loan.Return()
		clear(window)
		if err := b.Save([]byte("cursor")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Finish(Provenance{}); err != nil {
		t.Fatal(err)
	}
	return fs.Files()
}

// TestLentRows: rows whose parts are lent make the files of rows that are copied at once, also if the parts change as
// soon as they are returned, some rows are not lent, and some have more parts than a batch borrows.
func TestLentRows(t *testing.T) {
	for _, s := range []shard.Schema{{VocabSize: 300, Segments: true}, {VocabSize: 100_000, Segments: true, LossMask: true}} {
		copied, lent := lentRows(t, s, false), lentRows(t, s, true)
		for name, data := range copied {
			if !bytes.Equal(data, lent[name]) {
				t.Errorf("%+v: %s has other bytes where rows were lent", s, name)
			}
		}
		if len(copied) != len(lent) || len(copied) < 3 {
			t.Errorf("%d files and %d", len(copied), len(lent))
		}
	}
}

// TestLentRowsArePacked: rows that are not packed, whose parts may be a job's, cannot be lent.
func TestLentRowsArePacked(t *testing.T) {
	b, _, err := OpenBuilder(shardtest.New(), "data", BuilderOptions{Schema: shard.Schema{VocabSize: 300}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Row("train", &Example{Parts: [][]byte{{1, 0}}, Length: 1, Lent: &Loan{}}); !errors.Is(err, shard.ErrSchema) {
		t.Error(err)
	}
}
