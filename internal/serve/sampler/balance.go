package sampler

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sort"

	"github.com/dsload/dsload/internal/radix"
)

// Balance is how the rows of a step are dealt to the ranks.
type Balance string

const (
	// NoBalance gives each rank the rows that follow those of the previous rank.
	NoBalance Balance = "none"
	// ByTokens equalizes rows × longest, the cost of a padded batch, across ranks: one gets few
	// long rows, another many short ones. No batch has more tokens with padding than BatchRows rows
	// as long as the step's longest.
	ByTokens Balance = "tokens"
	// Quadratic equalizes the sum of squared lengths, the cost of attention, across ranks. Without
	// a token budget each rank gets BatchRows rows.
	Quadratic Balance = "quadratic"
)

// Balances are all values of Balance, the default first.
var Balances = []Balance{NoBalance, ByTokens, Quadratic}

const (
	// MaxBalanced is the largest step that can be balanced, in rows of all ranks: it is held in
	// memory.
	MaxBalanced = 1 << 20
	// maxSquared is the length from which all rows count the same for Quadratic, so that sums do
	// not overflow.
	maxSquared = 1 << 21
	// evenings is how often the borders between neighbours are moved at most.
	evenings = 8
)

// BalanceBytes returns the memory for balancing a step of that many rows, for the ledger.
func BalanceBytes(rows int64) int64 { return rows * (2*itemBytes + 4 + 8 + 4*8 + 8 + 1) }

// nextBalanced keeps the rows of its rank of the step, which every rank would deal alike.
func (s *Steps) nextBalanced(b *Batch, epochEnd int64) error {
	start := s.position
	step, err := s.user.move(start, func(p *part) error { return s.dealStep(p, epochEnd) })
	if err != nil {
		return err
	}
	b.Items, b.Next = b.Items[:0], step.next
	groups := min(s.opts.World, len(step.items))
	switch {
	case groups == 0:
		if s.opts.MaxTokens > 0 {
			s.dropped = step.next - start
		}
		return nil
	case s.opts.Rank >= groups: // fewer rows remain than there are ranks
		if s.opts.Tail == Once {
			b.Items = append(b.Items, step.items[0])
			b.Items[0].Position = Filler
		}
		return nil
	}
	turn := int(mix64(uint64(start)) % uint64(groups)) // so that no rank always has the longest rows
	mine := int32((s.opts.Rank - turn + groups) % groups)
	for i, group := range step.rankOf {
		if group == mine {
			b.Items = append(b.Items, step.items[i])
		}
	}
	return nil
}

// dealStep deals the rows of the step at Position by cost.
func (s *Steps) dealStep(p *part, epochEnd int64) error {
	whole := Batch{Items: p.items}
	if err := s.gather(&whole, epochEnd); err != nil {
		return err
	}
	p.items, p.next = whole.Items, whole.Next
	if len(p.items) > 0 && p.items[0].Length < 0 {
		if err := s.order.locate(p.items); err != nil {
			return err
		}
	}
	s.dealer.o, s.dealer.groups, s.dealer.rankOf = &s.opts, min(s.opts.World, len(p.items)), p.rankOf
	if len(p.items) > 0 {
		s.dealer.deal(p.items)
	}
	p.rankOf, s.dealer.rankOf = s.dealer.rankOf, nil
	return nil
}

// gather fills b with the rows of all ranks, in the order without balance.
func (s *Steps) gather(b *Batch, epochEnd int64) error {
	if s.opts.MaxTokens > 0 {
		return s.nextByTokens(b, epochEnd, true)
	}
	if rows := s.stepRows(); !s.order.bucketed() && s.position+rows <= epochEnd && s.user.isAlone() {
		return s.takeAhead(b, rows, epochEnd)
	}
	all := *s
	all.opts.BatchRows, all.opts.Rank, all.opts.World = s.opts.BatchRows*s.opts.World, 0, 1
	return all.nextByRows(b, epochEnd)
}

// takeAhead fills b with the n rows from Position on, whose lengths it asks for together with those of later steps:
// many rows have some next to each other in the shards. Users that share steps would each ask for the same ones.
func (s *Steps) takeAhead(b *Batch, n, epochEnd int64) error {
	items := s.known(s.position, int(n))
	if items == nil {
		if err := s.learn(s.position, s.position+n, epochEnd); err != nil {
			return err
		}
		items = s.known(s.position, int(n))
	}
	b.Items, b.Next = append(b.Items[:0], items...), s.position+n
	return nil
}

// A dealer divides rows into groups of about equal cost, and reuses its memory.
type dealer struct {
	o      *StepOptions
	groups int     // at most the number of rows
	rankOf []int32 // the group of each row

	keys     []uint64 // the rows' lengths and indexes, sorted
	room     []uint64 // scratch for that
	byLength []int32  // indexes of rows, longest first, equal lengths in their order
	length   []int64  // each row's, as in byLength
	squares  []int64  // prefix sums of squared lengths, one more than rows
	borders  []int    // between runs
	taken    []bool   // rows of byLength that stay where they are
}

func (d *dealer) deal(rows []Item) {
	n := len(rows)
	d.rankOf, d.byLength = slices.Grow(d.rankOf[:0], n)[:n], slices.Grow(d.byLength[:0], n)[:n]
	d.length, d.squares = slices.Grow(d.length[:0], n)[:n], slices.Grow(d.squares[:0], n+1)[:n+1]
	d.keys, d.room = slices.Grow(d.keys[:0], n)[:n], slices.Grow(d.room[:0], n)[:n]
	for i := range rows { // longest first, equal lengths by index
		d.keys[i] = uint64(math.MaxInt32-rows[i].Length)<<32 | uint64(i)
	}
	radix.Sort(d.keys, d.room, 32)
	d.squares[0] = 0
	for i, k := range d.keys {
		row := int32(uint32(k))
		d.byLength[i] = row
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

// dealEqualCounts gives each row, longest first, to the group with the least sum so far among those
// that are not full. All groups get equally many rows, the first ones one more if the rows do not
// divide evenly.
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

// groupHeap orders groups by sum, then by index.
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

// cost returns the cost of a group of rows i to j of byLength.
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

// dealRuns cuts byLength into runs so that the costliest costs as little as possible, and then
// moves the borders so that neighbours cost about the same. There is always an answer: batches that
// fit their budgets can be rearranged into runs of the same sizes that fit too.
func (d *dealer) dealRuns() {
	n := len(d.byLength)
	low, high := d.least(), d.cost(0, 1)+d.cost(0, n)
	limit := low + int64(sort.Search(int(high-low), func(c int) bool { return d.runs(low+int64(c), nil) <= d.groups }))
	d.borders = d.borders[:0]
	d.runs(limit, &d.borders)
	borders := d.borders
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

// lengthen swaps the longest row of each run with a longer row of an earlier run, if the run then
// costs no more than the costliest. Rows × longest of the earlier run does not change, since its
// longest row stays.
func (d *dealer) lengthen(borders []int) {
	var most int64
	for k := range d.groups {
		most = max(most, d.cost(borders[k], borders[k+1]))
	}
	d.taken = slices.Grow(d.taken[:0], len(d.byLength))[:len(d.byLength)]
	clear(d.taken)
	for _, b := range borders[:d.groups] {
		d.taken[b] = true // the longest of a run
	}
	for k := d.groups - 1; k > 0; k-- {
		from, rows := borders[k], int64(borders[k+1]-borders[k])
		i := sort.Search(from, func(i int) bool { return rows*d.o.PaddedLength(d.length[i]) <= most })
		for i < from && d.taken[i] {
			i++
		}
		if i < from {
			d.taken[i] = true
			a, b := d.byLength[i], d.byLength[from]
			d.rankOf[a], d.rankOf[b] = d.rankOf[b], d.rankOf[a]
		}
	}
}

// runs returns how many runs that cost at most limit the rows make, each as long as possible; it
// returns groups+1 if a single row costs more. With borders it makes exactly as many runs as
// groups, which must suffice, and appends where they begin and the end.
func (d *dealer) runs(limit int64, borders *[]int) int {
	n, runs := len(d.byLength), 0
	for i := 0; i < n; runs++ {
		if runs == d.groups || d.cost(i, i+1) > limit {
			return d.groups + 1
		}
		end := n
		if borders != nil {
			*borders = append(*borders, i)
			end = n - (d.groups - 1 - runs) // each later run needs a row
		}
		i += d.reach(i, end-i, limit)
	}
	if borders != nil {
		*borders = append(*borders, n)
	}
	return runs
}

// reach returns how many of the next n rows from i on a run may have that costs at most limit: at least one.
func (d *dealer) reach(i, n int, limit int64) int {
	if padded := d.o.PaddedLength(d.length[i]); d.o.Balance == ByTokens && padded > 0 {
		most := limit / padded
		if d.o.MaxTokens > 0 {
			most = min(most, d.o.MaxTokens/padded, int64(d.o.BatchRows))
		}
		return int(max(1, min(most, int64(n))))
	}
	return 1 + sort.Search(n-1, func(k int) bool { return d.cost(i, i+k+2) > limit || !d.fits(i, i+k+2) })
}

// least returns a cost that the costliest run does not fall below: a part of what all rows cost each for itself.
func (d *dealer) least() (sum int64) {
	if d.o.Balance == Quadratic {
		sum = d.squares[len(d.byLength)]
	} else {
		for _, n := range d.length {
			sum += n
		}
	}
	return (sum + int64(d.groups) - 1) / int64(d.groups)
}

// border returns the best border for the runs from a to b and from b to c: the one with which the
// costlier of both costs least.
func (d *dealer) border(a, b, c int) int {
	low, high := a+1, c // the borders at which both runs fit are contiguous
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
