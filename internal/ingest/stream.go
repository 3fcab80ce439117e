package ingest

import (
	"context"
	"errors"
	"fmt"
	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/units"
	"time"

	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/work"
	"golang.org/x/sync/errgroup"
)

// lease returns the lease of a job by the bytes of its first record, which may be longer than a piece.
func (b *build) lease(first int) int64 {
	return max(b.Memory.JobLease, work.LongRecordLease(int64(first), b.Phases[0].Formatter, b.Chat))
}

// newFlusher makes the last stage, restored from the checkpoint if there is one. begin, if not nil, comes before that.
func (b *build) newFlusher(ctx context.Context, out dataset.Writer, from *dataset.Resume,
	begin func(*flusher) error) (*flusher, error) {
	o := &b.opts
	f := &flusher{b: b, out: out, shards: from.Shards, cutter: b.Cutter, cut: b.cut(),
		around: newAround(b.CutterOptions(), b.Tokenizer), origins: originFiles{b: b, path: from.Pages}}
	f.emit = f.emitExample
	f.cutter.Counts, f.pack = &f.state.Counts, f.newPacking()
	held := o.MaxValExamples
	if len(o.ValSources) > 0 {
		held = 0
	}
	expected, err := int64(0), error(nil)
	if held > 0 && b.partition == nil {
		if expected, err = b.ExpectedExamples(ctx, held); ctx.Err() != nil {
			err = ErrInterrupted
		}
	}
	f.hold = heldout.New(held, expected)
	if o.Dedup != filter.None {
		f.seen = filter.NewSeen(o.Dedup, o.FS, from.SeenLog, from.SeenScratch, b.Memory.SeenPool)
		f.isCopy = func(_ int64, key []byte) (bool, error) { return f.seen.Add(key) }
	}
	if err == nil && begin != nil {
		err = begin(f)
	}
	if err == nil && from.Cursor != nil {
		err = f.restore(from.Cursor)
	}
	if err != nil {
		return nil, errors.Join(err, f.closeSeen())
	}
	return f, nil
}

// restore sets the flusher to the state that a checkpoint holds.
func (f *flusher) restore(cursor []byte) error {
	b := f.b
	state, windows, err := decodeCursor(cursor)
	if err != nil {
		return err
	}
	f.state = *state
	f.hold.Restore(state.Val, state.Held)
	if err := f.cutter.Restore(state.Cutter); err != nil {
		return err
	}
	if f.pack != nil {
		if err := f.pack.Restore(windows); err != nil {
			return err
		}
		f.heldOut()
	}
	if b.opts.MaxValExamples > 0 && state.Share != 0 && state.Share != f.hold.Share {
		return &cause.ChangedError{URI: b.Phases[0].Set.URI(0),
			What: "number of documents, by which some are chosen for val,"}
	}
	if f.seen != nil && state.Seen != nil {
		err = f.seen.Restore(*state.Seen)
	}
	if err := errors.Join(f.origins.restore(&f.state), err); err != nil {
		return err
	}
	b.meter.resumed = state.Totals
	b.notice("resuming at example %d", state.Examples)
	if b.opts.Resuming != nil {
		b.opts.Resuming(state.Totals)
	}
	return nil
}

// stream drives the phases that are left, then finishes.
func (b *build) stream(ctx context.Context, f *flusher, finish func(*flusher) (*report.Summary, error)) (_ *report.Summary,
	err error) {
	defer func() { err = errors.Join(err, f.origins.close()) }()
	for i := range f.state.Phase { // what an earlier run read to its end must not have changed
		r, err := b.Phases[i].Set.Reader(f.state.Ends[i].Position)
		if err != nil {
			return nil, err
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	f.show()
	if b.opts.Monitor != nil {
		b.meter.formats = b.Formats()
		b.opts.Monitor.Show(b.details)
	}
	stopReport := b.report(b.opts.Progress)
	defer stopReport()
	for f.state.Phase < len(b.Phases) {
		if err := b.runPhase(ctx, f); err != nil {
			return nil, err
		}
		if err := f.packRest(); err != nil {
			return nil, err
		}
		f.endPhase()
	}
	// The manifest is written in the memory that the jobs had.
	b.lanes, b.workers = job.Lanes{}, nil
	return finish(f)
}

// runPhase streams one phase's sources, from the cursor to their end or to a budget. An ended
// context ends it at the end of a job.
func (b *build) runPhase(ctx context.Context, f *flusher) error {
	p := &b.Phases[f.state.Phase]
	b.current = p
	at := f.state.Position
	if a := f.state.Answered; a != nil {
		at = a.Rewind(at)
	}
	reader, err := p.Set.Reader(at)
	if err != nil {
		return err
	}
	defer reader.Close()
	_, total := reader.Progress()
	b.meter.totalBytes.Store(max(0, total))
	if b.scan != nil {
		if err := b.scan.Begin(p.Set, reader); err != nil {
			return err
		}
	}
	ended, err := b.runStages(ctx, f, reader)
	switch {
	case errors.Is(err, errStopped):
	case err != nil && !errors.Is(err, errUnfinished): // the jobs before an unfinished one are kept
		return err
	case err == nil && ended:
		f.state.Position = reader.Position() // includes trailing input that gave no record
	default:
		return f.interrupted(ctx)
	}
	if b.scan != nil {
		b.scan.End(f.stopped == "")
	}
	return nil
}

// runStages runs the stages of a phase until the reader or a budget ends them. ended reports that all records were read.
func (b *build) runStages(ctx context.Context, f *flusher, reader *source.Reader) (ended bool, err error) {
	p := b.current
	b.lanes = job.NewLanes(b.Memory.Parcels, b.Memory.Jobs)
	b.readErr, f.stopped = nil, ""
	b.meter.began.CompareAndSwap(0, time.Now().UnixNano())
	// The pipeline outlives ctx: what was read is written before the build stops.
	group, pipeline := errgroup.WithContext(context.WithoutCancel(ctx))
	reading := read.Stage{Records: reader, Lanes: &b.lanes, Ledger: b.Ledger, Lease: b.lease,
		MaxRecords: b.Memory.MaxRecords, URI: p.Set.URI, Waiting: &b.waits.reader}
	if b.scan != nil {
		reading.Borders = b.scan
	}
	if b.opts.Map != "" {
		m, err := b.startMap(pipeline, ctx, reader, p.Set.URI, f)
		if err != nil {
			return false, err
		}
		defer m.Close()
		reading.Records, reading.Mapping = m, m
	}
	alone := func(name string, run func() error) {
		group.Go(func() error {
			cputime.Label(name)
			return run()
		})
	}
	alone("reader", func() error { return reading.Run(pipeline, ctx) })
	var pool work.Pool
	for i := range b.opts.Workers {
		if i == len(b.workers) {
			b.workers = append(b.workers, b.newWorker(b.Memory.CacheBytes))
			b.workers[i].Rows = b.newRowMaker(f.around)
		}
		w := b.workers[i]
		w.Begin(p.Formatter, f.hold.Empty() && f.shared == nil, ctx.Done())
		pool.Put(w)
	}
	for range b.opts.Workers {
		group.Go(func() error { return pool.Run(pipeline, b.lanes.Work, &b.waits.workers) })
	}
	alone("flusher", func() error { return f.run(pipeline) })
	err = group.Wait()
	if reading.Mapping != nil {
		reading.Mapping.Close() // it reads ahead
	}
	b.lanes.ReleaseUnfinished()
	b.readErr = reading.Failed()
	return reading.Ended(), err
}

// interrupted keeps everything up to the end of the last job. A folder that holds no rows yet stays open to
// other settings.
func (f *flusher) interrupted(ctx context.Context) error {
	b := f.b
	if errors.Is(b.readErr, read.ErrMiscounted) {
		return errors.Join(b.readErr, f.forget())
	}
	begun := f.state.Examples > 0 || f.pack != nil && f.pack.HeldTokens() > 0
	if begun {
		if err := f.checkpoint(true); err != nil {
			return errors.Join(b.readErr, err)
		}
	}
	if b.readErr != nil && ctx.Err() == nil {
		return b.readErr
	}
	if !begun {
		return fmt.Errorf("build %s: %w before the first example; run the same command again", b.opts.Place(),
			ErrInterrupted)
	}
	return fault.Errorf("build %s: %w at a checkpoint after %s; %v to resume",
		b.opts.Out, ErrInterrupted, units.Plural(f.state.Examples, "example"), b.opts.Same())
}

func (b *build) newWorker(cacheBytes int) *work.Worker {
	c := work.Config{Tokenizer: b.Tokenizer, CacheBytes: cacheBytes, CausalPairs: b.opts.CausalPairs,
		AsIs: b.Templates.IsZero(), Judges: b.opts.JudgesDocuments(), Filter: b.Filter, Dedup: b.opts.Dedup,
		Conversations: b.Chat}
	if b.scan != nil {
		c.Skip = b.scan.Skip
	}
	return work.New(c)
}

// startMap runs the command for the records of a reader, whose inputs have names by their numbers.
func (b *build) startMap(pipeline, wanted context.Context, reader *source.Reader, uri func(input int) string,
	f *flusher) (*read.Mapping, error) {
	return read.StartMap(pipeline, wanted, read.MapConfig{Command: b.opts.Map, Out: b.opts.Place(), URI: uri, Reader: reader, Waiting: &b.waits.mapping,
		Rows: b.current.Formatter.NewWorker(), Notice: b.notice, Answered: f.state.Answered, Resume: f.state.Position})
}
