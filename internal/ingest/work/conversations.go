package work

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/tokenize"
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
// conversation.
func (c *Conversations) LeaseBytes(raw, records int64) int64 {
	text := chat.TextFactor*raw + records*c.OverheadBytes()
	n := raw + (job.WorstIDBytes+1)*text + records*job.RecordBytes
	if raw > job.TextBytes+job.PieceBytes {
		n += chat.TracedBytes(c.Tokenizer, text)
	}
	return n
}

// MemoryShare returns the part of the cap that conversations need.
func (c *Conversations) MemoryShare(workers int64) budget.Share {
	n := c.ScratchBytes(job.PieceBytes)
	traced := chat.TracedBytes(c.Tokenizer, chat.TextFactor*job.PieceBytes)
	return budget.Share{Name: "chat template", Bytes: c.ResidentBytes() + c.Pieces.Bytes() + workers*n + traced,
		Why: fmt.Sprintf("%d workers' messages and texts, each with %v for what the template computes", workers,
			units.Size(n))}
}

// chatWorker is the part of a worker that handles conversations.
type chatWorker struct {
	render  *chat.Worker
	rows    *example.Worker // reads the rows of CSV
	encoder *chat.Encoder
	text    chat.Text
	clean   []byte
}

func (c *Conversations) newWorker(w *Worker, done <-chan struct{}) *chatWorker {
	return &chatWorker{render: c.NewWorker(done), rows: w.formatter,
		encoder: c.NewEncoder(c.Pieces, w.encoder)}
}

// format makes the text of a conversation.
func (w *chatWorker) format(dst *example.Formatted, d *job.Document, data []byte) error {
	replaced := 0
	if !tokenize.Valid(data) {
		w.clean, replaced = tokenize.AppendValid(w.clean[:0], data)
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
	d.Shape, d.Noted, d.Losses = w.text.Shape, w.text.Noted, w.text.Losses
	d.ReasoningDropped = w.text.ReasoningDropped
	if errors.Is(err, chat.ErrStopped) {
		return example.ErrStopped
	}
	if cap(w.clean) > job.WorstExpansion*job.PieceBytes {
		w.clean = nil
	}
	return err
}

// noteUnread notes the fields of the last conversation that neither the template nor anything else has read.
func (w *chatWorker) noteUnread(u *example.Unused) {
	u.Begin()
	for _, name := range w.text.Unread {
		u.Field([]byte(name), true)
	}
	for _, name := range w.text.UnreadOfMessages {
		u.OfMessage(name)
	}
}

// encode tokenizes the text that format made, and marks what is trained on.
func (w *chatWorker) encode(j *job.Job, d *job.Document) {
	ids, mask := job.Span{Start: len(j.IDs)}, job.Span{Start: len(j.Mask)}
	j.IDs, j.Mask, d.Bad = w.encoder.Append(j.IDs, j.Mask, &w.text)
	ids.End, mask.End = len(j.IDs), len(j.Mask)
	if n := ids.End - ids.Start; d.Bad == nil && n > len(w.text.Text)+job.SpareIDs {
		d.Bad = fmt.Errorf("%w: the tokenizer makes %d ids of a text of %d bytes", tokenize.ErrExpansion, n,
			len(w.text.Text))
	}
	d.IDs, d.Mask = ids, mask
	w.text.Text = nil // it is the worker's
}
