package shard_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// located opens a dataset and returns the spans of all its rows, whose record batches are not checked.
func located(t *testing.T, fsys shardfile.FS) (*shard.Split, []shard.Span) {
	t.Helper()
	d, err := shard.OpenFS(fsys, "/d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r, err := d.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	spans, rows := make([]shard.Span, r.NumRows()), make([]int64, r.NumRows())
	for i := range rows {
		rows[i] = int64(i)
	}
	if err := r.LocateUnchecked(spans, rows); err != nil {
		t.Fatal(err)
	}
	return r, spans
}

// TestCheckAhead checks that record batches are checked several at once where there are processors for it, and
// that a damaged one is the same error as where there are none.
func TestCheckAhead(t *testing.T) {
	fsys := plain.build(t)
	for _, processors := range []int{1, 4} {
		before := runtime.GOMAXPROCS(processors)
		defer runtime.GOMAXPROCS(before)
		r, spans := located(t, fsys)
		all := shard.Unchecked(r)
		if all < 20 {
			t.Fatalf("%d record batches are too few to test anything", all)
		}
		shard.CheckAhead(r, append(spans, shard.Span{Shard: -1}, shard.Span{Shard: 1 << 20}))
		if left := shard.Unchecked(r); processors > 1 && left != 0 || processors == 1 && left != all {
			t.Errorf("%d processors: %d of %d record batches are not checked", processors, left, all)
		}
		for _, s := range [][]shard.Span{spans[:3], {spans[0], spans[0], spans[0], spans[0]}} {
			r, _ := located(t, fsys)
			shard.CheckAhead(r, s)
			if processors > 1 && shard.Unchecked(r) < all-1 {
				t.Errorf("%d spans: %d of %d record batches are left", len(s), shard.Unchecked(r), all)
			}
		}
	}
}

func TestCheckAheadOfDamage(t *testing.T) {
	fsys := plain.build(t)
	names, files := sortedFiles(fsys)
	var said [2]string
	for i, processors := range []int{1, 4} {
		before := runtime.GOMAXPROCS(processors)
		defer runtime.GOMAXPROCS(before)
		damaged := flipMiddles(fsys, names, files)
		r, spans := located(t, fsys)
		_, err := r.AppendIDs(nil, spans)
		if !errors.Is(err, shard.ErrCorrupt) {
			t.Fatalf("%d processors, %d damaged shards: %v", processors, damaged, err)
		}
		said[i] = err.Error()
		flipMiddles(fsys, names, files)
	}
	if said[0] != said[1] {
		t.Errorf("%q on one processor, %q on four", said[0], said[1])
	}
}

// flipMiddles changes a byte in the middle of each train shard, or changes it back.
func flipMiddles(fsys *shardtest.FS, names []string, files map[string][]byte) (n int) {
	for _, name := range names {
		if strings.HasSuffix(name, ".arrow") && strings.Contains(name, "train") {
			fsys.Flip(name, int64(len(files[name])/2), 1)
			n++
		}
	}
	return n
}
