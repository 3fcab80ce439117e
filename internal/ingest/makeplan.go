package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/partition"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// MakePlan reads the sources once and cuts the build into partitions of about equal size.
func MakePlan(ctx context.Context, o option.Options, partitions int) (_ *partition.Plan, err error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := planable(&o, partitions); err != nil {
		return nil, err
	}
	b, scan := newScan(o, partitions)
	if err := b.prepare(ctx); err != nil {
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
	p := partition.New(partitions)
	p.Settings, p.Given, p.CheckpointEvery = b.Shards.Settings, o.Settings, o.CheckpointEvery
	if p.Folder, err = relativeTo(&o); err != nil {
		return nil, err
	}
	if err := scan.fill(ctx, p); err != nil {
		return nil, advice.Of(advice.Rows, b.Facts(), err)
	}
	for i := range b.Phases {
		p.Notes = append(p.Notes, b.Phases[i].Set.Notes()...)
	}
	p.Notes = append(p.Notes, b.Warnings()...)
	if note := b.EndNote(); !note.IsZero() {
		p.Notes = append(p.Notes, note)
	}
	scan.complete()
	return p, nil
}

// PlanningMemory returns the memory cap as a sum for making a plan; nothing is read.
func PlanningMemory(o option.Options, partitions int) (*setup.MemoryPlan, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b, _ := newScan(o, max(1, partitions))
	return b.memoryPlan()
}

// planable returns an error for options with which partitions cannot be built.
func planable(o *option.Options, partitions int) error {
	if partitions < 1 || partitions > shard.MaxParts {
		return fault.BadOption("partitions", partitions, "must be from 1 to %d",
			shard.MaxParts)
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
	for _, name := range []string{o.Tokenizer, o.Template} {
		if _, err := os.Stat(name); err == nil {
			names = append(names, name)
		}
	}
	if !slices.ContainsFunc(names, relative) {
		return "", nil
	}
	return os.Getwd()
}
