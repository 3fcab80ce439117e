package serve

import (
	"io"
	"slices"

	"github.com/dsload/dsload/internal/serve/sampler"
)

// traced describes a packed row by its first piece.
func traced(row sampler.PackedRow, step int64, rank int) TracedRow {
	first := &row.Units[row.Pieces[0].Item]
	return TracedRow{int(first.Source), first.Row, row.Position, step, rank}
}

// Pieces returns what a row is packed from while it is served, nil for other rows. Part and Example
// of the row are those of the first piece.
func (t *Trace) Pieces(row TracedRow) (pieces []TracedPiece, err error) {
	if t.packed == nil {
		return nil, nil
	}
	packed, _, err := t.packed.packed.Row(row.Position)
	for _, p := range packed.Pieces {
		u := &packed.Units[p.Item]
		pieces = append(pieces, TracedPiece{int(u.Source), u.Row, int64(p.From), int64(p.Len), p.Len == u.Length})
	}
	return pieces, err
}

// walk goes through the steps from the query's start until visit returns true. visit gets the
// number of a step, and the numbers of the rows at which it begins and ends.
func (t *Trace) walk(visit func(n, from, to int64) (enough bool, err error)) error {
	steps, err := sampler.NewPackedSteps(t.packed.packed, t.opts)
	if err != nil {
		return err
	}
	for n := int64(0); ; {
		from := steps.Position()
		rows, err := steps.Deal(nil)
		if err != nil {
			return err
		}
		if rows == 0 {
			continue // the end of an epoch, dropped
		}
		if enough, err := visit(n, from, steps.Position()); err != nil || enough {
			return err
		}
		n++
	}
}

// packedStep returns the rows of a step, for one rank, or for all if rank is -1.
func (t *Trace) packedStep(n int64, rank int) (rows []TracedRow, err error) {
	err = t.walk(func(at, from, _ int64) (bool, error) {
		if at < n {
			return false, nil
		}
		rows, err = t.dealtPacked(n, from, func(row *TracedRow) bool { return rank < 0 || row.Rank == rank })
		return true, err
	})
	if err == io.EOF {
		return nil, t.noStep(n)
	}
	return rows, err
}

// dealtPacked returns the rows of the step at a position for which want returns true.
func (t *Trace) dealtPacked(n, position int64, want func(*TracedRow) bool) (rows []TracedRow, err error) {
	o := t.opts
	o.Start = position
	steps, err := sampler.NewPackedSteps(t.packed.packed, o)
	if err != nil {
		return nil, err
	}
	_, err = steps.Deal(func(rank int, row sampler.PackedRow) error {
		if r := traced(row, n, rank); row.Position != sampler.Filler && want(&r) {
			rows = append(rows, r)
		}
		return nil
	})
	return rows, err
}

// packedRow returns the row with a number.
func (t *Trace) packedRow(number int64) (TracedRow, error) {
	row, ok, err := t.packed.packed.Row(number)
	if err != nil {
		return TracedRow{}, err
	}
	if !ok {
		return TracedRow{}, notThere("row", "no row has the number %d: packing leaves some out", number)
	}
	rows, err := t.packedSteps([]TracedRow{traced(row, -1, -1)})
	if err != nil {
		return TracedRow{}, err
	}
	return rows[0], nil
}

// packedWith appends the packed rows that hold tokens of a row of a split, over at most the given
// number of epochs.
func (t *Trace) packedWith(rows []TracedRow, ref sampler.Ref, times int) ([]TracedRow, error) {
	p, order := t.packed.packed, t.packed.base.order
	epoch := t.opts.Start / p.Rows()
	end := t.end() / p.Rows() * order.Rows()
	found, err := order.Find(ref, epoch*order.Rows(), end, times)
	if err != nil {
		return nil, err
	}
	for _, position := range found {
		numbers, err := p.With(position)
		if err != nil {
			return nil, err
		}
		for _, number := range numbers {
			if number < t.opts.Start || slices.ContainsFunc(rows,
				func(r TracedRow) bool { return r.Position == number }) {
				continue
			}
			row, _, err := p.Row(number)
			if err != nil {
				return nil, err
			}
			rows = append(rows, traced(row, -1, -1))
		}
	}
	return rows, nil
}

// packedSteps sets the step and rank of rows, which ascend.
func (t *Trace) packedSteps(rows []TracedRow) ([]TracedRow, error) {
	todo := rows
	for len(todo) > 0 && todo[0].Position < t.opts.Start {
		todo = todo[1:]
	}
	if len(todo) == 0 {
		return rows, nil
	}
	err := t.walk(func(n, from, to int64) (bool, error) {
		for len(todo) > 0 && todo[0].Position < from {
			todo = todo[1:] // dropped
		}
		if len(todo) == 0 || todo[0].Position >= to {
			return len(todo) == 0, nil
		}
		dealt, err := t.dealtPacked(n, from, func(row *TracedRow) bool { return row.Position >= todo[0].Position })
		if err != nil {
			return false, err
		}
		for ; len(todo) > 0 && todo[0].Position < to; todo = todo[1:] {
			for i := range dealt {
				if dealt[i].Position == todo[0].Position {
					todo[0].Step, todo[0].Rank = n, dealt[i].Rank
					break
				}
			}
		}
		return len(todo) == 0, nil
	})
	if err == io.EOF {
		err = nil
	}
	return rows, err
}
