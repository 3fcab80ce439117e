package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/pack"
)

// MakePlan reads the sources once and cuts the build into partitions of about equal size.
func MakePlan(ctx context.Context, o option.Options, partitions int) (_ *plan.Plan, err error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := planable(&o, partitions); err != nil {
		return nil, err
	}
	b := newBuild(o, nil)
	if err := b.prepareScan(ctx, partitions); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.CheckEnds(); err != nil {
		return nil, err
	}
	for i := range b.Phases {
		if size, known := b.Phases[i].Set.EstimateBytes(); !known {
			return nil, fault.BadOption("partitions", partitions,
				"the size of %s is not known (%d bytes of the others), and a plan reads all of it; "+
					"bound it, as in synth://wikitext?bytes=1GB", b.Phases[i].Set.URI(0), size)
		}
	}
	p := plan.New(partitions)
	p.Settings, p.Given, p.CheckpointEvery = b.Shards.Settings, o.Settings, o.CheckpointEvery
	if p.Folder, err = relativeTo(&o); err != nil {
		return nil, err
	}
	if err := b.fill(ctx, p); err != nil {
		return nil, advice.Of(advice.Rows, b.Facts(), err)
	}
	for i := range b.Phases {
		p.Notes = append(p.Notes, b.Phases[i].Set.Notes()...)
	}
	p.Notes = slices.Concat(p.Notes, b.Warnings(), b.EndNotes())
	return p, nil
}

// PlanningMemory returns the memory cap as a sum for making a plan; nothing is read.
func PlanningMemory(o option.Options, partitions int) (*setup.MemoryPlan, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b := newBuild(o, nil)
	if err := b.prepareScan(context.Background(), max(1, partitions)); err != nil {
		return nil, err
	}
	return b.Memory, b.Close()
}

// prepareScan is prepare for a build that writes nothing, but makes a plan.
func (b *build) prepareScan(ctx context.Context, partitions int) error {
	b.resumes = false
	return b.open(ctx, setup.Reading{}, func() (setup.Needs, error) {
		n, err := b.needs()
		inputs := 0
		for i := range b.Phases {
			inputs += b.Phases[i].Set.Len()
		}
		n.More = plan.Shares(&b.opts, inputs, partitions)
		return n, err
	})
}

// errNoPlanMade ends a plan that was interrupted.
var errNoPlanMade = fmt.Errorf("plan: %w; nothing was written", ErrInterrupted)

// fill finds where the partitions begin and what the documents before them decide.
func (b *build) fill(ctx context.Context, p *plan.Plan) (err error) {
	b.scan = plan.NewScan(&b.opts, p, b.sources().Sets)
	if !plan.NeedsText(&b.opts) {
		return b.countAll(ctx)
	}
	temp, err := os.MkdirTemp("", "dsload-plan-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	from := &dataset.Resume{SeenLog: filepath.Join(temp, "seen"), SeenScratch: filepath.Join(temp, "seen.tmp")}
	f, err := b.newFlusher(ctx, dataset.Discard{}, from, b.beginScan)
	if err == nil {
		_, err = b.stream(ctx, f, func(f *flusher) (*report.Summary, error) {
			b.scan.Complete(f.hold, f.sources(), f.unread().counts())
			return nil, nil
		})
		err = errors.Join(err, f.closeSeen())
	}
	if errors.Is(err, ErrInterrupted) {
		return errNoPlanMade
	}
	return err
}

// beginScan tells the scan how documents are held out, and of the copies that are left out.
func (b *build) beginScan(f *flusher) error {
	b.scan.Hold(f.hold)
	f.isCopy = func(ordinal int64, key []byte) (bool, error) {
		isCopy, err := f.seen.Add(key)
		if isCopy {
			err = errors.Join(err, b.scan.Copy(f.state.Phase, ordinal))
		}
		return isCopy, err
	}
	return nil
}

// countAll fills the plan by counting, where no document decides about later ones.
func (b *build) countAll(ctx context.Context) error {
	defer b.report(b.opts.Progress)()
	f := &flusher{b: b}
	for i := range b.Phases {
		set := b.Phases[i].Set
		b.meter.totalBytes.Store(max(0, set.TotalBytes()))
		b.meter.sourceBytes.Store(0)
		at, err := b.scan.Count(ctx, set, b.Memory.Readers, func(n int64) { b.meter.sourceBytes.Add(n) })
		if ctx.Err() != nil {
			return errNoPlanMade
		}
		if err != nil {
			return err
		}
		now := b.meter.read()
		now.Documents += at.Ordinal
		b.meter.show(now)
		f.state.Ends = append(f.state.Ends, phaseEnd{Position: at, Input: set.Len()})
	}
	b.scan.Complete(nil, f.sources(), counts.Unread{})
	return nil
}

// planable returns an error for options with which partitions cannot be built.
func planable(o *option.Options, partitions int) error {
	if partitions < 1 || partitions > shardfile.MaxParts {
		return fault.BadOption("partitions", partitions, "must be from 1 to %d",
			shardfile.MaxParts)
	}
	if slices.Contains(o.Sources, "-") || slices.Contains(o.ValSources, "-") {
		return fault.BadOption("partitions", partitions,
			"standard input can be read only once, and partitions read for themselves; write it to a file first")
	}
	for _, arg := range slices.Concat(o.Sources, o.ValSources) {
		if safe := uris.Redact(arg); safe != arg {
			return fault.BadOption("partitions", partitions,
				"a part of the address of %s is hidden, for it may grant access, and a plan keeps no secrets; "+
					"name it by an s3://, gs://, az:// or hf:// address, whose credentials come from the "+
					"environment, or download it", safe)
		}
	}
	if o.Append {
		return fault.BadOption("append", nil,
			"a plan builds a dataset of its own; build the new sources into another folder")
	}
	if o.Map != "" {
		return fault.BadOption("map", o.Map, "a plan does not run commands; send the files through it before, "+
			"or build without partitions")
	}
	if o.Pack != pack.None {
		return fault.BadOption("pack", string(o.Pack),
			"rows that are packed while partitions are built cannot be those of the single build; "+
				"leave it out, and pack while serving")
	}
	return nil
}

// relativeTo returns the working folder if any name among the options depends on it.
func relativeTo(o *option.Options) (string, error) {
	relative := func(name string) bool { return !filepath.IsAbs(name) && !strings.Contains(name, "://") }
	names := slices.Concat(o.Sources, o.ValSources)
	for _, name := range []string{o.Tokenizer, o.Template, o.Prompt, o.Target} {
		if _, err := os.Stat(name); err == nil {
			names = append(names, name)
		}
	}
	if !slices.ContainsFunc(names, relative) {
		return "", nil
	}
	return os.Getwd()
}
