package serve

import (
	"fmt"
	"io"
	"net/http"

	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// A Trace maps the batches of a query to the rows that they are made of, and rows to batches. It
// reads only the rows asked for, and belongs to one goroutine.
//
// Rows that are packed while they are served are packed again, window by window: to find a step, it
// goes through all steps before it, and reads the lengths of all their rows.
type Trace struct {
	query  feed.Query
	stream *rowStream // for packed rows, their base
	packed *packedStream
	opts   sampler.StepOptions
}

// A TracedRow is a row of the order.
type TracedRow struct {
	Member   int   // the number of its dataset among Datasets
	Example  int64 // its place in the split
	Position int64 // in the order, as the column row
	Step     int64 // counted from the query's start; -1 if it is in none, or where that takes more than arithmetic
	Rank     int   // -1 with Step
}

// A TracedPiece is a part of a row that is packed while it is served: a run of tokens of a row of a
// split.
type TracedPiece struct {
	Member       int
	Example      int64
	From, Tokens int64 // the first token of the run, and how many it has
	Whole        bool  // it is the complete row
}

// Trace returns a trace of the batches that q asks for. The rank of q is not used: calls name one.
func (r *Reader) Trace(q feed.Query) (*Trace, error) {
	c, err := r.choose(q)
	if err != nil {
		return nil, err
	}
	c.steps.Rank = 0
	t := &Trace{query: c.query, opts: c.steps}
	if t.stream, t.packed, err = r.newStream(c); err != nil {
		return nil, err
	}
	t.stream.stopped = func() error { return nil }
	return t, nil
}

// Rows returns the number of rows of an epoch.
func (t *Trace) Rows() int64 {
	if t.packed != nil {
		return t.packed.packed.Rows()
	}
	return t.stream.order.Rows()
}

// Dataset returns the name, the folder and the open dataset of a member.
func (t *Trace) Dataset(member int) (name, dir string, d *shard.Dataset) {
	found := t.stream.members[member].dataset
	return found.name, found.dir, found.shards
}

// Members returns the number of datasets.
func (t *Trace) Members() int { return len(t.stream.members) }

// Split returns the rows of a member.
func (t *Trace) Split(member int) *shard.Split { return t.stream.members[member].split }

// notThere returns the error for something that the query does not have.
func notThere(param, format string, args ...any) error {
	return &feed.ParamError{Status: http.StatusNotFound, Param: param, Reason: fmt.Sprintf(format, args...)}
}

// noStep returns the error for a step after the last one.
func (t *Trace) noStep(n int64) error {
	return notThere("step", "the stream ends before step %d: it has %s of %d rows", n,
		units.Plural(t.query.Epochs, "epoch"), t.Rows())
}

// Step returns the rows of a step, for one rank, or for all if rank is -1.
func (t *Trace) Step(n int64, rank int) ([]TracedRow, error) {
	if t.packed != nil {
		return t.packedStep(n, rank)
	}
	err := t.stream.steps.GoTo(n)
	if err == io.EOF {
		return nil, t.noStep(n)
	}
	if err != nil {
		return nil, err
	}
	return t.dealt(n, t.stream.steps.Position(), rank)
}

// dealt returns the rows of the step that begins at a position.
func (t *Trace) dealt(n, position int64, rank int) (rows []TracedRow, err error) {
	from, to := rank, rank+1
	if rank < 0 {
		from, to = 0, t.opts.World
	}
	o := t.opts
	o.Start = position
	for o.Rank = from; o.Rank < to; o.Rank++ {
		steps, err := sampler.NewSteps(t.stream.order, o)
		if err != nil {
			return nil, err
		}
		var b sampler.Batch
		if err := steps.Deal(&b); err != nil {
			return nil, err
		}
		for _, it := range b.Items {
			if it.Position == sampler.Filler {
				continue
			}
			rows = append(rows, TracedRow{int(it.Source), it.Row, it.Position, n, o.Rank})
		}
	}
	return rows, nil
}

// Row returns the row at a position of the order.
func (t *Trace) Row(position int64) (TracedRow, error) {
	if end := t.end(); position < 0 || position >= end {
		return TracedRow{}, notThere("row", "%d lies outside the %d rows of %s", position, end,
			units.Plural(t.query.Epochs, "epoch"))
	}
	if t.packed != nil {
		return t.packedRow(position)
	}
	items, err := t.stream.order.Append(nil, position, 1)
	if err != nil {
		return TracedRow{}, err
	}
	return t.located(TracedRow{Member: int(items[0].Source), Example: items[0].Row, Position: position})
}

// end returns the position after the last row of the query.
func (t *Trace) end() int64 {
	if rows := t.Rows(); t.query.Epochs > 0 && t.query.Epochs <= sampler.MaxPosition/rows {
		return t.query.Epochs * rows
	}
	return sampler.MaxPosition
}

// located returns a row with its step and rank.
func (t *Trace) located(row TracedRow) (TracedRow, error) {
	row.Step, row.Rank = -1, -1
	n, start, ok := t.stream.steps.Number(row.Position)
	if !ok {
		return row, nil
	}
	if t.opts.Balance == sampler.NoBalance && t.opts.Tail != sampler.Once {
		row.Step, row.Rank = n, int((row.Position-start)/int64(t.opts.BatchRows))
		return row, nil
	}
	dealt, err := t.dealt(n, start, -1)
	for _, r := range dealt {
		if r.Position == row.Position {
			row.Step, row.Rank = n, r.Rank
			break
		}
	}
	return row, err
}

// maxTimes is the maximum number of places that Document lists for one example.
const maxTimes = 100
