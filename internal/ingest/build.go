package ingest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/partition"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/shard"
	"golang.org/x/sync/errgroup"
)

const (
	splitTrain = "train"
	splitVal   = "val"
)

var (
	// ErrInterrupted is returned when the context ended. The work done is in a checkpoint, and the
	// same build resumes from there.
	ErrInterrupted = fault.New(fault.Interrupted, "interrupted")

	errStopped = errors.New("a budget was reached")
	// errUnfinished ends the pipeline at a job that a worker gave up because the build must stop.
	errUnfinished = errors.New("a job is unfinished")
)

// build is one call of Run.
type build struct {
	opts            option.Options
	partition       *partition.Chosen // of a plan; nil for all
	target          target
	bucket          bool // Out is the scratch folder of a build into a bucket
	resumes         bool // the same command resumes from a checkpoint
	meter           meter
	waits           waits
	*setup.Prepared // nil before prepare

	// Of the phase that runs.
	current *setup.Phase
	lanes   job.Lanes
	readErr error // of the sources, once all stages have ended
	workers []*work.Worker
}

// Run streams sources through a tokenizer into a dataset folder. It resumes where an interrupted
// build with equal options stopped.
//
// Errors: of fault.BadOption, *setup.CapError, *shard.SettingsError, *shard.LockedError and source's
// errors of usage mean a wrong call; *cause.InputError and *source.RecordError mean bad input;
// ErrInterrupted means that the context ended. After any of them the folder holds no dataset, but
// everything that was checkpointed.
func Run(ctx context.Context, o option.Options) (*report.Summary, error) {
	return RunPartition(ctx, o, nil)
}

// RunPartition is Run for one partition of a plan, with the options that it gives; nil stands for all.
func RunPartition(ctx context.Context, o option.Options, p *partition.Chosen) (*report.Summary, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if remote.Writable(o.Out) {
		return runInto(ctx, o, p)
	}
	return newBuild(o, p).run(ctx)
}

func newBuild(o option.Options, p *partition.Chosen) *build {
	b := &build{opts: o, partition: p, resumes: true}
	b.meter.start = o.Now()
	b.target = newTarget(b)
	return b
}

// prepare opens and checks everything that can be wrong before the first byte is written.
func (b *build) prepare(ctx context.Context) (err error) {
	if err := b.target.open(); err != nil {
		return err
	}
	pins := pins{opts: &b.opts}
	b.Prepared, err = setup.Open(ctx, &b.opts, setup.Reading{Narrow: b.target.choose, Explain: b.target.opened,
		Revision: pins.of, Partition: b.partition != nil, Resumes: b.resumes})
	if err != nil {
		return err
	}
	if err = b.target.settings(); err == nil {
		n := setup.Needs{Bucket: b.bucket}
		n.HeldOut, n.WhyHeldOut, n.More = b.target.memory()
		err = b.DivideMemory(n)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	return nil
}

// run makes the target in a folder of a file system.
func (b *build) run(ctx context.Context) (_ *report.Summary, err error) {
	o := &b.opts
	if o.Stdin != nil {
		stdin := setup.NewInterruptible(ctx, o.Stdin)
		defer stdin.Close()
		o.Stdin = stdin
	}
	err = b.prepare(ctx)
	if isNothingNew(err) {
		return nothingNew(o)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := cmp.Or(b.CheckEnds(), b.target.check()); err != nil {
		return nil, err
	}
	builder, checkpoint, err := shard.OpenBuilder(o.FS, o.Out, b.Shards)
	if err != nil {
		return b.target.notOpened(ctx, err)
	}
	f, err := b.newFlusher(ctx, builder, checkpoint)
	if err == nil {
		b.notice("reading %s", b.DescribeInputs())
		var s *report.Summary
		s, err = b.stream(ctx, f)
		if err = errors.Join(err, f.closeSeen()); err == nil {
			return s, nil
		}
	}
	return b.target.failed(builder, err)
}

// lease returns the lease of a job by the bytes of its first record, which may be longer than a piece.
func (b *build) lease(first int) int64 {
	return max(b.Memory.JobLease, work.LongRecordLease(int64(first), b.Phases[0].Formatter, b.Chat))
}

// newFlusher makes the last stage, restored from the checkpoint if there is one.
func (b *build) newFlusher(ctx context.Context, builder *shard.Builder, checkpoint *shard.Checkpoint) (*flusher, error) {
	o := &b.opts
	f := &flusher{b: b, builder: builder, cutter: b.Cutter, cut: b.cut(),
		around: newAround(b.CutterOptions(), b.Tokenizer), origins: originFiles{b: b}}
	f.emit = f.takeExample
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
	if err == nil {
		err = b.target.begin(f)
	}
	if err == nil && checkpoint != nil {
		err = f.restore(checkpoint)
	}
	if err == nil {
		err = f.openShared(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.closeSeen())
	}
	return f, nil
}

// restore sets the flusher to the state that a checkpoint holds.
func (f *flusher) restore(checkpoint *shard.Checkpoint) error {
	b := f.b
	state, windows, err := decodeCursor(checkpoint.Cursor)
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
	if err := errors.Join(f.origins.restore(&f.state), f.restoreSeen()); err != nil {
		return err
	}
	b.meter.resumed = state.Totals
	b.notice("resuming at example %d", state.Examples)
	if b.opts.Resuming != nil {
		b.opts.Resuming(state.Totals)
	}
	return nil
}

func (b *build) notice(format string, args ...any) { b.opts.Noticef(format, args...) }

// stream drives the phases that are left, then finishes the target.
func (b *build) stream(ctx context.Context, f *flusher) (_ *report.Summary, err error) {
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
	b.watch()
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
	if f.builder != nil {
		f.builder.SyncAhead() // while the dataset's other files are written
	}
	return b.target.finish(f)
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
	if err := b.target.beginPhase(f.state.Phase, p, reader); err != nil {
		return err
	}

	b.lanes = job.NewLanes(b.Memory.Parcels, b.Memory.Jobs)
	b.readErr, f.stopped = nil, ""
	b.meter.began.CompareAndSwap(0, time.Now().UnixNano())
	// The pipeline outlives ctx: what was read is written before the build stops.
	group, pipeline := errgroup.WithContext(context.WithoutCancel(ctx))
	reading := read.Stage{Records: reader, Borders: b.target, Lanes: &b.lanes, Ledger: b.Ledger, Lease: b.lease,
		MaxRecords: b.Memory.MaxRecords, URI: p.Set.URI, Waiting: &b.waits.reader}
	if b.opts.Map != "" {
		m, err := b.startMap(pipeline, ctx, reader, p.Set.URI, f)
		if err != nil {
			return err
		}
		defer m.Close()
		reading.Records, reading.Mapping = m, m
	}
	group.Go(func() error { return reading.Run(pipeline, ctx) })
	for i := range b.opts.Workers {
		w := b.workerOf(i)
		w.Begin(p.Formatter, f.hold.Empty() && f.shared == nil, ctx.Done())
		group.Go(func() error { return w.Run(pipeline, b.lanes.Work, &b.waits.workers) })
	}
	group.Go(func() error { return f.run(pipeline) })
	err = group.Wait()
	if reading.Mapping != nil {
		reading.Mapping.Close() // it reads ahead
	}
	b.lanes.ReleaseUnfinished()
	b.readErr = reading.Failed()
	switch {
	case errors.Is(err, errStopped):
	case err != nil && !errors.Is(err, errUnfinished): // of an unfinished job the jobs before it are kept
		return err
	case err == nil && reading.Ended():
		f.state.Position = reader.Position() // includes trailing input that gave no record
	default:
		return b.target.interrupted(ctx, f)
	}
	b.target.endPhase(f.state.Phase, reader, f.stopped == "")
	return nil
}

// workerOf returns the i-th worker.
func (b *build) workerOf(i int) *work.Worker {
	if i == len(b.workers) {
		b.workers = append(b.workers, b.newWorker(b.Memory.CacheBytes))
	}
	return b.workers[i]
}

// begun reports whether there is anything to keep.
func (f *flusher) begun() bool {
	return f.state.Examples > 0 || f.pack != nil && f.pack.HeldTokens() > 0
}

func (b *build) newWorker(cacheBytes int) *work.Worker {
	return work.New(work.Config{Tokenizer: b.Tokenizer, CacheBytes: cacheBytes, CausalPairs: b.opts.CausalPairs,
		AsIs: b.Template == "", Judges: b.opts.JudgesDocuments(), Filter: b.Filter, Dedup: b.opts.Dedup,
		Conversations: b.Chat, Skip: b.target.skip})
}

// startMap runs the command for the records of a reader, whose inputs have names by their numbers.
func (b *build) startMap(pipeline, wanted context.Context, reader *source.Reader, uri func(input int) string,
	f *flusher) (*read.Mapping, error) {
	return read.StartMap(pipeline, wanted, read.MapConfig{Command: b.opts.Map, Out: b.opts.Out, URI: uri, Reader: reader,
		Rows: b.current.Formatter.NewWorker(), Notice: b.notice, Answered: f.state.Answered, Resume: f.state.Position})
}

// PlanMemory returns the memory cap as a sum for these options; nothing is built.
func PlanMemory(o option.Options) (*setup.MemoryPlan, error) { return PartitionMemory(o, nil) }

// PartitionMemory is PlanMemory for one partition of a plan; nil stands for all.
func PartitionMemory(o option.Options, p *partition.Chosen) (*setup.MemoryPlan, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b := newBuild(o, p)
	b.bucket = remote.Writable(o.Out)
	return b.memoryPlan()
}

// memoryPlan prepares a build for its memory plan alone.
func (b *build) memoryPlan() (*setup.MemoryPlan, error) {
	if err := b.prepare(context.Background()); err != nil {
		return nil, err
	}
	return b.Memory, b.Close()
}
