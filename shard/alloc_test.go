package shard_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// reuse is an endless supply of rows of a length, none of which costs anything to make.
func reuse(length, vocab int) func() *dataset.Example {
	rnd := rand.New(rand.NewPCG(1, 1))
	ids := make([]uint32, 1<<16)
	for i := range ids {
		ids[i] = uint32(rnd.IntN(vocab))
	}
	e, doc, at := &dataset.Example{}, int64(0), 0
	return func() *dataset.Example {
		if at+length > len(ids) {
			at = 0
		}
		e.InputIDs, e.Document = ids[at:at+length], doc
		at += length
		doc++
		return e
	}
}

// sample is a dataset on a real file system.
func sample(b testing.TB, rows, length int) *shard.Split {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "d")
	bd, _, err := dataset.OpenBuilder(shardfile.OS(), dir, dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 50257}})
	if err != nil {
		b.Fatal(err)
	}
	next := reuse(length, 50257)
	for range rows {
		if err := bd.Row("train", next()); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := bd.Finish(dataset.Provenance{}); err != nil {
		b.Fatal(err)
	}
	d, err := shard.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	return split(b, d, "train")
}

// A row more allocates nothing, whether it is written or read. Batches, shards and files do, now
// and then.
func TestAllocations(t *testing.T) {
	if effort.Raced {
		t.Skip("the race detector makes sync.Pool forget")
	}
	bd, _, err := dataset.OpenBuilder(shardfile.OS(), filepath.Join(t.TempDir(), "d"),
		dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 300}})
	if err != nil {
		t.Fatal(err)
	}
	defer bd.Close()
	next := reuse(20, 300)
	add := func() {
		for range 1000 {
			if err := bd.Row("train", next()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 10 {
		add()
	}
	if n := testing.AllocsPerRun(50, add); n > 4 {
		t.Errorf("%v allocations for 1,000 rows written", n)
	}
	r := sample(t, 20_000, 20)
	rows, spans, lengths := make([]int64, 256), make([]shard.Span, 256), make([]int32, 256)
	for i := range rows {
		rows[i] = int64(i*7919) % r.NumRows()
	}
	var row shard.Row
	buf := make([]byte, 0, 256*40)
	read := func() {
		err := r.Locate(spans, rows)
		if err == nil {
			err = r.Lengths(lengths, rows)
		}
		if err == nil {
			buf, err = r.AppendIDs(buf[:0], spans)
		}
		for _, i := range rows {
			if err == nil {
				err = r.ReadRow(i, &row)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read()
	if n := testing.AllocsPerRun(50, read); n > 4 {
		t.Errorf("%v allocations for 256 rows read in four ways", n)
	}
}
