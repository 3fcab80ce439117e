package sampler

import (
	"io"
	"slices"
)

// Filler is the Position of an item that only keeps a rank in step with the others: it repeats a
// row, and must not count.
const Filler = -1

// Batch is one rank's part of a step.
type Batch struct {
	Items []Item
	Next  int64 // the position after the step
}

// Steps deals the steps of one rank in order. It is not safe for concurrent use.
type Steps struct {
	order    *Order
	opts     StepOptions
	position int64
	end      int64 // the first position that is not served
	dealt    bool  // whether any step had rows for this rank
	empty    int   // whole epochs without rows for this rank, before the first with some
	dropped  int64 // rows that Drop has dropped of the last epoch

	// Token budgets: items from position aheadFrom on, whose lengths are known.
	ahead     []Item
	aheadFrom int64

	// Balance.
	user   *user // of the steps of all ranks
	dealer dealer
}

// NewSteps returns the stream of batches that o describes.
func NewSteps(order *Order, o StepOptions) (*Steps, error) {
	o = o.withDefaults()
	end, err := o.check(order.rows)
	if err != nil {
		return nil, err
	}
	return &Steps{order: order, opts: o, position: o.Start, end: end, user: alone()}, nil
}

// Position returns the position at which the next step begins.
func (s *Steps) Position() int64 { return s.position }

// LeftOut returns how many rows of an epoch Drop drops, and how many it has. Under a token budget
// this is known of the last epoch that dropped some.
func (s *Steps) LeftOut() (dropped, rows int64) {
	rows = s.order.rows
	if s.opts.Tail == Drop && s.opts.MaxTokens == 0 {
		return (rows - s.opts.Start%rows) % s.stepRows(), rows
	}
	return s.dropped, rows
}

// Next fills b with this rank's rows of the next step that has any, and returns io.EOF after the
// last. Other errors are those of the LocateFunc, *TooLongError and *EmptyEpochError.
func (s *Steps) Next(b *Batch) error {
	for s.position < s.end {
		if err := s.Deal(b); err != nil {
			return err
		}
		if len(b.Items) > 0 {
			s.dealt = true
			return nil
		}
		if s.isEmpty() {
			return &EmptyEpochError{s.order.rows, s.opts.Rank, s.opts.World, s.opts.Tail}
		}
	}
	return io.EOF
}

// Deal fills b with this rank's rows of the step at Position, which may be none, and moves on to
// the next step. It returns io.EOF after the last. Other errors are those of Next.
func (s *Steps) Deal(b *Batch) error {
	if s.position >= s.end {
		b.Items = b.Items[:0]
		return io.EOF
	}
	epochEnd := (s.position/s.order.rows + 1) * s.order.rows
	var err error
	switch {
	case s.balanced():
		err = s.nextBalanced(b, epochEnd)
	case s.opts.MaxTokens > 0:
		err = s.nextByTokens(b, epochEnd, false)
	default:
		err = s.nextByRows(b, epochEnd)
	}
	if err == nil {
		s.position = b.Next
	}
	return err
}

// balanced reports whether the rows of all ranks are dealt by cost.
func (s *Steps) balanced() bool { return s.opts.Balance != NoBalance && s.opts.World > 1 }

// maxEmpty is how many epochs of an endless stream may have no rows for a rank before Steps gives
// up: under a token budget epochs differ.
const maxEmpty = 16

// isEmpty reports, after a step without rows for this rank, whether to give up because no epoch so
// far had any.
func (s *Steps) isEmpty() bool {
	if s.dealt || s.position%s.order.rows != 0 || s.position-s.opts.Start < s.order.rows {
		return false
	}
	s.empty++
	switch {
	case s.opts.Tail != Drop && s.opts.Epochs > 0:
		return false // under Keep, later ranks may get none
	case s.opts.MaxTokens == 0:
		return true
	}
	return s.empty >= maxEmpty || s.position >= s.end
}

// nextByRows takes the Rank-th BatchRows rows of the step. The batch is empty if the rank has none.
func (s *Steps) nextByRows(b *Batch, epochEnd int64) (err error) {
	rows := int64(s.opts.BatchRows)
	step := rows * int64(s.opts.World)
	from := s.position + rows*int64(s.opts.Rank)
	b.Items = b.Items[:0]
	b.Next = min(s.position+step, epochEnd)
	if s.position+step > epochEnd && s.opts.Tail == Drop {
		return nil
	}
	n := min(rows, max(0, epochEnd-from))
	fill := false
	if s.position+step > epochEnd && s.opts.Tail == Once {
		from, n, fill = s.opts.Share(epochEnd - s.position)
		from += s.position
	}
	if b.Items, err = s.order.Append(b.Items, from, int(n)); err != nil {
		return err
	}
	if fill {
		return s.fill(b)
	}
	if s.opts.Tail == Pad {
		// Positions after the end of the epoch repeat its rows from the first on, several times if
		// a step is longer than an epoch.
		for p := from + n; p < from+rows; p++ {
			if b.Items, err = s.order.Append(b.Items, s.wrapped(p-epochEnd, epochEnd), 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill appends the first row of the step at Position as a Filler.
func (s *Steps) fill(b *Batch) (err error) {
	if b.Items, err = s.order.Append(b.Items, s.position, 1); err == nil {
		b.Items[len(b.Items)-1].Position = Filler
	}
	return err
}

// wrapped returns the position of the i-th row that Pad repeats.
func (s *Steps) wrapped(i, epochEnd int64) int64 {
	return epochEnd - s.order.rows + i%s.order.rows
}

// nextByTokens cuts World consecutive batches, each as long as the budget allows, and keeps its
// own, or all of them. All ranks compute the same cuts from the same lengths, so they agree without
// communication.
func (s *Steps) nextByTokens(b *Batch, epochEnd int64, all bool) error {
	b.Items = b.Items[:0]
	p := s.position
	for rank := range s.opts.World {
		n, whole, err := s.cut(p, epochEnd-p)
		if err != nil {
			return err
		}
		if !whole && s.opts.Tail == Drop {
			b.Items, b.Next, s.dropped = b.Items[:0], epochEnd, epochEnd-s.position
			return nil
		}
		if n == 0 {
			if s.opts.Tail == Pad {
				return s.padByTokens(b, rank, epochEnd, all)
			}
			if s.opts.Tail == Once && !all && rank <= s.opts.Rank {
				b.Next = p
				return s.fill(b)
			}
			break
		}
		if all || rank == s.opts.Rank {
			b.Items = append(b.Items, s.known(p, n)...)
		}
		p += int64(n)
	}
	b.Next = p
	return nil
}

// padByTokens gives batches from the epoch's beginning to the ranks from first on, for which the
// epoch's end had no rows.
func (s *Steps) padByTokens(b *Batch, first int, epochEnd int64, all bool) error {
	b.Next = epochEnd
	last := s.opts.Rank
	if all {
		last = s.opts.World - 1
	}
	for i, rank := int64(0), first; rank <= last; rank++ {
		p := s.wrapped(i, epochEnd)
		n, _, err := s.cut(p, epochEnd-p)
		if err != nil {
			return err
		}
		if all || rank == s.opts.Rank {
			b.Items = append(b.Items, s.known(p, n)...)
		}
		i += int64(n)
	}
	return nil
}

// cut returns how many rows from position p on, at most limit, fit one batch. whole is false if
// limit ended the batch.
func (s *Steps) cut(p, limit int64) (n int, whole bool, err error) {
	var longest int64
	for n < s.opts.BatchRows {
		if int64(n) >= limit {
			return n, false, nil
		}
		items := s.known(p+int64(n), 1)
		if items == nil {
			if err := s.learn(p, p+int64(n)+1, p+limit); err != nil {
				return 0, false, err
			}
			items = s.known(p+int64(n), 1)
		}
		longest = max(longest, int64(items[0].Length))
		if s.opts.PaddedLength(longest)*int64(n+1) > s.opts.MaxTokens {
			if n == 0 {
				return 0, false, &TooLongError{items[0], s.opts.MaxTokens}
			}
			return n, true, nil
		}
		n++
	}
	return n, true, nil
}

// known returns the n items from position p on, nil unless all their lengths are known.
func (s *Steps) known(p int64, n int) []Item {
	i := p - s.aheadFrom
	if i < 0 || i+int64(n) > int64(len(s.ahead)) {
		return nil
	}
	return s.ahead[i : i+int64(n)]
}

// learn reads the lengths of more items, at least up to position to and none from end on, and forgets those before keep.
func (s *Steps) learn(keep, to, end int64) (err error) {
	next := s.aheadFrom + int64(len(s.ahead))
	if keep < s.aheadFrom || keep > next {
		s.ahead, s.aheadFrom, next = s.ahead[:0], keep, keep
	}
	s.ahead, s.aheadFrom = slices.Delete(s.ahead, 0, int(keep-s.aheadFrom)), keep
	n := min(max(int64(s.opts.Ahead), to-next), end-next)
	have := len(s.ahead)
	if s.ahead, err = s.order.Append(s.ahead, next, int(n)); err != nil {
		s.ahead = s.ahead[:have]
		return err
	}
	if s.order.bucketed() {
		return nil
	}
	if err = s.order.locate(s.ahead[have:]); err != nil {
		s.ahead = s.ahead[:have]
	}
	return err
}
