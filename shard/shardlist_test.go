package shard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// A Builder that has no room for another shard says so, before and after it is opened again; with
// more room it ends with the same bytes.
func TestMaxShards(t *testing.T) {
	c := corpora["all"]
	want := c.build(t).Files()
	total := 0
	for name := range want {
		if strings.HasSuffix(name, ".arrow") {
			total++
		}
	}
	if total < 5 {
		t.Fatalf("%d shards", total)
	}
	run := func(fsys shardfile.FS, room int) error {
		c.shards = room
		return c.run(fsys, "/d", every(3))
	}
	fsys := shardtest.New()
	for room := 2; room < total; room++ {
		for range 2 {
			if err := run(fsys, room); !errors.Is(err, dataset.ErrShardList) {
				t.Fatalf("room for %d of %d shards: %v", room, total, err)
			}
		}
		if err := run(fsys, room-1); room > 2 && !errors.Is(err, dataset.ErrShardList) {
			t.Fatalf("room for %d after %d: %v", room-1, room, err)
		}
	}
	if err := run(fsys, total); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "after running out of room", fsys.Files(), want)
}
