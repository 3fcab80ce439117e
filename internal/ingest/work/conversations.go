package work

import (
	"fmt"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// Conversations is what a build needs for them. It is nil in a build without any; else all records are some.
type Conversations struct {
	*chat.Renderer
	Pieces                 *chat.Pieces
	Tokenizer              *tokenize.Tokenizer
	Template, ToolTemplate string // the templates
	Date                   string
}

// Masked reports whether rows have a loss mask.
func (c *Conversations) Masked() bool { return c.TrainOn() != chat.TrainAll }

// LeaseBytes is like job.LeaseBytes, with a place in the mask for each id of a
// conversation. Where it makes a row of each turn, one lies behind those that are kept until it is compared.
func (c *Conversations) LeaseBytes(raw, records int64) int64 {
	text := chat.TextFactor*raw + records*c.OverheadBytes()
	n := raw + (job.WorstIDBytes+1)*text + records*job.RecordBytes
	if c.SplitTurns() {
		n += (job.WorstIDBytes + 1) * text
	}
	if raw > job.TextBytes+job.PieceBytes {
		n += chat.TracedBytes(c.Tokenizer, text) + c.rowBytes(raw, 1)
	}
	return n
}

// rowBytes returns the memory of the rows of turns beside a job: each worker has the last one, and the flusher puts
// one together.
func (c *Conversations) rowBytes(raw, workers int64) int64 {
	if !c.SplitTurns() {
		return 0
	}
	return (workers*job.WorstIDBytes + job.WorstIDBytes + 1) * (chat.TextFactor*raw + c.OverheadBytes())
}

// MemoryShare returns the part of the cap that conversations need.
func (c *Conversations) MemoryShare(workers int64) budget.Share {
	n := c.ScratchBytes(job.PieceBytes)
	traced := chat.TracedBytes(c.Tokenizer, chat.TextFactor*job.PieceBytes)
	return budget.Share{Name: "chat template", Bytes: c.ResidentBytes() + c.Pieces.Bytes() + workers*n + traced +
		c.rowBytes(job.PieceBytes, workers),
		Why: fmt.Sprintf("%d workers' messages and texts, each with %v for what the template computes", workers,
			units.Size(n))}
}

// chatWorker is the part of a worker that handles conversations.
type chatWorker struct {
	render  *chat.Worker
	rows    *example.Worker // reads the rows of CSV
	encoder *chat.Encoder
	text    chat.Text
	like    *job.Conversation // the last one
	clean   []byte

	// Of conversations that make a row of each turn.
	job      *job.Job
	document *job.Document
	row      []uint32 // the last one
	most     int      // ids that the job may have with theirs
	overhead int      // the part of it that a text may have beyond its record
}

func (c *Conversations) newWorker(w *Worker, done <-chan struct{}) *chatWorker {
	cw := &chatWorker{render: c.NewWorker(done), rows: w.formatter, encoder: c.NewEncoder(c.Pieces, w.encoder),
		overhead: int(c.OverheadBytes())}
	if c.SplitTurns() {
		cw.text.Turn = cw.turn
	}
	return cw
}

// format makes the text of a conversation, and the rows of its turns where it is split.
func (w *chatWorker) format(j *job.Job, dst *example.Formatted, d *job.Document, data []byte) error {
	w.job, w.document, w.row = j, d, w.row[:0]
	w.most = len(j.IDs) + chat.TextFactor*len(data) + w.overhead
	d.Turns = job.Span{Start: len(j.Turns), End: len(j.Turns)}
	replaced := 0
	if !wellformed.Valid(data) {
		w.clean, replaced = wellformed.Append(w.clean[:0], data)
		data = w.clean
	}
	w.text.Text = dst.Prompt
	var err error
	if len(d.Columns) == 0 {
		err = w.render.Render(&w.text, data)
	} else if at, bad := w.rows.Row(d.Layout(), data); bad != nil {
		w.text.Text, err = w.text.Text[:0], bad
	} else {
		err = w.render.RenderRow(&w.text, d.Columns, at, len(data))
	}
	dst.Prompt, dst.Target, dst.HasTarget, dst.Replaced = w.text.Text, dst.Target[:0], false, replaced+w.text.Replaced
	if now := (job.Conversation{Shape: w.text.Shape, Noted: w.text.Noted, Losses: w.text.Losses}); !w.like.Equal(&now) {
		w.like = new(now)
	}
	d.Conversation, d.Object, d.Missing = w.like, w.text.Printed, w.text.Missing
	if cap(w.clean) > job.WorstExpansion*job.PieceBytes {
		w.clean = nil
	}
	if cap(w.row) > job.WorstExpansion*(job.TextBytes+job.PieceBytes) {
		w.row = nil
	}
	return err
}

// turn adds the row of a turn to the job.
func (w *chatWorker) turn(text *chat.Text) (err error) {
	j, ids, mask := w.job, len(w.job.IDs), len(w.job.Mask)
	if j.IDs, j.Mask, err = w.encoder.Append(j.IDs, j.Mask, text); err != nil {
		return err
	}
	row, trained := j.IDs[ids:], j.Mask[mask:]
	if len(row) > len(text.Text)+job.SpareIDs {
		return expansion(len(row), text)
	}
	kept := 0
	for kept < min(len(row), len(w.row)) && row[kept] == w.row[kept] && !trained[kept] {
		kept++
	}
	w.row = append(w.row[:0], row...)
	copy(row, row[kept:])
	copy(trained, trained[kept:])
	j.IDs, j.Mask = j.IDs[:len(j.IDs)-kept], j.Mask[:len(j.Mask)-kept]
	if len(j.IDs) > w.most {
		return fault.Of(chat.ErrTooLarge, "the chat template writes what came before anew for each turn, and the rows of its "+
			"turns have more ids than memory is set aside for; split it, or leave {split-turns} out")
	}
	j.Turns = append(j.Turns, job.Turn{Kept: kept, IDs: job.Span{Start: ids, End: len(j.IDs)},
		Mask: job.Span{Start: mask, End: len(j.Mask)}})
	w.document.Turns.End = len(j.Turns)
	return nil
}

// expansion is the error of a text of which the tokenizer makes too many ids.
func expansion(ids int, text *chat.Text) error {
	return fmt.Errorf("%w: the tokenizer makes %d ids of a text of %d bytes", tokenize.ErrExpansion, ids, len(text.Text))
}

// encode tokenizes a text that format made, and marks what is trained on.
func (w *chatWorker) encode(j *job.Job, d *job.Document, text *chat.Text) {
	if w.text.Turn != nil {
		return // its turns are
	}
	ids, mask := job.Span{Start: len(j.IDs)}, job.Span{Start: len(j.Mask)}
	j.IDs, j.Mask, d.Bad = w.encoder.Append(j.IDs, j.Mask, text)
	ids.End, mask.End = len(j.IDs), len(j.Mask)
	if n := ids.End - ids.Start; d.Bad == nil && n > len(text.Text)+job.SpareIDs {
		d.Bad = expansion(n, text)
	}
	d.IDs, d.Mask = ids, mask
}
