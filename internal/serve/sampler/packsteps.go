package sampler

import (
	"io"

	"github.com/dsload/dsload/internal/pack"
)

// PackedRow is a packed row of the current window: Pieces are runs of the tokens of Units.
type PackedRow struct {
	Position int64 // its number in the order
	Pieces   []pack.Piece
	Units    []Item
}

// length returns the number of tokens.
func (r PackedRow) length() (n int64) {
	for _, p := range r.Pieces {
		n += int64(p.Len)
	}
	return n
}

// PackedSteps deals the steps of one rank in order, as Steps does. It is not safe for concurrent
// use.
type PackedSteps struct {
	packed   *Packed
	opts     StepOptions
	position int64
	end      int64
	dealt    bool // see Steps
	empty    int

	counted int64 // rows dealt since the epoch began, -1 if the steps began within it
	dropped int64 // rows that Drop has dropped of the last epoch
	of      int64 // how many rows that epoch has, 0 if unknown
}

// NewPackedSteps returns the stream of batches that o describes.
func NewPackedSteps(p *Packed, o StepOptions) (*PackedSteps, error) {
	o = o.withDefaults()
	end, err := o.check(p.Rows())
	s := &PackedSteps{packed: p, opts: o, position: o.Start, end: end}
	if o.Start%p.Rows() != 0 {
		s.counted = -1
	}
	return s, err
}

// Next calls take for each of this rank's rows of the next step that has any, and returns the
// position after the step, or io.EOF after the last. If Drop drops the end of an epoch after some
// of its rows were taken, Next calls reset. Other errors are those of the LocateFunc and of take,
// *TooLongError and *EmptyEpochError.
func (s *PackedSteps) Next(take func(PackedRow) error, reset func()) (next int64, err error) {
	rows := s.packed.Rows()
	mine := func(rank int) func(PackedRow) error {
		if rank == s.opts.Rank {
			return take
		}
		return nil
	}
	for s.position < s.end {
		n, _, next, err := s.step(mine, (s.position/rows+1)*rows)
		if err != nil {
			return 0, err
		}
		s.position = next
		if n > 0 {
			s.dealt = true
			return next, nil
		}
		reset()
		if s.isEmpty() {
			return 0, &EmptyEpochError{rows, s.opts.Rank, s.opts.World, s.opts.Tail}
		}
	}
	return 0, io.EOF
}

// Position returns the number of the row at which the next step begins.
func (s *PackedSteps) Position() int64 { return s.position }

// LeftOut returns how many rows Drop dropped of the last epoch whose end was reached, and how many
// that epoch has; 0 if the steps began within it.
func (s *PackedSteps) LeftOut() (dropped, rows int64) { return s.dropped, s.of }

// Deal deals the step at Position to all ranks and moves on to the next one. It calls take, which may
// be nil, for each row with its rank, and returns the number of rows, or io.EOF after the last step.
// It returns 0 if Drop drops the end of an epoch, of which take may have had rows.
func (s *PackedSteps) Deal(take func(rank int, row PackedRow) error) (n int, err error) {
	if s.position >= s.end {
		return 0, io.EOF
	}
	takers := func(rank int) func(PackedRow) error {
		if take == nil {
			return nil
		}
		return func(row PackedRow) error { return take(rank, row) }
	}
	rows := s.packed.Rows()
	_, n, next, err := s.step(takers, (s.position/rows+1)*rows)
	if err == nil {
		s.position = next
	}
	return n, err
}

// isEmpty is like that of Steps under a token budget: epochs differ.
func (s *PackedSteps) isEmpty() bool {
	rows := s.packed.Rows()
	if s.dealt || s.position%rows != 0 || s.position-s.opts.Start < rows {
		return false
	}
	s.empty++
	return (s.opts.Tail == Drop || s.opts.Epochs == 0) && (s.empty >= maxEmpty || s.position >= s.end)
}

// step deals one step, of which takeOf(rank) gets a rank's rows. It returns the number of rows that
// this rank got, and that all ranks got.
func (s *PackedSteps) step(takeOf func(rank int) func(PackedRow) error, epochEnd int64) (mine, all int, next int64,
	err error) {
	if s.opts.Tail == Once && s.opts.MaxTokens == 0 && s.opts.World > 1 {
		end := s.position
		rest, whole, err := s.batch(nil, &end, epochEnd, s.opts.BatchRows*s.opts.World)
		if err != nil {
			return 0, 0, 0, err
		}
		if !whole {
			mine, err = s.shareOut(takeOf, epochEnd, int64(rest))
			return mine, rest, epochEnd, err
		}
	}
	at, wrapped := s.position, false
	for rank := range s.opts.World {
		taker := takeOf(rank)
		n, whole, err := s.batch(taker, &at, epochEnd, s.opts.BatchRows)
		if err != nil {
			return 0, 0, 0, err
		}
		if !whole && !wrapped && s.opts.Tail == Drop {
			s.drop(all+n, epochEnd)
			return 0, 0, epochEnd, nil
		}
		if n == 0 && all > 0 && s.opts.Tail == Once {
			if n, err = s.fill(taker, epochEnd); err != nil {
				return 0, 0, 0, err
			}
		}
		for s.opts.Tail == Pad && !whole && (n == 0 || s.opts.MaxTokens == 0) {
			// Repeat the epoch's rows from the first on. A batch under a budget stays short.
			at, wrapped = epochEnd-s.packed.Rows(), true
			more := 0
			if more, whole, err = s.batch(taker, &at, epochEnd, s.opts.BatchRows-n); err != nil {
				return 0, 0, 0, err
			}
			if n += more; s.opts.MaxTokens > 0 || more == 0 {
				break
			}
		}
		if rank == s.opts.Rank {
			mine = n
		}
		all += n
		if n == 0 {
			break // later ranks get none either
		}
	}
	if wrapped {
		return mine, all, epochEnd, nil
	}
	s.count(all, at)
	return mine, all, at, nil
}

// shareOut deals the last rows of an epoch, of which there are rest, evenly.
func (s *PackedSteps) shareOut(takeOf func(rank int) func(PackedRow) error, epochEnd, rest int64) (mine int,
	err error) {
	o, at := s.opts, s.position
	for o.Rank = 0; o.Rank < o.World && rest > 0; o.Rank++ {
		taker, fillers := takeOf(o.Rank), 0
		_, n, fill := o.Share(rest)
		if _, _, err = s.batch(taker, &at, epochEnd, int(n)); err == nil && fill {
			fillers, err = s.fill(taker, epochEnd)
		}
		if err != nil {
			return 0, err
		}
		if o.Rank == s.opts.Rank {
			mine = int(n) + fillers
		}
	}
	return mine, nil
}

// fill gives the first row of the step at Position to a rank as a Filler.
func (s *PackedSteps) fill(take func(PackedRow) error, epochEnd int64) (n int, err error) {
	if take == nil {
		return 1, nil
	}
	at := s.position
	n, _, err = s.batch(func(row PackedRow) error {
		row.Position = Filler
		return take(row)
	}, &at, epochEnd, 1)
	return n, err
}

// count notes the rows of a step that ends before at.
func (s *PackedSteps) count(rows int, at int64) {
	if s.counted >= 0 {
		s.counted += int64(rows)
	}
	if at%s.packed.Rows() == 0 {
		s.counted = 0
	}
}

// drop notes the rows that Drop drops at the end of an epoch.
func (s *PackedSteps) drop(rows int, epochEnd int64) {
	s.dropped, s.of = int64(rows), 0
	if s.counted >= 0 {
		s.of = s.counted + s.dropped
	}
	s.count(0, epochEnd)
}

// batch takes the rows of one batch from *at on, as many as the token budget allows and at most
// limit, and moves *at past them. whole is false if the end of the epoch ended the batch.
func (s *PackedSteps) batch(take func(PackedRow) error, at *int64, epochEnd int64, limit int) (n int, whole bool,
	err error) {
	p, w := s.packed, s.packed.user.at
	var longest int64
	for n < limit {
		if *at >= epochEnd {
			return n, false, nil
		}
		if next, past := p.pastRows(*at); past {
			*at = next // without packing the window
			continue
		}
		if w, err = p.seek(*at); err != nil {
			return 0, false, err
		}
		i, rows := *at-w.start, int64(w.rows.Len())
		if i >= rows {
			*at = w.next
			continue
		}
		if take == nil && s.opts.MaxTokens == 0 {
			skip := min(rows-i, int64(limit-n))
			n += int(skip)
			*at += skip
			continue
		}
		row := PackedRow{Position: *at, Pieces: w.row(i), Units: w.units}
		if s.opts.MaxTokens > 0 {
			longest = max(longest, row.length())
			if s.opts.PaddedLength(longest)*int64(n+1) > s.opts.MaxTokens {
				if n == 0 {
					return 0, false, s.tooLong(row)
				}
				return n, true, nil
			}
		}
		if take != nil {
			if err := take(row); err != nil {
				return 0, false, err
			}
		}
		n++
		*at++
	}
	// Numbers without a row belong to the step, so that the last one of an epoch ends with it.
	if w != nil && *at >= w.start && *at < w.next && *at-w.start >= int64(w.rows.Len()) {
		*at = w.next
	}
	return n, true, nil
}

func (s *PackedSteps) tooLong(row PackedRow) error {
	first := row.Units[row.Pieces[0].Item]
	return &TooLongError{Item{Ref: first.Ref, Position: row.Position, Length: int32(row.length())}, s.opts.MaxTokens}
}
