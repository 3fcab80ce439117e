package sampler

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

// Balance is how the rows of a step are dealt to the ranks.
type Balance uint8

const (
	// NoBalance gives each rank the rows that follow those of the rank before.
	NoBalance Balance = iota
	// ByTokens makes rows × longest, what a padded batch costs, alike on all ranks: one gets few long
	// rows, another many short ones. No batch has more tokens with padding than BatchRows of the
	// step's longest row would.
	ByTokens
	// Quadratic makes the sum of squared lengths, what attention costs, alike on all ranks. Without
	// a token budget each gets BatchRows rows.
	Quadratic
)

const (
	// MaxBalanced is the largest step, in rows of all ranks, that is balanced: it is held in memory.
	MaxBalanced = 1 << 20
	// maxSquared is the length from which rows count the same for Quadratic, so that sums fit.
	maxSquared = 1 << 21
	// evenings is how often the borders between neighbours are moved.
	evenings = 8
)

// BalanceBytes is what dealing a step of that many rows holds, for the memory ledger.
func BalanceBytes(rows int64) int64 { return rows * (2*32 + 4 + 4 + 8 + 2*8) }

// nextBalanced deals the step's rows out by what they cost, and keeps those of its rank. Every rank
// computes the same.
func (s *Steps) nextBalanced(b *Batch, epochEnd int64) error {
	start := s.position
	if err := s.gather(b, epochEnd); err != nil {
		return err
	}
	s.whole, b.Items = append(s.whole[:0], b.Items...), b.Items[:0]
	if len(s.whole) == 0 {
		return nil
	}
	if !s.order.Bucketed() && s.opts.MaxTokens == 0 {
		s.lengths = slices.Grow(s.lengths[:0], len(s.whole))[:len(s.whole)]
		if err := s.order.lengths(s.whole, s.lengths); err != nil {
			return err
		}
		for i, l := range s.lengths {
			s.whole[i].Length = l
		}
	}
	n := len(s.whole)
	d := dealer{o: &s.opts, groups: min(s.opts.World, n), rankOf: slices.Grow(s.rankOf[:0], n)[:n]}
	s.rankOf = d.rankOf
	if s.opts.Rank >= d.groups {
		return nil // fewer rows are left than there are ranks
	}
	d.deal(s.whole)
	turn := int(mix64(uint64(start)) % uint64(d.groups)) // so that no rank always has the longest rows
	for i, group := range d.rankOf {
		if (int(group)+turn)%d.groups == s.opts.Rank {
			b.Items = append(b.Items, s.whole[i])
		}
	}
	return nil
}

// gather fills b with the rows of all ranks, in the order in which they are dealt without balance.
func (s *Steps) gather(b *Batch, epochEnd int64) error {
	if s.opts.MaxTokens == 0 {
		all := *s
		all.opts.BatchRows, all.opts.Rank, all.opts.World = s.opts.BatchRows*s.opts.World, 0, 1
		return all.nextByRows(b, epochEnd)
	}
	return s.nextByTokens(b, epochEnd, true)
}

// A dealer divides rows into groups of about equal cost.
type dealer struct {
	o      *StepOptions
	groups int     // at most as many as rows
	rankOf []int32 // the group of each row

	byLength []int32 // indexes of rows, the longest first, equal lengths in their order
	length   []int64 // of these
	squares  []int64 // sum over those before; one more than rows
}

func (d *dealer) deal(rows []Item) {
	d.byLength = make([]int32, len(rows))
	for i := range rows {
		d.byLength[i] = int32(i)
	}
	slices.SortStableFunc(d.byLength, func(a, b int32) int { return cmp.Compare(rows[b].Length, rows[a].Length) })
	d.length, d.squares = make([]int64, len(rows)), make([]int64, len(rows)+1)
	for i, row := range d.byLength {
		d.length[i] = int64(rows[row].Length)
		l := min(d.length[i], maxSquared)
		d.squares[i+1] = d.squares[i] + l*l
	}
	if d.o.Balance == Quadratic && d.o.MaxTokens == 0 {
		d.dealEqualCounts()
		return
	}
	d.dealRuns()
}

// dealEqualCounts gives each row, the longest first, to the group with the least so far among those
// that are not full. All groups get as many rows, the first ones one more where that does not work out.
func (d *dealer) dealEqualCounts() {
	h := make(groupHeap, d.groups)
	n := len(d.byLength)
	for g := range h {
		h[g] = groupSum{group: int32(g), left: n / d.groups}
		if g < n%d.groups {
			h[g].left++
		}
	}
	for i, row := range d.byLength {
		least := &h[0]
		d.rankOf[row] = least.group
		least.sum += d.squares[i+1] - d.squares[i]
		if least.left--; least.left == 0 {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
}

type groupSum struct {
	sum   int64
	group int32
	left  int
}

// groupHeap has the group with the least sum first, of equal ones the first.
type groupHeap []groupSum

func (h groupHeap) Len() int { return len(h) }
func (h groupHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].sum, h[j].sum), cmp.Compare(h[i].group, h[j].group)) < 0
}
func (h groupHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *groupHeap) Push(x any)   { *h = append(*h, x.(groupSum)) }
func (h *groupHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// cost is that of a group of the rows i to j of byLength.
func (d *dealer) cost(i, j int) int64 {
	if d.o.Balance == Quadratic {
		return d.squares[j] - d.squares[i]
	}
	return int64(j-i) * d.o.PaddedLength(d.length[i])
}

// fits reports whether these rows may be a batch.
func (d *dealer) fits(i, j int) bool {
	return d.o.MaxTokens == 0 || j-i <= d.o.BatchRows && int64(j-i)*d.o.PaddedLength(d.length[i]) <= d.o.MaxTokens
}

// dealRuns cuts byLength into runs, so that the costliest costs as little as it can, and then moves
// the borders so that neighbours cost about the same. Any batches that fit their budgets can be put
// into runs of the same sizes that do, so there always is an answer.
func (d *dealer) dealRuns() {
	n := len(d.byLength)
	low, high := int64(0), d.cost(0, 1)+d.cost(0, n)
	limit := low + int64(sort.Search(int(high-low), func(c int) bool { return d.runs(low+int64(c), nil) <= d.groups }))
	borders := make([]int, 0, d.groups+1)
	d.runs(limit, &borders)
	for range evenings {
		moved := false
		for k := d.groups - 1; k > 0; k-- {
			if b := d.border(borders[k-1], borders[k], borders[k+1]); b != borders[k] {
				borders[k], moved = b, true
			}
		}
		if !moved {
			break
		}
	}
	for k := range d.groups {
		for _, row := range d.byLength[borders[k]:borders[k+1]] {
			d.rankOf[row] = int32(k)
		}
	}
	if d.o.Balance == ByTokens {
		d.lengthen(borders)
	}
}

// lengthen swaps the longest row of a run that costs less than the costliest with a longer one of a
// run before, as long as it then costs no more. Rows × longest of that run stays what it is, since
// its own longest row stays.
func (d *dealer) lengthen(borders []int) {
	var most int64
	for k := range d.groups {
		most = max(most, d.cost(borders[k], borders[k+1]))
	}
	taken := map[int]bool{}
	for _, b := range borders {
		taken[b] = true // the longest of a run
	}
	for k := d.groups - 1; k > 0; k-- {
		from, rows := borders[k], int64(borders[k+1]-borders[k])
		i := sort.Search(from, func(i int) bool { return rows*d.o.PaddedLength(d.length[i]) <= most })
		for i < from && taken[i] {
			i++
		}
		if i < from {
			taken[i] = true
			a, b := d.byLength[i], d.byLength[from]
			d.rankOf[a], d.rankOf[b] = d.rankOf[b], d.rankOf[a]
		}
	}
}

// runs returns how many runs of at most a cost the rows make, each as long as it can be, and one
// more than groups where one row costs more. With borders it makes exactly as many runs as groups,
// which must be enough, and appends where they begin and the end.
func (d *dealer) runs(limit int64, borders *[]int) int {
	n, runs := len(d.byLength), 0
	for i := 0; i < n; runs++ {
		if runs == d.groups || d.cost(i, i+1) > limit {
			return d.groups + 1
		}
		end := n
		if borders != nil {
			*borders = append(*borders, i)
			end = n - (d.groups - 1 - runs) // each run after this needs a row
		}
		i += 1 + sort.Search(end-i-1, func(k int) bool {
			return d.cost(i, i+k+2) > limit || !d.fits(i, i+k+2)
		})
	}
	if borders != nil {
		*borders = append(*borders, n)
	}
	return runs
}

// border returns the best place for the border b between the runs from a and to c: where the
// costlier of both costs least.
func (d *dealer) border(a, b, c int) int {
	low, high := a+1, c // places at which both runs fit are neighbours
	low += sort.Search(b-low, func(k int) bool { return d.fits(low+k, c) })
	high = b + 1 + sort.Search(c-b-1, func(k int) bool { return !d.fits(a, b+1+k) })
	costlier := func(at int) int64 { return max(d.cost(a, at), d.cost(at, c)) }
	at := low + sort.Search(high-low, func(k int) bool { return d.cost(a, low+k) >= d.cost(low+k, c) })
	best := b
	for _, p := range [...]int{at - 1, at} {
		if p >= low && p < high && costlier(p) < costlier(best) {
			best = p
		}
	}
	return best
}
