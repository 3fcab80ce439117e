package sampler

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsload/dsload/internal/effort"
)

func TestPermutationIsABijectionWithInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 5000).Draw(t, "n")
		p := newPermutation(n, rapid.Uint64().Draw(t, "key"))
		seen := make([]bool, n)
		for i := range n {
			j := p.at(i)
			if j >= n || seen[j] {
				t.Fatalf("%d of %d goes to %d, outside or taken", i, n, j)
			}
			seen[j] = true
			if back := p.inverse(j); back != i {
				t.Fatalf("inverse(at(%d)) = %d", i, back)
			}
		}
	})
}

func TestLargePermutationsInvert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, MaxPosition).Draw(t, "n")
		p := newPermutation(n, rapid.Uint64().Draw(t, "key"))
		i := rapid.Uint64Range(0, n-1).Draw(t, "i")
		if j := p.at(i); j >= n || p.inverse(j) != i {
			t.Fatalf("%d of %d goes to %d and back to %d", i, n, j, p.inverse(j))
		}
	})
}

// TestFourAtOnce compares at4 with at.
func TestFourAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Uint64Range(4, 100), rapid.Uint64Range(4, MaxPosition)).Draw(t, "n")
		p := newPermutation(n, rapid.Uint64().Draw(t, "key"))
		i := rapid.Uint64Range(0, n-4).Draw(t, "i")
		from := i
		for l, r := p.cell(i); i+3 < n && i < from+200; i += 4 { // one four after another
			var got [4]uint64
			got, l, r = p.at4(l, r)
			if want := [4]uint64{p.at(i), p.at(i + 1), p.at(i + 2), p.at(i + 3)}; got != want {
				t.Fatalf("%d to %d of %d go to %d, want %d", i, i+3, n, got, want)
			}
			if l+r*p.a != i+4 || l >= p.a {
				t.Fatalf("cell %d, %d follows %d, of %d columns", l, r, i+3, p.a)
			}
		}
	})
}

func TestCeilSqrt(t *testing.T) {
	check := func(n uint64) {
		r := new(big.Int).Sqrt(new(big.Int).SetUint64(n)).Uint64()
		if r*r < n {
			r++
		}
		if got := ceilSqrt(n); got != r {
			t.Errorf("ceilSqrt(%d) = %d, want %d", n, got, r)
		}
	}
	for n := uint64(1); n < 3000; n++ {
		check(n)
	}
	for _, r := range []uint64{1 << 20, 94906265, 94906266, 94906267, 1<<30 - 1, 1 << 30} {
		check(r*r - 1)
		check(r * r)
		check(r*r + 1)
	}
}

// chiSquareZ is how many standard deviations the statistic of equally likely cells lies from its
// mean (Wilson and Hilferty's approximation).
func chiSquareZ(counts []int, samples int) float64 {
	expected := float64(samples) / float64(len(counts))
	var x float64
	for _, c := range counts {
		x += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	df := float64(len(counts) - 1)
	return (math.Cbrt(x/df) - (1 - 2/(9*df))) / math.Sqrt(2/(9*df))
}

// Where do two positions land, over many seeds? Every ordered pair of rows must be as likely as any
// other: for neighbours, for the first and last, and for one position in two epochs. Keys are
// fixed, so a pass is a pass on every run.
func TestFullIsUniformOnPairsOfPositions(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 7, 10, effort.Of(15, 16, 16), effort.Of(16, 23, 23), effort.Of(23, 50, 50)} {
		samples := 60 * n * n
		samples = max(samples, 20000)
		pairs := [][2]int64{{0, 1}, {0, int64(n) - 1}, {int64(n) / 2, int64(n)/2 - 1}, {int64(n) - 2, int64(n) - 1}}
		counts, epochs := make([][]int, len(pairs)), make([]int, n*n)
		for k := range pairs {
			counts[k] = make([]int, n*n)
		}
		for seed := range samples {
			o, _ := NewOrder(Options{Sources: []Source{{Rows: int64(n)}}, Seed: uint64(seed)}, nil)
			for k, pair := range pairs {
				counts[k][o.shuffled(pair[0]).Row*int64(n)+o.shuffled(pair[1]).Row]++
			}
			epochs[o.shuffled(1).Row*int64(n)+o.shuffled(int64(n)+1).Row]++
		}
		for k, pair := range pairs {
			if pair[0] == pair[1] {
				continue
			}
			var offDiagonal []int
			for i, c := range counts[k] {
				if i/n == i%n {
					if c != 0 {
						t.Fatalf("n=%d: two positions got the same row", n)
					}
					continue
				}
				offDiagonal = append(offDiagonal, c)
			}
			if z := chiSquareZ(offDiagonal, samples); math.Abs(z) > 4 {
				t.Errorf("n=%d positions %v: chi-square is %.1f deviations from uniform", n, pair, z)
			}
		}
		if z := chiSquareZ(epochs, samples); math.Abs(z) > 4 {
			t.Errorf("n=%d: rows of one position in two epochs are dependent, %.1f deviations", n, z)
		}
	}
}

// All orders of a few rows must be equally likely, not only pairs.
func TestFullReachesEveryPermutation(t *testing.T) {
	for _, n := range []int{3, 4, 5, 6} {
		factorial := 1
		for i := 2; i <= n; i++ {
			factorial *= i
		}
		counts := map[string]int{}
		samples := 40 * factorial
		for seed := range samples {
			o, _ := NewOrder(Options{Sources: []Source{{Rows: int64(n)}}, Seed: uint64(seed)}, nil)
			var order []byte
			for i := range n {
				order = append(order, byte(o.shuffled(int64(i)).Row))
			}
			counts[string(order)]++
		}
		cells := make([]int, 0, factorial)
		for _, c := range counts {
			cells = append(cells, c)
		}
		for len(cells) < factorial {
			cells = append(cells, 0)
		}
		if z := chiSquareZ(cells, samples); math.Abs(z) > 4 {
			t.Errorf("n=%d: orders are %.1f deviations from uniform", n, z)
		}
	}
}

// In a large permutation, where do the rows of a few places go, and how far apart do neighbours land?
func TestLargeFullIsUniform(t *testing.T) {
	for _, n := range []uint64{100_000, 1_500_000} {
		const cells = 200
		places, steps := make([]int, cells), make([]int, cells)
		samples := 0
		for seed := range uint64(4) {
			p := newPermutation(n, key(seed))
			for i := uint64(0); i+1 < 20000; i++ {
				a, b := p.at(i), p.at(i+1)
				places[a*cells/n]++
				steps[(b+n-a)%n*cells/n]++
				samples++
			}
		}
		for name, counts := range map[string][]int{"places": places, "distances": steps} {
			// Without replacement the spread is a little below that of chance, so only the upper side can tell a fault.
			if z := chiSquareZ(counts, samples); z > 4 {
				t.Errorf("n=%d: %s of rows are %.1f deviations from uniform", n, name, z)
			}
		}
	}
}

func BenchmarkPermutation(b *testing.B) {
	for name, n := range map[string]uint64{"30k": 30_000, "1M": 1 << 20, "1G": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			p := newPermutation(n, 1)
			i := uint64(0)
			for b.Loop() {
				p.at(i % n)
				i++
			}
		})
	}
}
