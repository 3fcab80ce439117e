package shard_test

import (
	"errors"
	"testing"

	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

// Rows are those that ReadRow reads, a loop may end early, and numbers beyond the split and damage are errors that
// end it.
func TestRows(t *testing.T) {
	fsys := plain.build(t)
	d, err := shard.OpenFS(fsys, "/d")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := split(t, d, "train")
	var want shard.Row
	at, last := int64(3), r.NumRows()-1
	for row, err := range r.Rows(at, last) {
		if err == nil {
			err = r.ReadRow(at, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*row, want); diff != "" {
			t.Fatalf("row %d: %s", at, diff)
		}
		at++
	}
	if at != last {
		t.Errorf("the loop ended at row %d of %d", at, last)
	}
	for row, err := range r.Rows(0, last) {
		if err != nil || row.Document != 0 && row.Part != 0 {
			t.Error(row, err)
		}
		break
	}
	for _, bad := range [][2]int64{{-1, 2}, {3, 2}, {0, last + 2}} {
		n := 0
		for row, err := range r.Rows(bad[0], bad[1]) {
			if n++; row != nil || !errors.Is(err, shard.ErrRange) {
				t.Errorf("rows %v: %v, %v", bad, row, err)
			}
		}
		if n != 1 {
			t.Errorf("rows %v: %d turns", bad, n)
		}
	}
	damaged, err := shard.OpenFS(fsys, "/d")
	if err != nil {
		t.Fatal(err)
	}
	defer damaged.Close()
	fsys.Flip("/d/train-00000.arrow", 1000, 1)
	var errs []error
	for row, err := range split(t, damaged, "train").Rows(0, 2) {
		if err != nil || row == nil {
			errs = append(errs, err)
		}
	}
	if len(errs) != 1 || !errors.Is(errs[0], shard.ErrCorrupt) {
		t.Errorf("a damaged shard: %v", errs)
	}
}
