package ingest

import (
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/rows"
	"github.com/dsload/dsload/internal/ingest/setup"
)

// block takes the documents of a block together, as flush would one by one, and reports whether it did.
func (f *flusher) block(j *job.Job, b *job.Block) (taken bool, err error) {
	s, split := &f.state, rows.Train
	if s.Phase == setup.Val {
		split = rows.Val
	}
	if !f.takes(j, b, split) {
		return false, nil
	}
	if f.b.opts.Dedup != filter.None {
		if copies, err := f.judgeAll(j, b); copies || err != nil {
			return false, err
		}
	}
	d, n := &j.Documents[b.From], int64(b.Len())
	d.Ordinal += f.first
	if err := f.meet(d, n, &j.Documents[b.To-1]); err != nil {
		return false, err
	}
	s.Verdict = heldout.ToTrain
	if split == rows.Val {
		s.Verdict = heldout.ToVal
	}
	s.Has |= d.Has
	if d.AsText {
		s.WhereAsText += n
	}
	f.begin(d, f.b.number(d.Ordinal), n)
	s.TextBytes += b.TextBytes
	s.Sources.Text(split, b.TextBytes, int(b.TextIDs))
	f.noteBlock(j, b)
	f.countCuts(&b.Cuts)
	r := dataset.Rows{IDs: b.RowBytes(j), Lengths: j.Lengths[b.Rows.Start:b.Rows.End], Parts: j.Parts[b.Rows.Start:b.Rows.End],
		Tokens: b.Tokens, Loss: b.Loss, Document: f.b.number(d.Ordinal), Documents: n}
	if f.b.Shards.Schema.LossMask {
		r.LossMask = b.RowMask(j)
	}
	if f.pack != nil {
		f.since += int64(len(r.Lengths))
		if err := f.pack.AddRows(split, &r); err != nil {
			return false, err
		}
		f.heldOut()
		return true, nil
	}
	if err := f.out.Rows(splits[split], &r); err != nil {
		return false, err
	}
	s.Sources.Rows(split, &r)
	f.wrote(splits[split], int64(len(r.Lengths)), b.Tokens)
	return true, nil
}

// takes reports whether no budget ends in a block or is reached by it, and all of its documents go to one split.
func (f *flusher) takes(j *job.Job, b *job.Block, split int) bool {
	o, s := &f.b.opts, &f.state
	n, held := b.Rows.End-b.Rows.Start, int64(0)
	limit, have := o.MaxExamples, s.Train
	if split == rows.Val {
		limit, have = o.MaxValExamples, s.Val
	}
	if f.pack != nil {
		held = f.pack.HeldTokens()
		if limit > 0 && !f.pack.Room(split, n, b.Tokens) {
			return false
		}
		n = 1
	}
	if limit > 0 && have+int64(n) >= limit || o.MaxBytes > 0 && s.TextBytes+b.TextBytes >= o.MaxBytes ||
		o.MaxTokens > 0 && s.Tokens+held+b.Tokens >= o.MaxTokens {
		return false
	}
	if split == rows.Train && !f.hold.Empty() {
		for i := b.From; i < b.To; i++ {
			if !f.hold.Trains(j.Documents[i].Hash) {
				return false
			}
		}
	}
	return true
}

// judge reports whether a document is a copy of an earlier one, by the record of those or by what judgeAll found.
func (f *flusher) judge(j *job.Job, d *job.Document) (isCopy bool, err error) {
	if len(f.judged) == 0 {
		return f.isCopy(d.Ordinal, j.Keys[d.Key.Start:d.Key.End])
	}
	isCopy, f.judged = f.judged[0], f.judged[1:]
	return isCopy, nil
}

// judgeAll reports whether a document of a block is a copy of an earlier one. If so, it leaves to judge which ones are.
func (f *flusher) judgeAll(j *job.Job, b *job.Block) (copies bool, err error) {
	f.judged = f.judged[:0]
	for i := b.From; i < b.To; i++ {
		d := &j.Documents[i]
		isCopy, err := f.isCopy(d.Ordinal+f.first, j.Keys[d.Key.Start:d.Key.End])
		if err != nil {
			return false, err
		}
		f.judged = append(f.judged, isCopy)
		copies = copies || isCopy
	}
	if !copies {
		f.judged = f.judged[:0]
	}
	return copies, nil
}

// noteBlock is noteKept for a block.
func (f *flusher) noteBlock(j *job.Job, b *job.Block) {
	d := &j.Documents[b.From]
	f.noteLines(d, int64(b.Len()), b.TextIDs, b.TextBytes)
	if b.Unused {
		f.unused.add(j, d.Unused, int64(b.Len()))
	}
	if b.Unused && f.shared == nil {
		return
	}
	for i := b.From; i < b.To; i++ {
		if !b.Unused {
			f.unused.add(j, j.Documents[i].Unused, 1)
		}
		f.noteShared(&j.Documents[i])
	}
}
