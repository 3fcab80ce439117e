package ingest

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/rows"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/uris"
)

// arrival is a document, or one piece of one, on its way through the rules.
type arrival struct {
	*job.Job
	*job.Document
	text  []uint32 // its ids
	made  bool     // a worker has made its rows in their place
	bytes int64    // the text's length
	last  bool     // nothing of the document follows
}

// rules judge a document in turn and count it. The first one that does not keep it is the last one to see it.
var rules = []func(*flusher, *arrival) (keep bool, err error){
	(*flusher).drop, (*flusher).keepToBytes, (*flusher).route, (*flusher).keepWanted, (*flusher).noteKept}

// document takes one document, or one piece of one, in order.
func (f *flusher) document(j *job.Job, d *job.Document) error {
	t := &f.arrival // reused, since rules are values that it would escape to
	t.Job, t.Document, t.text, t.bytes, t.last = j, d, j.IDs[d.IDs.Start:d.IDs.End], d.TextBytes, d.Last
	t.made = d.Made.Rows.End > 0
	for _, rule := range rules {
		if keep, err := rule(f, t); !keep || err != nil {
			return err
		}
	}
	if t.made {
		return f.emitMade(j, d)
	}
	return f.cut(f, t)
}

// emitMade writes the rows that a worker made of a document, as the cutter would.
func (f *flusher) emitMade(j *job.Job, d *job.Document) error {
	f.countCuts(&d.Made.Cuts)
	ex, data, mask, schema := &f.made, d.Made.RowBytes(j), d.Made.RowMask(j), &f.b.Shards.Schema
	for i := d.Made.Rows.Start; i < d.Made.Rows.End; i++ {
		ex.Length, ex.Document, ex.Part = int(j.Lengths[i]), f.b.number(d.Ordinal), j.Parts[i]
		ex.Row, data = data[:ex.Length*schema.IDWidth()], data[ex.Length*schema.IDWidth():]
		if schema.LossMask {
			ex.LossMask, mask = mask[:ex.Length], mask[ex.Length:]
		}
		if err := f.emitExample(ex); err != nil {
			return err
		}
	}
	return nil
}

// countCuts counts what the cutter of a worker did to documents.
func (f *flusher) countCuts(c *job.Cuts) {
	s := &f.state
	s.Truncated += c.Truncated
	s.Chunked += c.Chunked
	s.LaterRows += c.LaterRows
	s.UntrainedRows += c.UntrainedRows
}

// tokens returns how many tokens its text has. A conversation that is split has them in its turns.
func (t *arrival) tokens() int {
	n := len(t.text) + t.Target.End - t.Target.Start
	for _, turn := range t.Job.Turns[t.Document.Turns.Start:t.Document.Turns.End] {
		n += turn.IDs.End - turn.IDs.Start
	}
	return n
}

// keepToBytes cuts the text to what the budget of bytes leaves.
func (f *flusher) keepToBytes(t *arrival) (keep bool, err error) {
	left := f.b.opts.MaxBytes - f.state.TextBytes
	if f.b.opts.MaxBytes == 0 || t.bytes < left {
		return true, nil
	}
	f.stopped = "max-bytes"
	if t.bytes == left {
		return true, nil
	}
	f.cutBy(f.stopped)
	t.last, t.made = true, false
	if t.text, t.bytes = nil, 0; f.b.kind() == report.Texts { // a pair of prompt and target, or a conversation, is left out
		w := f.b.newWorker(setup.TailCacheBytes) // once in a build
		w.Begin(f.b.Phases[f.state.Phase].Formatter, true, nil)
		t.text, t.bytes, err = w.Beginning(t.Document, t.Job.Raw[t.Document.Raw.Start:t.Document.Raw.End], int(left))
	}
	return t.bytes > 0 || !t.First, err
}

// route chooses the split of a document at its first piece, and counts it.
func (f *flusher) route(t *arrival) (keep bool, err error) {
	s := &f.state
	if t.First {
		s.Verdict = f.split(t.Hash)
		if isEmpty := t.last && t.bytes == 0; s.Verdict == heldout.ToNeither && !isEmpty { // which is counted as such
			s.Copies++
		}
		f.begin(t.Document, f.b.number(t.Ordinal), 1)
		if !t.made {
			f.cutter.Begin(f.b.number(t.Ordinal))
		}
	}
	s.TextBytes += t.bytes
	switch s.Verdict {
	case heldout.ToTrain:
		s.Sources.Text(rows.Train, t.bytes, t.tokens())
	case heldout.ToVal:
		s.Sources.Text(rows.Val, t.bytes, t.tokens())
	}
	if s.Replaced += t.Replaced; t.Replaced > 0 {
		f.noteReplaced(t.Job, t.Document)
	}
	if t.Forced {
		s.ForcedCuts++
	}
	return true, nil
}

// begin counts n documents like d, the first of which has a number.
func (f *flusher) begin(d *job.Document, number, n int64) {
	s := &f.state
	s.Documents += n
	s.ColumnNulls += n * int64(d.Nulls)
	if d.Conversation != nil {
		f.countChat(d, n)
	}
	if d.Field != "" {
		s.CountField(d.Field, n)
	}
	if d.Looks != (job.Looks{}) {
		for _, c := range []struct {
			is bool
			of *int64
		}{{d.Rendered, &s.Rendered}, {d.Foreign, &s.Foreign}, {d.Markup, &s.Markup}, {d.Object, &s.Objects},
			{d.Separator, &s.Separators}, {d.Missing, &s.Missing}} {
			if c.is {
				*c.of += n
			}
		}
	}
	if f.pack != nil {
		f.pack.BeginDocument()
	}
	s.Sources.Enter(s.Phase, d.Input, number, f.b.Phases[s.Phase].Set.LineURI)
}

// keepWanted leaves out documents from which no row is made.
func (f *flusher) keepWanted(*arrival) (keep bool, err error) {
	s := &f.state
	if f.b.scan != nil && (s.Phase == setup.Val || s.Verdict != heldout.ToVal) { // it decides nothing of later ones
		return false, nil
	}
	if s.Verdict == heldout.ToTrain && s.TrainFull {
		f.cutBy("max-examples")
		return false, nil
	}
	return true, nil
}

// A cut makes examples of a document.
type cut func(*flusher, *arrival) error

// cut returns the cut of the documents of this build, which are all of one kind.
func (b *build) cut() cut {
	switch {
	case b.Chat != nil && b.Chat.SplitTurns():
		return (*flusher).cutTurns
	case b.Chat != nil && b.Chat.Masked():
		return func(f *flusher, t *arrival) error {
			return f.cutMasked(t.text, t.MaskIn(t.Job))
		}
	case b.HasTarget() && b.opts.CausalPairs:
		return func(f *flusher, t *arrival) error {
			return f.cutter.CausalPair(f.around.once(t.text, true, false), f.around.once(t.targetIDs(), false, true), f.emit)
		}
	case b.HasTarget():
		return func(f *flusher, t *arrival) error {
			return f.cutter.Pair(f.around.once(t.text, true, true), f.around.once(t.targetIDs(), true, true), f.emit)
		}
	}
	return func(f *flusher, t *arrival) error {
		if err := f.cutter.Add(f.around.once(t.text, t.First, t.last), f.emit); err != nil || !t.last {
			return err
		}
		return f.cutter.End(f.emit)
	}
}

func (t *arrival) targetIDs() []uint32 { return t.Job.IDs[t.Target.Start:t.Target.End] }

// noteKept counts the fields that nothing used of a document of which rows are made, and a line, or a piece of one.
func (f *flusher) noteKept(t *arrival) (keep bool, err error) {
	f.unused.add(t.Job, t.Document.Unused, 1)
	f.noteShared(t.Document)
	n := int64(0)
	if t.First {
		n = 1
	}
	f.noteLines(t.Document, n, int64(len(t.text)), t.bytes)
	return true, nil
}

// noteLines counts n documents, and text of them, that may have been taken for lines of text.
func (f *flusher) noteLines(d *job.Document, n, tokens, textBytes int64) {
	o, s := f.b.opts.Format, &f.state
	if d.Format != source.Text || o != source.Auto && o != source.Tar || s.Verdict == heldout.ToNeither {
		return
	}
	if s.Lines.Documents == 0 {
		s.Lines.Before = [2]int64{s.Train, s.Val}
	}
	s.Lines.Documents += n
	s.Lines.Tokens += tokens
	s.Lines.Bytes += textBytes
}

// noteReplaced keeps what the ill-formed parts of a record look like.
func (f *flusher) noteReplaced(j *job.Job, d *job.Document) {
	s := &f.state
	if s.IllFormed.First == "" {
		set := f.b.Phases[s.Phase].Set
		s.IllFormed = report.IllFormed{First: uris.Shown(set.URI(d.Input)), Row: d.Row}
		if in, err := set.Input(d.Input); err == nil && d.Member == "" && in.IsPlainFile() {
			s.IllFormed.Iconv = in.URI
		}
	}
	s.IllFormed.Add(j.Raw[d.Raw.Start:d.Raw.End])
}

// reject counts a bad record and lists the first of them, or ends the build with it.
func (f *flusher) reject(d *job.Document, cause error) error {
	uri := f.b.Phases[f.state.Phase].Set.URI(d.Input)
	switch answered := d.Mapped && d.Err == nil; {
	case answered && errors.Is(cause, example.ErrMalformed):
		cause = fault.Errorf("in the answer of {map}, which must be one line of JSON, as jq -c writes it: %w", cause)
	case answered:
		cause = fault.Errorf("in the answer of {map}: %w", cause)
	}
	var located *source.RecordError
	if !errors.As(cause, &located) {
		located = &source.RecordError{URI: uri, Input: d.Input, Row: d.Row, Offset: d.Offset, Member: d.Member,
			Cause: cause}
	}
	if f.b.opts.OnBadRecord != option.SkipBadRecord {
		return located
	}
	s := &f.state
	s.Rejected += max(1, d.Rows)
	f.noteDamage(d.Input, located)
	if field := (*example.FieldError)(nil); errors.As(cause, &field) {
		advice.Pair(field)
	}
	s.Bad.Add(report.Reject{Source: uri, Row: located.Row, Offset: located.Offset, Member: located.Member,
		Reason: located.Cause.Error(), Records: max(1, d.Rows)})
	if !d.First { // earlier pieces were written, and stay
		return f.cutter.End(f.emit)
	}
	f.read(d).Bad += max(1, d.Rows)
	return nil
}
