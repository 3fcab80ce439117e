package work

import (
	"cmp"
	"fmt"

	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/tokenize"
)

// A worker makes the texts of some documents before it encodes any of them: the code for both is more than a processor
// has room for next to it, and documents in turns would fetch it anew each time.

const (
	// maxWaiting is how many texts may wait, and usualTexts and usualSpans the room for them that a worker begins with.
	maxWaiting = 64
	usualTexts = job.TextBytes
	usualSpans = 256
)

// waiting is a text that has no ids yet.
type waiting struct {
	document       int // in Job.Documents
	prompt, target []byte
	hasTarget      bool
	spans          []chat.Span // of a conversation
	exact          bool
}

// queue is the memory of texts that wait, or of their spans, back to back. What turns out to be longer than the rest of
// it has memory of its own, which takes its place if it is larger.
type queue[T any] struct{ used []T }

// has reports whether there is room for n more.
func (q *queue[T]) has(n int) bool { return n <= cap(q.used)-len(q.used) }

// rest returns where the next text is to be appended, at first in a queue of the usual size.
func (q *queue[T]) rest(usual int) []T {
	if cap(q.used) == 0 {
		q.used = make([]T, 0, usual)
	}
	return q.used[len(q.used):]
}

// keep keeps a text that was appended to rest, and reports whether there was room for it.
func (q *queue[T]) keep(text []T) bool {
	switch {
	case cap(text) == cap(q.used)-len(q.used):
		q.used = q.used[:len(q.used)+len(text)]
		return true
	case cap(text) > cap(q.used):
		q.used = text
	}
	return false
}

// makeRoom encodes the texts that wait if there is no room for that of a record of size bytes.
func (w *Worker) makeRoom(j *job.Job, size int) {
	if !w.prompts.has(size) || w.pairs && !w.targets.has(size) {
		w.encodeTexts(j)
	}
	w.scratch.Prompt = w.prompts.rest(usualTexts)
	if w.pairs {
		w.scratch.Target = w.targets.rest(usualTexts)
	}
	if w.chat != nil {
		w.chat.text.Spans = w.spans.rest(usualSpans)
	}
}

// wait has the text at hand, that of document i, wait until it is encoded.
func (w *Worker) wait(j *job.Job, i int) {
	f, next := w.text, waiting{document: i}
	next.prompt, next.target, next.hasTarget = f.Prompt, f.Target, f.HasTarget
	full := len(w.waiting) == maxWaiting-1
	if f == &w.scratch {
		full = !w.prompts.keep(f.Prompt) || full
		full = f.HasTarget && !w.targets.keep(f.Target) || full
	}
	if w.chat != nil {
		next.spans, next.exact = w.chat.text.Spans, w.chat.text.Exact
		w.spans.keep(next.spans)
	}
	if w.waiting = append(w.waiting, next); full {
		w.encodeTexts(j)
	}
}

// encodeTexts makes ids of all texts that wait.
func (w *Worker) encodeTexts(j *job.Job) {
	for i := range w.waiting {
		t := &w.waiting[i]
		d := &j.Documents[t.document]
		if w.chat != nil {
			w.chat.encode(j, d, &chat.Text{Text: t.prompt, Spans: t.spans, Exact: t.exact})
			w.leaveRoom(j, d)
			continue
		}
		if d.First {
			d.Rendered, d.Foreign = w.rendered(t.prompt)
			d.Separator = d.Rendered && isToken(t.prompt)
			d.Markup = IsMarkup(t.prompt)
			d.Missing = d.Last && (values.IsMissing(t.prompt) || t.hasTarget && values.IsMissing(t.target))
			if w.AsIs {
				d.Object = d.Last && values.IsObject(t.prompt)
			}
		}
		w.texts = append(w.texts, tokenize.Text{Bytes: t.prompt, Piece: tokenize.Piece{First: d.First, Last: d.Last}})
		if t.hasTarget {
			// A target in one row with its prompt does not begin a text: the tokenizer puts no
			// leading space before it.
			w.texts = append(w.texts, tokenize.Text{Bytes: t.target, Piece: tokenize.Piece{First: !w.CausalPairs, Last: true}})
		}
	}
	w.encodeEach(j)
	w.forgetTexts()
}

// encodeEach makes the ids of prompts, each of which its target follows where it has one.
func (w *Worker) encodeEach(j *job.Job) {
	next, target := 0, false
	w.encoder.AppendEach(j.IDs, w.texts, func(i int, ids []uint32) []uint32 {
		t := &w.waiting[next]
		d := &j.Documents[t.document]
		span, err := w.take(j, ids, len(w.texts[i].Bytes))
		if target {
			d.Target, d.Bad = span, cmp.Or(d.Bad, err)
		} else {
			d.IDs, d.Bad = span, err
		}
		if target = t.hasTarget && !target; !target {
			w.leaveRoom(j, d)
			next++
		}
		return j.IDs
	})
}

func (w *Worker) forgetTexts() {
	clear(w.waiting)
	clear(w.texts)
	w.waiting, w.texts = w.waiting[:0], w.texts[:0]
	w.prompts.used, w.targets.used, w.spans.used = w.prompts.used[:0], w.targets.used[:0], w.spans.used[:0]
}

// take sets j.IDs to ids, the last of which are those of a text of size bytes. A text that the tokenizer multiplies
// beyond what the job's lease holds is an error.
func (w *Worker) take(j *job.Job, ids []uint32, size int) (job.Span, error) {
	span := job.Span{Start: len(j.IDs), End: len(ids)}
	err := w.encoder.Err()
	if n := span.End - span.Start; err == nil && n > job.WorstExpansion*size+job.SpareIDs {
		err = fmt.Errorf("%w: the tokenizer makes %d ids of a text of %d bytes", tokenize.ErrExpansion, n, size)
	}
	if j.IDs = ids; err == nil {
		return span, nil
	}
	span.End = span.Start
	j.IDs = append(make([]uint32, 0, span.Start), ids[:span.Start]...) // the room that the ids took is not the job's
	return span, err
}

// leaveRoom leaves room for the rows of a document behind its ids, which are the job's last.
func (w *Worker) leaveRoom(j *job.Job, d *job.Document) {
	if w.Rows == nil || d.Bad != nil {
		return
	}
	if n := w.Rows.Room(d.IDs.End - d.IDs.Start); n > 0 {
		j.IDs = append(j.IDs, make([]uint32, n)...)
		if d.Mask.End > d.Mask.Start {
			j.Mask = append(j.Mask, make([]bool, n)...)
		}
	}
}
