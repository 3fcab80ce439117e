package serve

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
)

// A growingStream deals steps of the order none while the dataset grows. It belongs to one goroutine.
type growingStream struct {
	building *Building
	prepared prepared // of the snapshot at the beginning
	position int64    // of the next step

	used  *snapshot  // the last one, which may be closed
	rows  *rowStream // of used
	empty bool       // used has no whole step at position

	ended   atomic.Bool // the build has ended: rest continues
	rest    feed.Stream
	leftOut func() (rows, of int64) // of rest
}

// dealt returns the options with which the first rows of an order make whole steps only.
func dealt(o sampler.StepOptions, start, rows int64) sampler.StepOptions {
	o.Start, o.Epochs, o.Tail = min(start, rows), 1, sampler.Drop
	return o
}

// Next implements feed.Stream.
func (s *growingStream) Next(ctx context.Context, b *collate.Batch) error {
	for s.rest == nil {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var before *snapshot
		if s.empty {
			before = s.used
		}
		whole, now, err := s.building.now(before)
		switch {
		case err != nil:
			return err
		case whole != nil:
			if err := s.continueWith(whole); err != nil {
				return err
			}
		case now == nil:
			if err := s.building.wait(ctx); err != nil {
				return err
			}
		default:
			dealt, err := s.deal(ctx, now, b)
			s.building.giveBack(now)
			if dealt || err != nil {
				return err
			}
		}
	}
	return s.rest.Next(ctx, b)
}

// continueWith makes the stream one of the whole dataset.
func (s *growingStream) continueWith(whole *Reader) error {
	q := s.prepared.query
	q.Start = s.position
	plan, err := whole.Open(q)
	if err != nil {
		return err
	}
	s.rest, s.leftOut, s.rows, s.used = plan.Stream, plan.LeftOut, nil, nil
	s.ended.Store(true)
	return nil
}

// rowsLeftOut is Plan.LeftOut. While the build runs, none are.
func (s *growingStream) rowsLeftOut() (rows, of int64) {
	if s.leftOut == nil {
		return 0, 0
	}
	return s.leftOut()
}

// deal fills b with the next step, and reports whether the snapshot has all its rows.
func (s *growingStream) deal(ctx context.Context, now *snapshot, b *collate.Batch) (bool, error) {
	if now != s.used {
		p := s.prepared
		var err error
		if p.members, err = now.members(p.query); err != nil {
			return false, err
		}
		rows := p.members[0].split.NumRows()
		if s.rows, err = now.newRowStream(p, dealt(p.steps, s.position, rows)); err != nil {
			return false, err
		}
		s.used = now
	}
	s.rows.stopped = ctx.Err
	err := s.rows.steps.Next(&s.rows.step)
	var none *sampler.EmptyEpochError
	if s.empty = err == io.EOF || errors.As(err, &none); s.empty {
		return false, nil
	}
	if err == nil {
		err = s.rows.readRows(b)
	}
	if err != nil {
		return false, err
	}
	b.Next = s.rows.step.Next
	s.position = b.Next
	return true, b.Seal()
}

// Close implements feed.Stream.
func (s *growingStream) Close() {
	if s.rest != nil {
		s.rest.Close()
	}
}
