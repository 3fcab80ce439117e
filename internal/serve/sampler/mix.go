package sampler

import (
	"math"
	"slices"
	"sort"
)

// mixWindow is the number of positions in which every source gets its exact share. A seek computes
// one window, and weights are exact to 1/1024.
const mixWindow = 1024

// Change is a mix that begins at a position.
type Change struct {
	At      int64     // ascending, above 0
	Weights []float64 // one for each source; 0 leaves it out
}

// mix deals positions to sources by weight.
type mix struct {
	seed     uint64
	rows     int64     // in an epoch
	segments []segment // the weights from a position on; a mix without changes has one segment
	changes  bool

	// The current window; start is -1 at first.
	start  int64
	source []uint8
	before []uint16 // positions of the same source before this one in the window
	counts []int64  // rows of each source before the window
}

// segment is a stretch of positions with the same weights.
type segment struct {
	from    int64
	weights []float64
	shares  []int64 // positions of each source in a window; their sum is mixWindow
	epoch   []int64 // in a whole epoch
}

// newMix returns the mix of o for epochs of the given number of rows, or what is wrong with it.
func newMix(o *Options, rows int64) (m mix, wrong string) {
	const notPositive = "weights must be positive numbers"
	weights := make([]float64, len(o.Sources))
	for i, s := range o.Sources {
		if weights[i] = s.Weight; len(o.Changes) == 0 && s.Weight == 0 {
			return m, notPositive
		}
	}
	m = mix{
		seed: o.Seed, rows: rows, start: -1, changes: len(o.Changes) > 0,
		source: make([]uint8, mixWindow), before: make([]uint16, mixWindow),
	}
	changes := append([]Change{{Weights: weights}}, o.Changes...)
	for i, c := range changes {
		switch {
		case i > 0 && c.At <= changes[i-1].At || c.At >= MaxPosition:
			return m, "rows at which weights change must rise from 1 on"
		case len(c.Weights) != len(o.Sources):
			return m, "a change must have a weight for each dataset"
		case !usable(c.Weights):
			return m, notPositive
		}
		m.add(c.At, c.Weights)
	}
	return m, ""
}

func (m *mix) add(from int64, weights []float64) {
	s := segment{from: from, weights: weights, shares: shares(weights, mixWindow)}
	if m.changes {
		s.epoch = s.count(m.rows)
	}
	m.segments = append(m.segments, s)
}

// count returns the positions of each source among the first n of a piece.
func (s *segment) count(n int64) []int64 {
	out := make([]int64, len(s.weights))
	rest := shares(s.weights, n%mixWindow)
	for i := range out {
		out[i] = n/mixWindow*s.shares[i] + rest[i]
	}
	return out
}

// shares divides n positions by weight: rounded down, in a whole window at least 1 for a weight
// above 0; the rest goes to the largest remainders.
func shares(weights []float64, n int64) []int64 {
	var total float64
	for _, w := range weights {
		total += w / float64(len(weights)) // the quotient keeps the sum of huge weights finite
	}
	out := make([]int64, len(weights))
	remainder := make([]float64, len(weights))
	var byRemainder []int
	sum := int64(0)
	for i, w := range weights {
		exact := w / float64(len(weights)) / total * float64(n)
		out[i] = int64(exact)
		if w > 0 && n == mixWindow {
			out[i] = max(1, out[i])
		}
		remainder[i] = exact - float64(out[i])
		if w > 0 {
			byRemainder = append(byRemainder, i)
		}
		sum += out[i]
	}
	sort.SliceStable(byRemainder, func(i, j int) bool { return remainder[byRemainder[i]] > remainder[byRemainder[j]] })
	for i := 0; sum < n; i = (i + 1) % len(byRemainder) {
		out[byRemainder[i]]++
		sum++
	}
	for sum > n {
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

// segmentAt returns the index of the segment that holds a position.
func (m *mix) segmentAt(position int64) int {
	return sort.Search(len(m.segments), func(i int) bool { return m.segments[i].from > position }) - 1
}

func (m *mix) end(i int) int64 {
	if i+1 < len(m.segments) {
		return m.segments[i+1].from
	}
	return MaxPosition + m.rows
}

// windowOf returns the window that holds a position: its first position, its rows and its segment.
// If weights change, windows start again at each change and each epoch, and the last one before may
// be shorter.
func (m *mix) windowOf(position int64) (start, rows int64, s *segment) {
	if !m.changes {
		return position / mixWindow * mixWindow, mixWindow, &m.segments[0]
	}
	i := m.segmentAt(position)
	epoch := position / m.rows * m.rows
	from, to := max(m.segments[i].from, epoch), min(m.end(i), epoch+m.rows)
	start = from + (position-from)/mixWindow*mixWindow
	return start, min(mixWindow, to-start), &m.segments[i]
}

// countBefore returns the rows of each source before the window that begins at start.
func (m *mix) countBefore(start int64) []int64 {
	counts := make([]int64, len(m.segments[0].weights))
	if !m.changes {
		for s := range counts {
			counts[s] = start / mixWindow * m.segments[0].shares[s]
		}
		return counts
	}
	add := func(more []int64, times int64) {
		for s := range counts {
			counts[s] += times * more[s]
		}
	}
	for i := range m.segments {
		s := &m.segments[i]
		from, to := s.from, min(m.end(i), start)
		if from >= to {
			break
		}
		if head := min((m.rows-from%m.rows)%m.rows, to-from); head > 0 {
			add(s.count(head), 1)
			from += head
		}
		add(s.epoch, (to-from)/m.rows)
		if tail := (to - from) % m.rows; tail > 0 {
			add(s.count(tail), 1)
		}
	}
	return counts
}

// at returns the source of a position and the index of the position among the source's.
func (m *mix) at(position int64) (source int, k int64) {
	m.seek(position)
	index := position - m.start
	source = int(m.source[index])
	return source, m.counts[source] + int64(m.before[index])
}

// seek sets the current window to the one that holds a position.
func (m *mix) seek(position int64) {
	if m.start >= 0 && position >= m.start && position < m.start+int64(len(m.source)) {
		return
	}
	start, rows, s := m.windowOf(position)
	m.counts = m.countBefore(start)
	k := key(m.seed, purposeMix, uint64(start/mixWindow))
	dealt := s.shares
	if m.changes {
		k = key(m.seed, purposeChange, uint64(start))
		if rows < mixWindow {
			dealt = shares(s.weights, rows)
		}
	}
	m.start, m.source, m.before = start, m.source[:rows], m.before[:rows]
	var sourceOf [mixWindow]uint8
	i := 0
	for s, n := range dealt {
		for range n {
			sourceOf[i] = uint8(s)
			i++
		}
	}
	perm := newPermutation(uint64(rows), k)
	var seen [MaxSources]uint16
	for index := range m.source {
		s := sourceOf[perm.at(uint64(index))]
		m.source[index], m.before[index] = s, seen[s]
		seen[s]++
	}
}

// countBeforeWindow returns how many rows of a source come before the window that holds a position.
func (m *mix) countBeforeWindow(source int, position int64) int64 {
	start, _, _ := m.windowOf(position)
	return m.countBefore(start)[source]
}

// rowPosition returns the position of a source's row number k, or MaxPosition if there is none below
// it. It is the inverse of at.
func (m *mix) rowPosition(source int, k int64) int64 {
	w := int64(0)
	if !m.changes {
		w = k / m.segments[0].shares[source] * mixWindow
	} else {
		w = int64(sort.Search(MaxPosition, func(p int) bool { return m.countBeforeWindow(source, int64(p)) > k })) - 1
	}
	if w >= MaxPosition-1 {
		return MaxPosition
	}
	m.seek(w)
	for index, s := range m.source {
		if int(s) == source && m.counts[source]+int64(m.before[index]) == k {
			return m.start + int64(index)
		}
	}
	panic("sampler: a window of a mix lacks a row of its share")
}

// usable reports whether some weight is above 0 and none is negative or infinite.
func usable(weights []float64) bool {
	return !slices.ContainsFunc(weights, func(w float64) bool { return !(w >= 0) || math.IsInf(w, 0) }) &&
		slices.ContainsFunc(weights, func(w float64) bool { return w > 0 })
}
