package shard_test

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
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

// TestCheckAhead checks that record batches are checked several at once where there are processors for it, and that the
// ids are the same as where there are none, and as once all are checked.
func TestCheckAhead(t *testing.T) {
	fsys := plain.build(t)
	var want []byte
	for _, processors := range []int{1, 4} {
		before := runtime.GOMAXPROCS(processors)
		defer runtime.GOMAXPROCS(before)
		r, spans := located(t, fsys)
		all := shard.Unchecked(r)
		if all < 20 {
			t.Fatalf("%d record batches are too few to test anything", all)
		}
		forged := append(slices.Clone(spans), shard.Span{Shard: -1}, shard.Span{Shard: 1 << 20})
		if have := shard.Checkers(r, forged); have != processors {
			t.Errorf("%d processors: %d goroutines", processors, have)
		}
		for _, few := range [][]shard.Span{spans[:3], slices.Repeat(spans[:1], 40)} {
			if have := shard.Checkers(r, few); have != 1 {
				t.Errorf("%d spans of few record batches are read by %d goroutines", len(few), have)
			}
		}
		for range 2 {
			got, err := r.AppendIDs([]byte("before"), spans)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d processors: other ids", processors)
			}
			if left := shard.Unchecked(r); left != 0 {
				t.Errorf("%d processors: %d of %d record batches are not checked", processors, left, all)
			}
		}
		if have := shard.Checkers(r, spans); have != 1 {
			t.Errorf("checked batches are read by %d goroutines", have)
		}
		for _, bad := range []shard.Span{{Shard: -1}, {Shard: 1 << 20}, {Len: -1}, {Len: 1 << 30}, {Off: 1 << 60, Len: 1}} {
			r, spans := located(t, fsys)
			if _, err := r.AppendIDs(nil, append(spans, bad)); !errors.Is(err, shard.ErrRange) {
				t.Errorf("%d processors, span %+v: %v", processors, bad, err)
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
