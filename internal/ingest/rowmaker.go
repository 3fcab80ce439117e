package ingest

import (
	"errors"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/job"
)

// maxMadeTokens bounds the tokens of the rows that a worker makes of a document, and so its scratch.
const maxMadeTokens = 8 << 10

var errNoRoom = errors.New("rows take more room than ids")

// A rowMaker makes, in a worker, the rows of whole documents that the flusher's cutter would make. What is made of later
// pieces of a document, and of pairs, depends on more, and is left to the flusher.
type rowMaker struct {
	b      *build
	around around
	before []uint32 // what the cutter writes around a text of one row
	after  []uint32
	cutter *example.Cutter
	emit   func(*example.Example) error

	// Of the document at hand.
	rows    []byte
	lengths []int32
	mask    []bool
}

// newRowMaker returns what makes rows of a document of a job, nil where the flusher makes all.
func (b *build) newRowMaker(around around) func(j *job.Job, document int) {
	if b.HasTarget() || b.scan != nil || b.Chat != nil && b.Chat.SplitTurns() {
		return nil
	}
	o := b.CutterOptions()
	m := &rowMaker{b: b, around: around, before: slices.Concat(o.RowPrefix, o.Prefix), after: slices.Concat(o.Suffix, o.RowSuffix)}
	m.cutter, _ = example.NewCutter(o) // b.Cutter has the same options: they are right
	m.emit = m.add
	return m.make
}

// make leaves a document to the flusher whose rows take more room than its ids, and one that makes none.
func (m *rowMaker) make(j *job.Job, i int) {
	d := &j.Documents[i]
	ids := j.IDs[d.IDs.Start:d.IDs.End]
	if start, end := m.around.repeated(ids, true, true); len(ids) == 0 || len(ids) > maxMadeTokens || start+end > 0 {
		return
	}
	m.rows, m.lengths, m.mask = m.rows[:0], m.lengths[:0], m.mask[:0]
	schema, mask := &m.b.Shards.Schema, d.MaskIn(j)
	var cuts job.Cuts
	var err error
	if fits := len(m.before)+len(ids)+len(m.after) <= m.b.opts.MaxLength; fits && !schema.LossMask {
		err = m.whole(ids)
	} else {
		cuts, err = m.cut(ids, mask, schema.LossMask)
	}
	if err != nil || len(m.lengths) == 0 { // the flusher's rows have the same error
		return
	}
	loss := len(m.rows) / schema.IDWidth()
	if schema.LossMask {
		loss = dataset.LossOf(m.mask)
	}
	j.AddRows(i, m.rows, m.lengths, m.mask, loss, cuts)
}

// whole makes the row of a text without a mask that fits one: most do, and need no cutter.
func (m *rowMaker) whole(ids []uint32) (err error) {
	m.lengths = append(m.lengths, int32(len(m.before)+len(ids)+len(m.after)))
	for _, part := range [...][]uint32{m.before, ids, m.after} {
		if m.rows, err = dataset.AppendIDs(m.rows, part, m.b.Shards.Schema); err != nil {
			return err
		}
	}
	return nil
}

// cut makes the rows of a text as the flusher's cutter would.
func (m *rowMaker) cut(ids []uint32, mask []bool, masked bool) (cuts job.Cuts, err error) {
	m.cutter.Begin(0)
	if masked {
		err = m.cutter.Masked(ids, mask, m.emit)
	} else if err = m.cutter.Add(ids, m.emit); err == nil {
		err = m.cutter.End(m.emit)
	}
	n := &m.cutter.Counts.Numbers
	cuts = job.Cuts{Truncated: n.Truncated, Chunked: n.Chunked, LaterRows: n.LaterRows, UntrainedRows: n.UntrainedRows}
	*n = counts.Numbers{}
	if err != nil {
		m.cutter.Reset()
	}
	return cuts, err
}

// add adds a row.
func (m *rowMaker) add(ex *example.Example) (err error) {
	if len(m.rows) > job.WorstIDBytes*maxMadeTokens { // special tokens of many rows
		return errNoRoom
	}
	m.rows, err = dataset.AppendIDs(m.rows, ex.InputIDs, m.b.Shards.Schema)
	m.lengths, m.mask = append(m.lengths, int32(len(ex.InputIDs))), append(m.mask, ex.LossMask...)
	return err
}
