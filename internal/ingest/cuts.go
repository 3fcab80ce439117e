package ingest

import (
	"errors"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/tokenize"
)

// turnNumbers is how many documents a conversation may be that makes a row of each turn: its turns have consecutive
// numbers from the multiple on, so that those of the next depend on the order of the records alone.
const turnNumbers = 1 << 20

// number returns the number in the dataset of the document, or the first one, that a record makes.
func (b *build) number(ordinal int64) int64 {
	if b.opts.SplitTurns {
		return ordinal * turnNumbers
	}
	return ordinal
}

// turnRows puts the rows of turns together.
type turnRows struct {
	ids  []uint32
	mask []bool
}

// cutTurns makes examples of the turns of a conversation, each a document of its own.
func (f *flusher) cutTurns(t *arrival) error {
	r := &f.turns
	for k, turn := range t.Job.Turns[t.Document.Turns.Start:t.Document.Turns.End] {
		if k > 0 && f.pack != nil {
			f.pack.BeginDocument()
		}
		r.next(t.Job, turn)
		f.cutter.Begin(f.b.number(t.Ordinal) + int64(k))
		if err := f.cutMasked(r.ids, r.mask); err != nil {
			return err
		}
	}
	if cap(r.ids) > job.WorstExpansion*(job.TextBytes+job.PieceBytes) {
		*r = turnRows{}
	}
	return nil
}

// next makes the row of a turn of the one before it.
func (r *turnRows) next(j *job.Job, turn job.Turn) {
	r.ids = append(r.ids[:turn.Kept], j.IDs[turn.IDs.Start:turn.IDs.End]...)
	clear(r.mask[:turn.Kept])
	r.mask = append(r.mask[:turn.Kept], j.Mask[turn.Mask.Start:turn.Mask.End]...)
}

// cutMasked makes examples of a conversation, or of a part of one.
func (f *flusher) cutMasked(ids []uint32, mask []bool) error {
	start, end := f.around.repeated(ids, true, true)
	return f.cutter.Masked(ids[start:len(ids)-end], mask[start:len(mask)-end], f.emit)
}

// around is the special tokens that the cutter writes before and after a text. A text that was rendered earlier may
// have them at its ends: they are written once.
type around struct{ before, after []uint32 }

// newAround returns what the cutter writes next to a text, as far as it is special tokens: other ones may be words.
func newAround(c example.CutterOptions, t *tokenize.Tokenizer) around {
	ordinary := func(id uint32) bool { return !work.IsSpecial(t, id) }
	before, after := slices.Concat(c.RowPrefix, c.Prefix), slices.Concat(c.Suffix, c.RowSuffix)
	for i, id := range slices.Backward(before) {
		if ordinary(id) {
			before = before[i+1:]
			break
		}
	}
	if i := slices.IndexFunc(after, ordinary); i >= 0 {
		after = after[:i]
	}
	return around{before, after}
}

// repeated returns how many ids at the beginning of a text, and at its end, the cutter writes too.
func (a *around) repeated(ids []uint32, first, last bool) (start, end int) {
	if first {
		start = overlap(a.before, ids)
	}
	if last {
		end = overlap(ids[start:], a.after)
	}
	return start, end
}

// overlap returns how many of the last of some ids are the first of others.
func overlap(ids, others []uint32) int {
	n := min(len(ids), len(others))
	for n > 0 && !slices.Equal(ids[len(ids)-n:], others[:n]) {
		n--
	}
	return n
}

// once returns the ids of a text without those that the cutter writes too.
func (a *around) once(ids []uint32, first, last bool) []uint32 {
	start, end := a.repeated(ids, first, last)
	return ids[start : len(ids)-end]
}

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
func (b *build) newRowMaker(around around) work.RowMaker {
	if b.HasTarget() || b.scan != nil || b.Chat != nil && b.Chat.SplitTurns() {
		return nil
	}
	o := b.CutterOptions()
	m := &rowMaker{b: b, around: around, before: slices.Concat(o.RowPrefix, o.Prefix), after: slices.Concat(o.Suffix, o.RowSuffix)}
	m.cutter, _ = example.NewCutter(o) // b.Cutter has the same options: they are right
	m.emit = m.add
	return m
}

// Room returns how many ids more than those of a text its rows may take: what the cutter writes around each of them.
func (m *rowMaker) Room(ids int) int {
	around := len(m.before) + len(m.after)
	rows := 1 + ids/max(1, m.b.opts.MaxLength-around)
	return min(job.SpareIDs, rows*around*m.b.Shards.Schema.IDWidth()/job.WorstIDBytes)
}

// Make leaves a document to the flusher whose rows take more room than its ids, and one that makes none.
func (m *rowMaker) Make(j *job.Job, i int) {
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
		if len(part) == 0 {
			continue // few texts have ids before or after them
		}
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

func (m *rowMaker) add(ex *example.Example) (err error) {
	if len(m.rows) > job.WorstIDBytes*maxMadeTokens { // special tokens of many rows
		return errNoRoom
	}
	m.rows, err = dataset.AppendIDs(m.rows, ex.InputIDs, m.b.Shards.Schema)
	m.lengths, m.mask = append(m.lengths, int32(len(ex.InputIDs))), append(m.mask, ex.LossMask...)
	return err
}
