package ingest

import (
	"errors"

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
	m := &rowMaker{b: b, around: around}
	m.cutter, _ = example.NewCutter(b.CutterOptions()) // b.Cutter has the same options: they are right
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
	masked := m.b.Shards.Schema.LossMask
	m.cutter.Begin(0)
	var err error
	if masked {
		err = m.cutter.Masked(ids, d.MaskIn(j), m.emit)
	} else if err = m.cutter.Add(ids, m.emit); err == nil {
		err = m.cutter.End(m.emit)
	}
	n := &m.cutter.Counts.Numbers
	cuts := job.Cuts{Truncated: n.Truncated, Chunked: n.Chunked, LaterRows: n.LaterRows, UntrainedRows: n.UntrainedRows}
	*n = counts.Numbers{}
	if err != nil || len(m.lengths) == 0 { // the flusher's rows have the same error
		m.cutter.Reset()
		return
	}
	loss := len(m.rows) / m.b.Shards.Schema.IDWidth()
	if masked {
		loss = dataset.LossOf(m.mask)
	}
	j.AddRows(i, m.rows, m.lengths, m.mask, loss, cuts)
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
