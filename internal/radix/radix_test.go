package radix

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// keys returns n keys, each a random number of the given width above an index of indexBits.
func keys(rng *rand.Rand, n int, width, indexBits uint) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = rng.Uint64()>>(64-width)<<indexBits | uint64(i)&(1<<indexBits-1)
	}
	return out
}

func TestSort(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{0, 1, 2, fewKeys - 1, fewKeys, fewKeys + 1, 256, 1000, 1 << 15} {
		for _, width := range []uint{1, 3, 8, 9, 10, 17, 27, 28, 44} {
			for _, indexBits := range []uint{0, 15, 20} {
				have := keys(rng, n, width, indexBits)
				want := slices.Clone(have)
				slices.Sort(want)
				if Sort(have, make([]uint64, n), int(indexBits)); !slices.Equal(have, want) {
					t.Fatalf("%d keys of %d bits above an index of %d bits: not sorted", n, width, indexBits)
				}
			}
		}
	}
}

// TestSortWholeKeys sorts numbers of 64 bits, all equal ones, and those that are sorted either way.
func TestSortWholeKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := keys(rng, 5000, 64, 0)
	ascending := slices.Sorted(slices.Values(random))
	descending := slices.Clone(ascending)
	slices.Reverse(descending)
	for name, have := range map[string][]uint64{"random": random, "ascending": ascending, "descending": descending,
		"equal": make([]uint64, 5000)} {
		want := slices.Sorted(slices.Values(have))
		if Sort(have, make([]uint64, len(have)), 0); !slices.Equal(have, want) {
			t.Errorf("%s keys: not sorted", name)
		}
	}
}

// benchmark sorts other keys each time: a processor learns the branches of few keys by heart.
func benchmark(b *testing.B, n int, sort func(keys []uint64)) {
	source := keys(rand.New(rand.NewPCG(1, 3)), 1<<20, 17, 20)
	have := make([]uint64, n)
	b.SetBytes(int64(8 * n))
	for at := 0; b.Loop(); at = (at + n) % len(source) {
		copy(have, source[at:])
		sort(have)
	}
}

// sortAbove sorts keys with an index of 20 bits.
func sortAbove() func([]uint64) {
	scratch := make([]uint64, 4096)
	return func(keys []uint64) { Sort(keys, scratch, 20) }
}

func BenchmarkSort256(b *testing.B)     { benchmark(b, 256, sortAbove()) }
func BenchmarkSort4096(b *testing.B)    { benchmark(b, 4096, sortAbove()) }
func BenchmarkCompare256(b *testing.B)  { benchmark(b, 256, slices.Sort[[]uint64]) }
func BenchmarkCompare4096(b *testing.B) { benchmark(b, 4096, slices.Sort[[]uint64]) }
