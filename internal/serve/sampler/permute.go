package sampler

import "math"

const golden = 0x9e3779b97f4a7c15

// mix64 is the finalizer of SplitMix64 (Steele, Lea, Flood 2014; constants by Stafford): a
// bijection in which every bit depends on every other.
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func fold(h, v uint64) uint64 { return mix64((h ^ v) + golden) }

// key folds values into one key; the purpose among them keeps keys of different uses apart.
func key(values ...uint64) uint64 {
	var h uint64
	for _, v := range values {
		h = fold(h, v)
	}
	return h
}

const (
	purposeFull = iota + 1
	purposeBlock
	purposeMix
	purposeGroup
	purposeChange
	purposePack
)

const (
	manyRounds = 16 // small domains need more rounds to look uniform
	fewRounds  = 8
	fewFrom    = 1 << 20 // rows from which fewRounds suffice
)

// permutation is a keyed bijection of [0, n): a Feistel network over a × b cells with additive
// rounds (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"), a·b < n + a, so that
// the probability of another cycle walk is below 1/a.
type permutation struct {
	n, a, b uint64
	rounds  int
	keys    [manyRounds]uint64
}

func newPermutation(n, k uint64) permutation {
	p := permutation{n: n, rounds: manyRounds}
	if n >= fewFrom {
		p.rounds = fewRounds
	}
	p.a = ceilSqrt(n)
	p.b = (n + p.a - 1) / p.a
	for t := range p.rounds {
		p.keys[t] = fold(k, uint64(t)+1)
	}
	return p
}

// ceilSqrt returns the least a with a·a ≥ n, for 1 ≤ n < 2^62.
func ceilSqrt(n uint64) uint64 {
	a := uint64(math.Sqrt(float64(n)))
	for a*a >= n && a > 1 {
		a--
	}
	for a*a < n {
		a++
	}
	return a
}

// at returns where i goes, for i < n.
func (p *permutation) at(i uint64) uint64 {
	if p.n <= 1 {
		return i
	}
	a, b := p.a, p.b
	for {
		l, r := i%a, i/a
		for t := 0; t < p.rounds; t += 2 {
			l = shift(l, r^p.keys[t], a)
			r = shift(r, l^p.keys[t+1], b)
		}
		if i = r*a + l; i < p.n {
			return i
		}
	}
}

// cell returns the cell of i.
func (p *permutation) cell(i uint64) (l, r uint64) { return i % p.a, i / p.a }

// at4 returns where the number in a cell and the three after it go, which must be below n, and the cell of the next. A
// round waits for the one before it, so four at once take little longer than one, and divisions as long as some rounds.
func (p *permutation) at4(l0, r0 uint64) (to [4]uint64, l, r uint64) {
	a, b := p.a, p.b
	next := func(l, r uint64) (uint64, uint64) {
		if l++; l == a {
			return 0, r + 1
		}
		return l, r
	}
	l1, r1 := next(l0, r0)
	l2, r2 := next(l1, r1)
	l3, r3 := next(l2, r2)
	l, r = next(l3, r3)
	for t := 0; t < p.rounds; t += 2 {
		k := p.keys[t]
		l0 = shift(l0, r0^k, a)
		l1 = shift(l1, r1^k, a)
		l2 = shift(l2, r2^k, a)
		l3 = shift(l3, r3^k, a)
		k = p.keys[t+1]
		r0 = shift(r0, l0^k, b)
		r1 = shift(r1, l1^k, b)
		r2 = shift(r2, l2^k, b)
		r3 = shift(r3, l3^k, b)
	}
	to = [4]uint64{r0*a + l0, r1*a + l1, r2*a + l2, r3*a + l3}
	for j, v := range to {
		if v >= p.n {
			to[j] = p.at(v)
		}
	}
	return to, l, r
}

// shift returns v moved by a hash of z, modulo m.
func shift(v, z, m uint64) uint64 {
	v += (mix64(z) >> 32) * m >> 32
	return min(v, v-m) // v-m wraps where v < m
}

// inverse is the inverse of at.
func (p *permutation) inverse(i uint64) uint64 {
	if p.n <= 1 {
		return i
	}
	a, b := p.a, p.b
	for {
		l, r := i%a, i/a
		for t := p.rounds - 2; t >= 0; t -= 2 {
			r += b - (mix64(l^p.keys[t+1])>>32)*b>>32
			r = min(r, r-b) // as in shift
			l += a - (mix64(r^p.keys[t])>>32)*a>>32
			l = min(l, l-a)
		}
		if i = r*a + l; i < p.n {
			return i
		}
	}
}
