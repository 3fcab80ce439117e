package ingest

import (
	"slices"

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
