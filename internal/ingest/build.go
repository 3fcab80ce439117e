package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/earlier"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/tokenizers"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/remote"
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

// build is one call of Run. Three values are what kinds of builds differ in: which ranges of the sources are read, which
// is asked while they are opened; who remembers copies, flusher.isCopy; and who writes, flusher.out.
type build struct {
	opts            option.Options
	partition       *plan.Chosen      // nil for all of the sources
	addition        *earlier.Addition // nil unless the build adds to a dataset
	scan            *plan.Scan        // nil unless the build makes a plan
	bucket          bool              // Out is the scratch folder of a build into a bucket
	resumes         bool              // the same command resumes from a checkpoint
	meter           meter
	waits           waits
	*setup.Prepared // nil before prepare

	// Of the phase that runs.
	current *setup.Phase
	lanes   job.Lanes
	readErr error // reading the sources failed, once all stages have ended
	workers []*work.Worker
}

// Run streams sources through a tokenizer into a dataset folder. It resumes where an interrupted
// build with equal options stopped.
//
// Errors: of fault.BadOption, *setup.CapError, *dataset.SettingsError, *shardfile.LockedError and source's
// errors of usage mean a wrong call; *cause.InputError and *source.RecordError mean bad input;
// ErrInterrupted means that the context ended. After any of them the folder holds no dataset, but
// everything that was checkpointed.
func Run(ctx context.Context, o option.Options) (*report.Summary, error) {
	return RunPartition(ctx, o, nil)
}

// RunPartition is Run for one partition of a plan, with the options that it gives; nil stands for all.
func RunPartition(ctx context.Context, o option.Options, p *plan.Chosen) (*report.Summary, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if remote.Writable(o.Out) {
		return runInto(ctx, o, p)
	}
	return newBuild(o, p).run(ctx)
}

// runInto is RunPartition for a folder of a bucket.
func runInto(ctx context.Context, o option.Options, p *plan.Chosen) (s *report.Summary, err error) {
	t := store.Target{URI: o.Out, Adds: o.Append, Overwrite: o.Overwrite, Clock: o.Now,
		Notice: func(text string) { o.Noticef("%s", text) }}
	if p != nil {
		t.Part, t.Plan = p.Part(), p.Plan.Seal()
	}
	err = store.Build(ctx, t, func(fsys shardfile.FS, dir string) (err error) {
		inner := o
		inner.FS, inner.Out = fsys, dir
		b := newBuild(inner, p)
		b.bucket = true
		s, err = b.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Out = strings.TrimRight(o.Out, "/")
	return s, nil
}

func newBuild(o option.Options, p *plan.Chosen) *build {
	b := &build{opts: o, partition: p, resumes: !o.Discarded}
	b.meter.start = o.Now()
	return b
}

// prepare opens and checks everything that can be wrong before the first byte is written.
func (b *build) prepare(ctx context.Context) (err error) {
	if b.opts.Append {
		if b.addition, err = openAddition(&b.opts); err != nil {
			return err
		}
		return b.open(ctx, setup.Reading{Narrow: b.addition.Narrow, Explain: b.addition.Explain}, b.needsOfAddition)
	}
	if b.partition != nil {
		return b.open(ctx, setup.Reading{Narrow: b.partition.Narrow}, b.needsOfPart)
	}
	return b.open(ctx, setup.Reading{}, b.needs)
}

// openAddition opens the dataset that is added to, of which the options take the settings and the tokenizer.
func openAddition(o *option.Options) (*earlier.Addition, error) {
	a, err := earlier.Open(o)
	if err != nil {
		return nil, err
	}
	if o.Inherits("tokenizer") && !o.Inherits("tokenizer-pattern") {
		return nil, fault.BadOption("tokenizer-pattern", o.TokenizerPattern,
			"it is about a {tokenizer} that is given with it; leave it out to take the dataset's")
	}
	if t, err := tokenizers.OfDataset(o.FS, o.Out, a.Manifest); err == nil && o.Inherits("tokenizer") {
		o.LoadedTokenizer = t // wherever the one of that name is now
	}
	return a, o.Validate()
}

// open prepares a build of what is read of the sources. needs returns what the place of the rows needs, and may change
// the settings that it keeps.
func (b *build) open(ctx context.Context, r setup.Reading, needs func() (setup.Needs, error)) (err error) {
	r.Revision, r.Partition, r.Resumes = pins(&b.opts), b.partition != nil, b.resumes
	if b.Prepared, err = setup.Open(ctx, &b.opts, r); err != nil {
		return err
	}
	var n setup.Needs
	if b.Shards.Settings, err = b.Settings(); err == nil {
		n, err = needs()
	}
	if err == nil {
		n.Bucket = b.bucket
		err = b.DivideMemory(n)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	return nil
}

// needs are those of a dataset of its own.
func (b *build) needs() (setup.Needs, error) {
	if len(b.opts.ValSources) > 0 {
		return setup.Needs{HeldOut: heldout.MaxShared,
			WhyHeldOut: fmt.Sprintf("hashes of up to %d documents of the sources of val", heldout.MaxShared)}, nil
	}
	n := b.opts.MaxValExamples
	return setup.Needs{HeldOut: n, WhyHeldOut: fmt.Sprintf("hashes of up to %d held-out documents", n)}, nil
}

// run makes the dataset in a folder of a file system.
func (b *build) run(ctx context.Context) (_ *report.Summary, err error) {
	o := &b.opts
	if o.Stdin != nil {
		stdin := setup.NewInterruptible(ctx, o.Stdin)
		defer stdin.Close()
		o.Stdin = stdin
	}
	err = b.prepare(ctx)
	if errors.Is(err, source.ErrNothingNew) {
		return nothingNew(o)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.CheckEnds(); err != nil {
		return nil, err
	}
	switch {
	case b.addition != nil:
		return b.add(ctx)
	case b.partition != nil:
		return b.buildPart(ctx)
	}
	return b.create(ctx)
}

func (b *build) create(ctx context.Context) (*report.Summary, error) {
	out, from, err := dataset.Create(b.opts.FS, b.opts.Out, b.Shards)
	if errors.Is(err, dataset.ErrFinished) {
		return b.finished()
	}
	if err != nil {
		return nil, advice.Of(advice.Folder, b.Facts(), err)
	}
	return b.write(ctx, out, from, nil, (*flusher).finish)
}

// write streams the documents into a dataset. begin, if not nil, gives a new flusher what was decided before the first
// document, and finish commits the dataset.
func (b *build) write(ctx context.Context, out dataset.Writer, from *dataset.Resume, begin func(*flusher) error,
	finish func(*flusher) (*report.Summary, error)) (*report.Summary, error) {
	f, err := b.newFlusher(ctx, out, from, begin)
	if err == nil {
		err = f.openShared(ctx)
		var s *report.Summary
		if err == nil {
			b.notice("reading %s", b.DescribeInputs())
			s, err = b.stream(ctx, f, finish)
		}
		if err = errors.Join(err, f.closeSeen()); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(advice.Of(advice.Rows, b.Facts(), err), out.Close())
}

func (b *build) notice(format string, args ...any) { b.opts.Noticef(format, args...) }

// PlanMemory returns the memory cap as a sum for these options; nothing is built.
func PlanMemory(o option.Options) (*setup.MemoryPlan, error) { return PartitionMemory(o, nil) }

// PartitionMemory is PlanMemory for one partition of a plan; nil stands for all.
func PartitionMemory(o option.Options, p *plan.Chosen) (*setup.MemoryPlan, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b := newBuild(o, p)
	b.bucket = remote.Writable(o.Out)
	if err := b.prepare(context.Background()); err != nil {
		return nil, err
	}
	return b.Memory, b.Close()
}
