package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/dsload/dsload/internal/dataset"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/rows"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/shardfile"
)

// A flusher is the last stage: it takes the jobs in the order in which they were read and does
// everything that depends on order. From here on the corpus and the settings alone decide what is
// written.
type flusher struct {
	b       *build
	out     dataset.Writer
	shards  func(split string) int // shards that have begun; nil where none are written
	cutter  *example.Cutter
	cut     cut                          // what makes examples of documents, with the cutter
	turns   turnRows                     // scratch
	around  around                       // what the cutter writes around them
	emit    func(*example.Example) error // emitExample
	made    example.Example              // scratch: the row of a worker
	row     dataset.Example              // scratch: what a target writes escapes to it
	arrival arrival                      // scratch
	first   int64                        // ordinal of the first document
	hold    *heldout.Chooser
	seen    *filter.Seen
	// isCopy reports whether a document with this key of Dedup is a copy of an earlier one.
	isCopy  func(ordinal int64, key []byte) (bool, error)
	judged  []bool        // of the documents at hand that it was asked about already
	pack    *rows.Packing // nil where rows are not packed
	state   cursor        // what a checkpoint saves besides the open shards
	origins originFiles
	unused  unusedFields    // counted for the job at hand
	shared  *heldout.Shared // documents of train and val; nil if that is not of interest, or not known

	// sourcesEnded is set where the sources of the phase were read to their end, though a budget was
	// reached when the last rows were packed.
	sourcesEnded bool

	stopped string // the option whose budget ended the phase, "" while it runs
	// checkpoints is zero before the first checkpoint of this run, so that it comes early and runs that are soon
	// killed make progress too.
	checkpoints checkpoints
	since       int64 // examples, and documents left out, since then
}

// run flushes jobs until the reader closes the channel or a budget is reached. It leaves the state
// at the end of a job.
func (f *flusher) run(ctx context.Context) error {
	for {
		var p *job.Parcel
		idle := time.Now()
		select {
		case next, ok := <-f.b.lanes.Ordered:
			if !ok {
				return nil
			}
			p = next
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-p.Done:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.b.waits.flusher.Since(idle)
		for i, j := range p.Jobs {
			if f.seen != nil {
				f.seen.Expect(i == 0, j.Keys)
			}
		}
		for i, j := range p.Jobs {
			if err := f.job(j); err != nil {
				job.Release(p.Jobs[i+1:])
				return err
			}
		}
		f.show()
	}
}

// job flushes a job and recycles it, and takes a checkpoint where one is due.
func (f *flusher) job(j *job.Job) error {
	if j.Stopped {
		return errUnfinished
	}
	if err := f.keepBefore(j); err != nil {
		return err
	}
	err := f.flush(j)
	f.unused.countInto(&f.state.Counts, j)
	f.state.Position, f.state.SourceBytes = j.Next, j.Read
	f.state.Answered = cmp.Or(j.Answered, f.state.Answered)
	mark := j.Mark
	f.b.lanes.Recycle(j)
	switch {
	case err != nil:
		return err
	case f.stopped != "":
		return errStopped
	}
	if mark != nil {
		f.b.scan.Border(mark, f.hold, f.state.TextBytes)
	}
	if f.due() {
		return f.checkpoint(false)
	}
	return nil
}

func (f *flusher) flush(j *job.Job) error {
	blocks := j.Blocks
	for i := 0; i < len(j.Documents); i++ {
		if len(blocks) > 0 && blocks[0].From == i {
			b := &blocks[0]
			blocks = blocks[1:]
			if taken, err := f.block(j, b); err != nil {
				return err
			} else if taken {
				i = b.To - 1
				continue
			}
		}
		d := &j.Documents[i]
		d.Ordinal += f.first
		if err := f.meet(d, 1, d); err != nil {
			return err
		}
		if d.Err != nil || d.Bad != nil {
			if err := f.reject(d, cmp.Or(d.Err, d.Bad)); err != nil {
				return err
			}
			continue
		}
		if err := f.document(j, d); err != nil {
			return err
		}
		if f.stopped != "" {
			if i+1 < len(j.Documents) || !j.Last {
				f.cutBy(f.stopped)
			}
			return nil
		}
	}
	return nil
}

// meet notes where n documents like d come from, the last of which may be another one.
func (f *flusher) meet(d *job.Document, n int64, last *job.Document) error {
	s := &f.state
	s.Input, s.Offset = last.Input, last.Offset+int64(last.Raw.End-last.Raw.Start)
	if err := f.origins.note(s, d, n); err != nil {
		return err
	}
	if d.Mapped {
		s.Mapped += n
	}
	if d.First {
		f.read(d).Records += n * max(1, d.Rows)
	}
	return nil
}

// keepBefore takes a checkpoint before a job with a record that will end the build, so that all
// before the job is kept.
func (f *flusher) keepBefore(j *job.Job) error {
	if f.b.opts.OnBadRecord == option.SkipBadRecord || f.since == 0 {
		return nil
	}
	for _, d := range j.Apart {
		if d.Err != nil || d.Bad != nil {
			return f.checkpoint(true)
		}
	}
	return nil
}

// cutBy notes that a budget left something of the sources out.
func (f *flusher) cutBy(option string) {
	if s := &f.state; !slices.Contains(s.CutBy, option) {
		s.CutBy = append(s.CutBy, option)
	}
}

// split chooses the split of a document by its hash.
func (f *flusher) split(hash uint64) heldout.Verdict {
	if f.state.Phase == setup.Val {
		return heldout.ToVal
	}
	return f.hold.Choose(hash)
}

// emitExample writes an example that the cutter made, or packs it into a row.
func (f *flusher) emitExample(ex *example.Example) error {
	if f.state.Verdict == heldout.ToNeither {
		f.state.CopiedExamples++
		return nil
	}
	split, window := splitTrain, rows.Train
	if f.state.Verdict == heldout.ToVal {
		split, window = splitVal, rows.Val
	}
	if f.pack != nil && !f.full(split) {
		return f.packExample(window, ex)
	}
	r := &f.row // the other fields are those of packed rows
	r.InputIDs, r.Length, r.Labels, r.LossMask, r.Document, r.Part = ex.InputIDs, ex.Length, ex.Labels, ex.LossMask, ex.Document, ex.Part
	if r.Parts = r.Parts[:0]; ex.Row != nil {
		r.Parts = append(r.Parts, ex.Row)
	}
	return f.write(split, r)
}

// full reports whether a split has all the rows that its budget allows.
func (f *flusher) full(split string) bool {
	return split == splitTrain && f.state.TrainFull || split == splitVal && f.valFull()
}

// write writes one row. What comes after the end of its split or of a budget is left out, and
// counted.
func (f *flusher) write(split string, row *dataset.Example) error {
	o, s := &f.b.opts, &f.state
	switch full := f.full(split); {
	case full && split == splitTrain:
		f.cutBy("max-examples")
		return nil
	case full && s.Phase == setup.Val:
		f.cutBy("max-val-examples")
		return nil
	case full:
		s.ValRest++
		return nil
	case o.MaxTokens > 0 && f.cutTokens(row):
		return nil
	}
	if err := f.out.Row(split, row); err != nil {
		return err
	}
	s.Sources.Row(shardfile.SplitIndex(split), row)
	f.wrote(split, 1, int64(row.Tokens()+len(row.Labels)))
	switch {
	case s.Phase == setup.Val && f.valFull():
		f.stopped = "max-val-examples"
	case s.Phase == setup.Train && s.TrainFull && (len(o.ValSources) > 0 || f.valFull()):
		f.stopped = "max-examples"
	}
	return nil
}

// wrote counts n rows of a split, which have some tokens and labels.
func (f *flusher) wrote(split string, n, tokens int64) {
	s := &f.state
	f.since += n
	s.Tokens += tokens
	s.Examples += n
	if split == splitVal {
		s.Val += n
		f.hold.Have += n
	} else {
		s.Train += n
		s.TrainFull = f.b.opts.MaxExamples > 0 && s.Train >= f.b.opts.MaxExamples
	}
}

// cutTokens shortens a row to what the budget of tokens leaves, and reports whether the row is left
// out instead: a pair with labels is never cut, and a masked row must keep a token to train on.
func (f *flusher) cutTokens(ex *dataset.Example) bool {
	left := f.b.opts.MaxTokens - f.state.Tokens
	n := int64(ex.Tokens() + len(ex.Labels))
	if n < left {
		return false
	}
	f.stopped = "max-tokens"
	if n == left {
		return false
	}
	f.cutBy(f.stopped)
	if len(ex.Labels) > 0 || left <= 0 {
		return true
	}
	rows.Cut(ex, left)
	return ex.LossMask != nil && !slices.Contains(ex.LossMask, true)
}

// valFull reports whether the split val is full. With sources of its own it has no limit unless one
// is given.
func (f *flusher) valFull() bool {
	if f.state.Phase == setup.Val {
		return f.b.opts.MaxValExamples > 0 && f.state.Val >= f.b.opts.MaxValExamples
	}
	return f.hold.Full()
}

// read returns the counts of the input of a document.
func (f *flusher) read(d *job.Document) *report.FileRecords {
	return f.state.Bad.Reads(f.state.Phase, d.Input, func() string { return f.b.Phases[f.state.Phase].Set.URI(d.Input) })
}

// due reports whether it is time for a checkpoint. A clock that was set back counts as enough time:
// one checkpoint too many costs less than hours without one.
func (f *flusher) due() bool {
	if f.since < f.b.opts.CheckpointEvery {
		return false
	}
	elapsed := f.b.opts.Now().Sub(f.checkpoints.at)
	least := f.b.opts.CheckpointInterval
	if f.pack != nil && f.pack.HeldTokens() > f.pack.Window/2 {
		least *= 2 // the window may close before: then there is less to save
	}
	return elapsed < 0 || elapsed >= least
}

// checkpoint makes everything up to the end of the last job durable: now, or as soon as that takes little time.
func (f *flusher) checkpoint(now bool) error {
	taken, err := f.out.Checkpoint(now, f.save)
	if err != nil || !taken {
		return err
	}
	f.checkpoints, f.since = checkpoints{f.checkpoints.count + 1, f.state.Examples, f.b.opts.Now()}, 0
	f.show()
	return nil
}

// save returns what a checkpoint keeps besides the rows, and makes durable what lies beside them.
func (f *flusher) save() ([][]byte, error) {
	f.state.Held, f.state.Share = f.hold.Hashes(), f.hold.Share
	f.state.Cutter = f.cutter.State()
	var err error
	if f.seen != nil { // its length is part of the cursor
		var mark filter.Mark
		mark, err = f.seen.Sync()
		f.state.Seen = &mark
	}
	if err := errors.Join(err, f.origins.sync()); err != nil {
		return nil, err
	}
	data, err := json.Marshal(&f.state)
	if err != nil {
		return nil, err
	}
	parts := [][]byte{data}
	if f.pack != nil {
		parts = append(append(parts, []byte{'\n'}), f.pack.Save()...)
	}
	return parts, nil
}
