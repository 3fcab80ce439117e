package sampler

import "io"

// The steps of a stream are numbered from 0, at Start. Without a token budget the number and the
// position of a step follow from each other.

// stepRows returns the number of rows of a whole step.
func (s *Steps) stepRows() int64 { return int64(s.opts.BatchRows) * int64(s.opts.World) }

// stepsOf returns how many steps the given number of rows of an epoch make.
func (s *Steps) stepsOf(rows int64) int64 {
	if s.opts.Tail == Drop {
		return rows / s.stepRows()
	}
	return (rows + s.stepRows() - 1) / s.stepRows()
}

// GoTo goes to step number n, counted from Start. It returns io.EOF if the stream has no such step.
// Under a token budget it deals all earlier steps, since lengths decide where a step ends.
func (s *Steps) GoTo(n int64) error {
	if s.opts.MaxTokens > 0 {
		return s.walk(n)
	}
	rows := s.order.rows
	epoch := s.opts.Start / rows
	if first := s.stepsOf((epoch+1)*rows - s.opts.Start); n < first {
		s.position = s.opts.Start + n*s.stepRows()
	} else {
		n -= first
		whole := s.stepsOf(rows)
		if whole == 0 || n/whole > MaxPosition/rows-epoch-1 {
			return io.EOF
		}
		s.position = (epoch+1+n/whole)*rows + n%whole*s.stepRows()
	}
	if s.position >= s.end {
		return io.EOF
	}
	return nil
}

// walk deals the steps before number n.
func (s *Steps) walk(n int64) error {
	s.position = s.opts.Start
	var b Batch
	for dealt := int64(-1); ; {
		before := s.position
		if err := s.Deal(&b); err != nil {
			return err
		}
		// Only the dropped end of an epoch has no rows for the first rank.
		if s.opts.Tail != Drop || len(b.Items) > 0 {
			dealt++
		}
		if dealt == n {
			s.position = before
			return nil
		}
	}
}

// Number returns the number of the step that a position belongs to, and where that step begins. ok
// is false if the position is before Start, after the end or dropped, and always under a token
// budget.
func (s *Steps) Number(position int64) (n, start int64, ok bool) {
	if s.opts.MaxTokens > 0 || position < s.opts.Start || position >= s.end {
		return 0, 0, false
	}
	rows := s.order.rows
	epoch, first := position/rows, s.opts.Start/rows
	from := epoch * rows
	if epoch == first {
		from = s.opts.Start
	} else {
		n = s.stepsOf((first+1)*rows-s.opts.Start) + (epoch-first-1)*s.stepsOf(rows)
	}
	k := (position - from) / s.stepRows()
	if k >= s.stepsOf((epoch+1)*rows-from) {
		return 0, 0, false
	}
	return n + k, from + k*s.stepRows(), true
}
