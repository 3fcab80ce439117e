package bytebpe

import (
	"math/rand/v2"
	"testing"
)

// TestPairTable holds tables of random pairs, some of which occur again with another rank, against a map.
func TestPairTable(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		ids := 2 + r.IntN(3000)
		want := map[[2]uint32]uint32{}
		var entries []uint64
		for range r.IntN(20000) {
			pair := [2]uint32{uint32(r.IntN(ids)), uint32(r.IntN(ids))}
			if r.IntN(8) == 0 {
				pair[0] = noSymbol - 1 - pair[0]
			}
			rank := uint32(len(entries))
			entries = append(entries, pairKey(pair[0], pair[1])<<24|uint64(rank))
			want[pair] = rank
		}
		table, ok := newPairTable(entries)
		if !ok {
			t.Fatalf("seed %d: no table of %d pairs", seed, len(want))
		}
		for pair, rank := range want {
			if got := table.find(pair[0], pair[1]); got != rank {
				t.Fatalf("seed %d: %v has rank %d, want %d", seed, pair, got, rank)
			}
		}
		for range 20000 {
			pair := [2]uint32{uint32(r.IntN(ids + 5)), uint32(r.IntN(ids + 5))}
			if _, ok := want[pair]; !ok && table.find(pair[0], pair[1]) != noRank {
				t.Fatalf("seed %d: %v was found", seed, pair)
			}
		}
	}
}

// TestPairTableTooOften: one pair again and again has no table, and takes no time that grows with the square.
func TestPairTableTooOften(t *testing.T) {
	entries := make([]uint64, 1<<19)
	for i := range entries {
		entries[i] = pairKey(1, 2)<<24 | uint64(i)
	}
	if _, ok := newPairTable(entries); ok {
		t.Error("there is a table")
	}
}
