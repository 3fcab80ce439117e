package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/tokenize"
)

// chats is what a build needs for conversations. It is nil in a build without them.
type chats struct {
	*chat.Renderer
	pieces       *chat.Pieces
	tokenizer    *tokenize.Tokenizer
	plain, tools string // the templates
	date         string
}

// openChat finds the chat template where the inputs hold conversations.
func (b *build) openChat(ctx context.Context) error {
	o := &b.opts
	inputs, all := 0, 0
	for _, p := range b.phases {
		inputs, all = inputs+p.set.Formats()[source.Chat], all+p.set.Len()
	}
	if inputs == 0 && o.Format != source.Chat {
		return b.refuseChatOptions()
	}
	if inputs < all && o.Format != source.Chat {
		return fault.BadOption("format", string(o.Format),
			"%d of %d inputs hold conversations and the others do not; "+
				"build them separately, or read all of them as {format} chat or {format} jsonl", inputs, all)
	}
	if o.CausalPairs {
		return fault.BadOption("causal-pairs", nil,
			"the inputs hold conversations, whose loss mask comes from their roles; leave the option out")
	}
	if o.Format != source.Chat {
		b.notice("the records are conversations, read as {format} chat; " +
			"{format} jsonl with {text-field} or {template} reads them otherwise")
	}
	if err := b.openRenderer(); err != nil && o.Format != source.Chat {
		return fault.Advise(err, "the records hold conversations, as lists of messages or ShareGPT's; "+
			"{format} jsonl with {text-field} or {template} reads them otherwise")
	} else if err != nil {
		return err
	}
	if o.EOS == "" { // packed or not, the template writes the end of a conversation
		o.EOS = option.NoToken
	}
	return b.openCutter(ctx)
}

// refuseChatOptions refuses options about conversations where there are none.
func (b *build) refuseChatOptions() error {
	o := &b.opts
	for _, option := range []struct {
		name  fault.Option
		value string
		given bool
	}{
		{"chat-template", o.ChatTemplate, o.ChatTemplate != ""}, {"date", o.Date, o.Date != ""},
		{"train-on", string(o.TrainOn), o.TrainOn != chat.TrainAssistant},
	} {
		if option.given {
			return fault.BadOption(option.name, option.value,
				"no conversations were found in the sources; if they hold some, give {format} chat")
		}
	}
	return nil
}

func (b *build) openRenderer() error {
	o := &b.opts
	r, c, err := chat.OpenRenderer(b.tokenizer, o.Tokenizer, o.ChatTemplate, o.TrainOn, o.Date)
	if err != nil {
		return err
	}
	b.chat = &chats{Renderer: r, pieces: r.NewPieces(b.tokenizer), tokenizer: b.tokenizer,
		plain: c.Template, tools: c.ToolTemplate}
	if r.UsesDate() {
		if b.chat.date = o.Date; o.Date == "" {
			return fault.BadOption("date", nil,
				"the chat template writes today's date, and what is built must not depend on the day; "+
					"give one, such as {date} %s", o.Now().Format(time.DateOnly))
		}
	}
	return nil
}

// masked reports whether rows have a loss mask.
func (c *chats) masked() bool { return c.TrainOn() != chat.TrainAll }

// leaseBytes is like the function leaseBytes, with a place in the mask for each id of a
// conversation.
func (c *chats) leaseBytes(raw, records int64) int64 {
	text := chat.TextFactor*raw + records*c.OverheadBytes()
	n := raw + (worstIDBytes+1)*text + records*recordBytes
	if raw > jobTextBytes+pieceBytes {
		n += chat.TracedBytes(c.tokenizer, text)
	}
	return n
}

// memoryShare returns the part of the cap that conversations need.
func (c *chats) memoryShare(workers int64) budget.Share {
	n := c.ScratchBytes(pieceBytes)
	traced := chat.TracedBytes(c.tokenizer, chat.TextFactor*pieceBytes)
	return budget.Share{Name: "chat template", Bytes: c.ResidentBytes() + c.pieces.Bytes() + workers*n + traced,
		Why: fmt.Sprintf("%d workers' messages and texts, each with %dKiB for what the template computes", workers,
			n>>10)}
}

// chatWorker is the part of a worker that handles conversations.
type chatWorker struct {
	all     bool // the inputs hold nothing else
	render  *chat.Worker
	rows    *example.Worker // reads the rows of CSV
	encoder *chat.Encoder
	text    chat.Text
	clean   []byte
}

func (c *chats) newWorker(b *build, w *worker, done <-chan struct{}) *chatWorker {
	return &chatWorker{all: b.opts.Format == source.Chat, render: c.NewWorker(done), rows: w.formatter,
		encoder: c.NewEncoder(c.pieces, w.encoder)}
}

// takes reports whether a document is a conversation.
func (w *chatWorker) takes(d *document) bool { return w.all || d.Format == source.Chat }

// format makes the text of a conversation.
func (w *chatWorker) format(dst *example.Formatted, d *document, data []byte) error {
	replaced := 0
	if !tokenize.Valid(data) {
		w.clean, replaced = tokenize.AppendValid(w.clean[:0], data)
		data = w.clean
	}
	w.text.Text = dst.Prompt
	var err error
	if len(d.Columns) == 0 {
		err = w.render.Render(&w.text, data)
	} else if at, bad := w.rows.Row(d.record(), data); bad != nil {
		w.text.Text, err = w.text.Text[:0], bad
	} else {
		err = w.render.RenderRow(&w.text, d.Columns, at, len(data))
	}
	dst.Prompt, dst.Target, dst.HasTarget, dst.Replaced = w.text.Text, dst.Target[:0], false, replaced+w.text.Replaced
	d.shape, d.unfound, d.firstUnfound = w.text.Shape, w.text.Unfound, w.text.FirstUnfound
	d.toolsLeftOut = w.text.ToolsLeftOut
	if errors.Is(err, chat.ErrStopped) {
		return example.ErrStopped
	}
	if cap(w.clean) > worstExpansion*pieceBytes {
		w.clean = nil
	}
	return err
}

// encode tokenizes the text that format made, and marks what is trained on.
func (w *chatWorker) encode(j *job, d *document) {
	ids, mask := span{start: len(j.ids)}, span{start: len(j.mask)}
	j.ids, j.mask, d.err = w.encoder.Append(j.ids, j.mask, &w.text)
	ids.end, mask.end = len(j.ids), len(j.mask)
	if n := ids.end - ids.start; d.err == nil && n > len(w.text.Text)+spareIDs {
		d.err = fmt.Errorf("%w: the tokenizer makes %d ids of a text of %d bytes", tokenize.ErrExpansion, n,
			len(w.text.Text))
	}
	d.ids, d.mask = ids, mask
	w.text.Text = nil // it is the worker's
}

// whyUntrained returns what to do if no conversation has a token that is trained on. unfound is the number of
// turns to train on that the template did not write.
func (c *chats) whyUntrained(unfound int64) fault.Text {
	if c.HasGeneration() {
		return fault.Textf("the {%% generation %%} blocks of the chat template, which mark what the assistant says, " +
			"were reached by no record; give another {chat-template}, or {train-on} all")
	}
	if unfound == 0 {
		return fault.Textf("no conversation has a turn of the role assistant with content, so that no token is trained " +
			"on; give the turns to learn that role, as with {map}, or pass {train-on} all")
	}
	return fault.Textf("the chat template writes no turn of the role assistant, so that no token is trained on; " +
		"give another {chat-template}, or {train-on} all")
}

// countChat counts a conversation by its shape, and what the template did not write of it.
func (f *flusher) countChat(d *document) {
	s := &f.state
	if d.shape != "" {
		s.CountShape(string(d.shape))
	}
	if d.toolsLeftOut {
		s.ToolsLeftOut++
	}
	if d.unfound == 0 {
		return
	}
	if s.Unfound.Conversations == 0 {
		uri := f.b.phases[s.Phase].set.URI(d.Input)
		if d.Member != "" {
			uri += ", member " + d.Member
		}
		s.Unfound.First = fmt.Sprintf("message %d of %s, row %d", d.firstUnfound, uri, d.Row)
	}
	s.UnfoundTurns += int64(d.unfound)
	s.Unfound.Conversations++
}
