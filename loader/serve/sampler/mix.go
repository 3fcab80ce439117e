package sampler

import "sort"

// mixWindow is the number of positions in which every source gets its exact share: a seek computes
// one window, and weights are kept to 1/1024.
const mixWindow = 1024

// mix deals positions out to sources by weight.
type mix struct {
	seed   uint64
	shares []int64 // positions of each source in a window; their sum is mixWindow

	window int64 // the one that source and before describe, -1 at first
	source []uint8
	before []uint16 // positions of the same source before this one in the window
}

func newMix(sources []Source, seed uint64) mix {
	return mix{
		seed: seed, shares: shares(sources), window: -1,
		source: make([]uint8, mixWindow), before: make([]uint16, mixWindow),
	}
}

// shares divides mixWindow by weight: rounded down but at least 1, what is left to the largest
// remainders.
func shares(sources []Source) []int64 {
	var total float64
	for _, s := range sources {
		total += s.Weight / float64(len(sources)) // the quotient keeps the sum of huge weights finite
	}
	out := make([]int64, len(sources))
	remainder := make([]float64, len(sources))
	byRemainder := make([]int, len(sources))
	sum := int64(0)
	for i, s := range sources {
		exact := s.Weight / float64(len(sources)) / total * mixWindow
		out[i] = max(1, int64(exact))
		remainder[i] = exact - float64(out[i])
		byRemainder[i] = i
		sum += out[i]
	}
	sort.SliceStable(byRemainder, func(i, j int) bool { return remainder[byRemainder[i]] > remainder[byRemainder[j]] })
	for i := 0; sum < mixWindow; i = (i + 1) % len(out) {
		out[byRemainder[i]]++
		sum++
	}
	for sum > mixWindow {
		largest := 0
		for i := range out {
			if out[i] > out[largest] {
				largest = i
			}
		}
		out[largest]--
		sum--
	}
	return out
}

// at is the source of a position and the position's number among that source's.
func (m *mix) at(position int64) (source int, k int64) {
	if w := position / mixWindow; w != m.window {
		m.fill(w)
	}
	index := position % mixWindow
	source = int(m.source[index])
	return source, m.window*m.shares[source] + int64(m.before[index])
}

func (m *mix) fill(w int64) {
	m.window = w
	var sourceOf [mixWindow]uint8
	i := 0
	for s, n := range m.shares {
		for range n {
			sourceOf[i] = uint8(s)
			i++
		}
	}
	perm := newPermutation(mixWindow, key(m.seed, purposeMix, uint64(w)))
	var seen [MaxSources]uint16
	for index := range mixWindow {
		s := sourceOf[perm.at(uint64(index))]
		m.source[index], m.before[index] = s, seen[s]
		seen[s]++
	}
}

// before64 returns how many rows of a source come before the window that holds a position.
func (m *mix) before64(source int, position int64) int64 {
	return position / mixWindow * m.shares[source]
}

// place returns the position of a source's row number k: the inverse of at.
func (m *mix) place(source int, k int64) int64 {
	w, i := k/m.shares[source], k%m.shares[source]
	if w != m.window {
		m.fill(w)
	}
	for index, s := range m.source {
		if int(s) == source && int64(m.before[index]) == i {
			return w*mixWindow + int64(index)
		}
	}
	panic("sampler: a window of a mix lacks a row of its share")
}
