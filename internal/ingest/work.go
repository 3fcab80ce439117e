package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/tokenize"
	"github.com/zeebo/xxh3"
)

// A worker formats and tokenizes jobs, one at a time.
type worker struct {
	encoder   *tokenize.Encoder
	causal    bool // prompt and target make one row
	formatter *example.Worker
	scratch   example.Formatted
	record    example.Formatted  // a record that is text as it stands
	text      *example.Formatted // of the document at hand: scratch or record
	asIs      bool               // text without fields is what documents are made of, no template is
	judges    bool               // documents are judged
	unhashed  bool               // no document is held out by its hash
	chat      *chatWorker        // nil if no input holds conversations
	filter    *filter.Filter
	sketcher  *filter.Sketcher
	skip      func(*document) bool // reports whether the ids of a document are not needed
	most      int                  // ids of a job so far
}

// tokenize is the second stage: it takes jobs in any order and signals each when it is done. What
// is wrong with a record is noted in its document, for the flusher to judge in order.
func (b *build) tokenize(ctx context.Context, w *worker) error {
	for {
		idle := time.Now()
		select {
		case p, ok := <-b.work:
			waited(&b.waits.workers, idle)
			if !ok {
				return nil
			}
			stopped := false
			for _, j := range p.jobs {
				stopped = stopped || !w.run(j)
				j.stopped = stopped
				w.trim()
			}
			p.done <- struct{}{}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// trim drops the text buffers that an unusually large record left behind.
func (w *worker) trim() {
	if cap(w.scratch.Prompt)+cap(w.scratch.Target) > worstExpansion*(jobTextBytes+pieceBytes) {
		w.scratch, w.record, w.text = example.Formatted{}, example.Formatted{}, nil
	}
}

// run formats and tokenizes a job. It reports false if a template had to stop: the job is
// unfinished.
func (w *worker) run(j *job) bool {
	if cap(j.ids) == 0 && w.most > 0 {
		j.ids = make([]uint32, 0, w.most+w.most/8)
	}
	defer func() { w.most = min(max(w.most, len(j.ids)), jobTextBytes) }()
	for i := range j.documents {
		d := &j.documents[i]
		if d.Err != nil || w.judges && !w.judgeFields(j, d) {
			continue
		}
		isChat := w.chat != nil && w.chat.takes(d)
		if d.err = w.format(d, j.raw[d.raw.start:d.raw.end], isChat); d.err != nil {
			if errors.Is(d.err, example.ErrStopped) {
				return false
			}
			continue
		}
		f := w.text
		if w.judges && !w.judgeText(j, d) {
			continue
		}
		d.textBytes = int64(len(f.Prompt) + len(f.Target))
		d.replaced += int64(f.Replaced)
		if !w.unhashed {
			d.hash = textHash(f.Prompt, f.Target)
		}
		if w.skip(d) {
			continue
		}
		if isChat {
			w.chat.encode(j, d)
			continue
		}
		d.ids, d.err = w.encode(j, f.Prompt, d.First, d.Last)
		if f.HasTarget && d.err == nil {
			// A target in one row with its prompt does not begin a text: the tokenizer puts no
			// leading space before it.
			d.target, d.err = w.encode(j, f.Target, !w.causal, true)
		}
	}
	return true
}

// format sets text to that of a document. Text that is valid as it stands is not copied.
func (w *worker) format(d *document, raw []byte, isChat bool) (err error) {
	switch {
	case w.asIs && d.Decoded && tokenize.Valid(raw):
		w.record.Prompt, w.text = raw, &w.record
		return nil
	case isChat:
		err = w.chat.format(&w.scratch, d, raw)
	default:
		err = w.formatter.Format(&w.scratch, d.record(), raw)
	}
	w.text = &w.scratch
	return err
}

// encode appends the ids of a text to j.ids. A text that the tokenizer multiplies beyond what the
// job's lease holds is an error.
func (w *worker) encode(j *job, text []byte, first, last bool) (span, error) {
	ids := span{start: len(j.ids)}
	j.ids = w.encoder.AppendPiece(j.ids, text, tokenize.Piece{First: first, Last: last})
	ids.end = len(j.ids)
	err := w.encoder.Err()
	if n := ids.end - ids.start; err == nil && n > worstExpansion*len(text)+spareIDs {
		err = fmt.Errorf("%w: the tokenizer makes %d ids of a text of %d bytes", tokenize.ErrExpansion, n, len(text))
	}
	if err == nil {
		return ids, nil
	}
	ids.end = ids.start
	j.ids = append(make([]uint32, 0, ids.start), j.ids[:ids.start]...) // the room that the ids took is not the job's
	return ids, err
}

// textHash decides a document's split. Prompt and target are hashed apart, so that moving text
// between them makes another document.
func textHash(prompt, target []byte) uint64 {
	h := xxh3.Hash(prompt)
	if len(target) > 0 {
		h = xxh3.HashSeed(target, h)
	}
	return h
}
