package shard

import (
	"encoding/binary"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"pgregory.net/rapid"
)

// A page says of every row what the offsets say, or there is none.
func TestOffsetPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int32{0, 1, 2, 30, 512, 1 << 20}).Draw(t, "most")
		least := rapid.Int32Range(0, most).Draw(t, "least")
		lengths := rapid.SliceOfN(rapid.Int32Range(least, most), 1, 130).Draw(t, "lengths")
		offsets := []int32{rapid.Int32Range(0, 5).Draw(t, "first")}
		for _, n := range lengths {
			offsets = append(offsets, offsets[len(offsets)-1]+n)
		}
		var raw []byte
		for _, o := range offsets {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(o))
		}
		p := newOffsetPage(raw, 0, shardfile.MaxRowTokens)
		for i, n := range lengths {
			if p.start(int64(i)) != int64(offsets[i]) || p.length(int64(i)) != int64(n) {
				t.Fatalf("row %d: %d values from %d, want %d from %d", i, p.length(int64(i)), p.start(int64(i)),
					n, offsets[i])
			}
		}
		if p.bytes() > maxPageBytes+8 {
			t.Errorf("%d bytes", p.bytes())
		}
		// An offset below the one before it, or below 0.
		at := rapid.IntRange(0, len(lengths)-1).Draw(t, "at")
		binary.LittleEndian.PutUint32(raw[4*at:], uint32(offsets[at+1]+1))
		if newOffsetPage(raw, 0, shardfile.MaxRowTokens) != nil {
			t.Errorf("offsets that fall make a page")
		}
		binary.LittleEndian.PutUint32(raw[4*at:], 1<<31)
		if newOffsetPage(raw, 0, shardfile.MaxRowTokens) != nil {
			t.Errorf("an offset below 0 makes a page")
		}
	})
}

// The cache never holds more than it may, finds what it holds, and lets new pages in once it is
// full.
func TestOffsetCache(t *testing.T) {
	lengths := make([]byte, 4*(shardfile.MaxBatchRows+1))
	for i := range shardfile.MaxBatchRows + 1 {
		binary.LittleEndian.PutUint32(lengths[4*i:], uint32(i*i/2))
	}
	page := newOffsetPage(lengths, 0, shardfile.MaxRowTokens)
	c := offsetCache{max: 20*page.bytes() + 7}
	var kept, admitted int
	for i := range 40 * pageTurnover {
		k := pageKey{batch: uint32(i)}
		if !c.wants(1) {
			continue
		}
		admitted++
		c.put(k, page)
		c.put(k, page) // a second goroutine that missed it
		if c.get(k) != page {
			t.Fatalf("page %d is gone", i)
		}
		if c.held.Load() > c.max || c.held.Load() != int64(len(c.pages))*page.bytes() || len(c.ring) != len(c.pages) {
			t.Fatalf("%d bytes, %d pages, %d in the ring, limit %d", c.held.Load(), len(c.pages), len(c.ring), c.max)
		}
		kept = max(kept, len(c.pages))
	}
	if kept != 20 || admitted < 55 || admitted > 60 {
		t.Errorf("%d pages kept, %d let in", kept, admitted)
	}
	if none := new(offsetCache); none.wants(1) || none.get(pageKey{}) != nil {
		t.Error("a cache of no bytes wants pages")
	}
}
