package sampler

import (
	"io"

	"github.com/dsload/dsload/loader/pack"
)

// PackedRow is a packed row of the current window: Pieces are runs of the tokens of Units.
type PackedRow struct {
	Position int64 // its number in the order
	Pieces   []pack.Piece
	Units    []Unit
}

// Length returns the number of tokens.
func (r PackedRow) Length() (n int64) {
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
	dealt    bool // as in Steps
	empty    int
}

// NewPackedSteps returns the stream of batches that o describes.
func NewPackedSteps(p *Packed, o StepOptions) (*PackedSteps, error) {
	o.World, o.Multiple = max(o.World, 1), max(o.Multiple, 1)
	end, err := o.check(p.Rows())
	return &PackedSteps{packed: p, opts: o, position: o.Start, end: end}, err
}

// Next calls take for each of this rank's rows of the next step that has any, and returns the
// position after the step, or io.EOF after the last. If Drop drops the end of an epoch after some
// of its rows were taken, Next calls reset. Other errors are those of the UnitsFunc and of take,
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

// Deal deals the step at Position to all ranks and goes on to the next one. It calls take, which may
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
	return (s.opts.Tail == Drop || s.opts.Epochs == 0) && (s.empty >= mostEmpty || s.position >= s.end)
}

// step deals one step, of which takeOf(rank) gets a rank's rows. It returns the number of rows that
// this rank got, and that all ranks got.
func (s *PackedSteps) step(takeOf func(rank int) func(PackedRow) error, epochEnd int64) (mine, all int, next int64,
	err error) {
	at, wrapped := s.position, false
	for rank := range s.opts.World {
		taker := takeOf(rank)
		n, whole, err := s.batch(taker, &at, epochEnd, s.opts.BatchRows)
		if err != nil {
			return 0, 0, 0, err
		}
		if !whole && !wrapped && s.opts.Tail == Drop {
			return 0, 0, epochEnd, nil
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
	return mine, all, at, nil
}

// batch takes the rows of one batch from *at on, as many as the token budget allows and at most
// limit, and moves *at past them. whole is false if the end of the epoch ended the batch.
func (s *PackedSteps) batch(take func(PackedRow) error, at *int64, epochEnd int64, limit int) (n int, whole bool,
	err error) {
	p, w := s.packed, &s.packed.now
	var longest int64
	for n < limit {
		if *at >= epochEnd {
			return n, false, nil
		}
		if err := p.seek(*at); err != nil {
			return 0, false, err
		}
		i, rows := *at-w.start, int64(w.rows.Len())
		if i >= rows {
			*at = w.end
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
			longest = max(longest, row.Length())
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
	return n, true, s.skipGap(at, epochEnd)
}

// skipGap moves *at past numbers without a row, so that the last step of an epoch ends with it.
func (s *PackedSteps) skipGap(at *int64, epochEnd int64) error {
	p, w := s.packed, &s.packed.now
	for *at < epochEnd {
		if *at >= w.start && *at < w.end {
			if *at-w.start < int64(w.rows.Len()) {
				return nil
			}
			*at = w.end
			continue
		}
		if !p.opts.Joined {
			return nil // the first row of the next window
		}
		// All rows of a window may belong to units that begin in other windows.
		if err := p.seek(*at); err != nil {
			return err
		}
	}
	return nil
}

func (s *PackedSteps) tooLong(row PackedRow) error {
	first := row.Units[row.Pieces[0].Item]
	return &TooLongError{Item{Ref: first.Ref, Position: row.Position, Length: int32(row.Length())}, s.opts.MaxTokens}
}
