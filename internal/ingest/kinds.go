package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/earlier"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/units"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/shard"
)

// ReadFinished returns the summary of a dataset that was built before, whatever its sources are now.
func ReadFinished(fsys shardfile.FS, dir string) (*report.Summary, error) {
	m, err := shard.ReadManifest(fsys, dir)
	if err != nil {
		return nil, err
	}
	return summaryOf(dir, m), nil
}

// summaryOf returns what a manifest says about a build.
func summaryOf(dir string, m *shard.Manifest) *report.Summary {
	s := &report.Summary{Out: dir, AlreadyBuilt: true,
		Stopped: fault.Plain("nothing to do: the dataset is already built"),
		Counts:  counts.Of(m.Counters, m.Dropped)}
	if cut := report.DescribeCut(m); !cut.IsZero() {
		s.Notes = append(s.Notes, cut)
	}
	s.Notes = append(s.Notes, report.Losses(m)...)
	s.AddSplits(m)
	s.Packing = report.Packed(m)
	return s
}

// finished returns the summary of a dataset that an earlier run of the same build finished, if it has
// all its shards and its sources have not changed since.
func (b *build) finished() (*report.Summary, error) {
	o := &b.opts
	d, err := shard.OpenFS(o.FS, o.Out)
	if err != nil {
		return nil, fault.Errorf("build %s: it holds a finished dataset that cannot be used: %w; "+
			"build it afresh with {overwrite}, or choose another {out}", o.Out, err)
	}
	m := d.Manifest()
	sources := b.sources()
	if err := errors.Join(sources.Unchanged(m), d.Close()); err != nil {
		return nil, err
	}
	return b.finishedSummary(m), nil
}

// finishedSummary returns the summary of a finished dataset that was found.
func (b *build) finishedSummary(m *shard.Manifest) *report.Summary {
	s := summaryOf(b.opts.Out, m)
	s.CapBytes, s.Formats, s.Warnings = b.opts.Memory, b.Formats(), b.Warnings()
	if note := earlier.UnseenChanges(b.Known()); !note.IsZero() {
		s.Notes = append(s.Notes, note)
	}
	return s
}

// sources are compared with those of a finished dataset.
func (b *build) sources() earlier.Sources {
	s := earlier.Sources{FS: b.opts.FS, Out: b.opts.Out}
	for i := range b.Phases {
		s.Sets = append(s.Sets, b.Phases[i].Set)
	}
	return s
}

// An addition is a build of its own, with its own sources, budgets, cursor and shards, that begins where a finished
// dataset ends.

func (b *build) needsOfAddition() (n setup.Needs, err error) {
	b.Shards.Settings, err = b.addition.Settings(&b.opts, b.Shards.Settings, b.Known(), b.number(1))
	n.HeldOut = int64(len(b.addition.HeldOut))
	n.WhyHeldOut = fmt.Sprintf("hashes of the %d documents that the dataset holds out", n.HeldOut)
	return n, err
}

// add reads further sources into a finished dataset.
func (b *build) add(ctx context.Context) (*report.Summary, error) {
	a, o := b.addition, &b.opts
	out, from, err := dataset.Append(o.FS, o.Out, b.Shards, a.Number, a.First)
	if errors.Is(err, dataset.ErrFinished) {
		if err := a.Unchanged(b.sources()); err != nil {
			return nil, err
		}
		return b.finishedSummary(a.Manifest), nil
	}
	if err != nil {
		return nil, advice.Of(advice.Folder, b.Facts(), err)
	}
	// What the dataset holds out and has seen counts for the addition.
	begin := func(f *flusher) error {
		f.first = a.First
		f.hold.Close(a.HeldOut)
		for i := 0; f.seen != nil; i++ {
			file := a.Manifest.File(shardfile.HashesName(i))
			if file == nil {
				break
			}
			if err := f.seen.Load(filepath.Join(o.Out, file.Name), *file); err != nil {
				return err
			}
		}
		return nil
	}
	return b.write(ctx, out, from, begin, (*flusher).finishAddition)
}

// finishAddition makes the manifest of the whole dataset from that of the dataset and what was added.
func (f *flusher) finishAddition() (*report.Summary, error) {
	if err := f.checkRows(); err != nil {
		return nil, err
	}
	s, a := &f.state, f.b.addition
	sum, err := f.commit(func(p *dataset.Provenance, run map[string]any) {
		m := a.Manifest
		p.Tokenizer = m.Tokenizer
		p.Sources = append(slices.Clone(m.Sources), p.Sources...)
		all := counts.Of(m.Counters, m.Dropped)
		all.Add(s.Counts)
		p.Counters, p.Dropped = all.Map(), all.DroppedBy
		run["sources"] = a.Times(f.b.Known())
	})
	if err != nil {
		return nil, err
	}
	sum.Added = s.Examples
	notes := []fault.Text{fault.Textf("added: %s, %s; existing shards are unchanged",
		units.Plural(s.Examples, "example"), units.Plural(s.Tokens, "token"))}
	if s.Rejected > 0 {
		notes = append(notes, fault.Textf("bad records are listed in %s", shardfile.AdditionName(shardfile.RejectsName, a.Number)))
	}
	sum.Notes = append(notes, sum.Notes...)
	return sum, nil
}

// nothingNew returns the summary of an addition whose files the dataset has already.
func nothingNew(o *option.Options) (*report.Summary, error) {
	s, err := ReadFinished(o.FS, o.Out)
	if err != nil {
		return nil, err
	}
	s.CapBytes = o.Memory
	s.Stopped = fault.Plain("nothing to do: the dataset has every file of the sources")
	s.Notes = append(s.Notes, fault.Textf("nothing new: the dataset has every file of %s",
		strings.Join(setup.Redacted(o.Sources), ", ")))
	return s, nil
}

func (b *build) needsOfPart() (setup.Needs, error) {
	n, err := b.needs()
	n.More = b.partition.Shares()
	if err == nil {
		err = b.partition.Compare(b.Shards.Settings)
	}
	if err == nil {
		b.Shards.Settings, err = b.partition.Settings()
	}
	return n, err
}

// buildPart builds one partition of a plan.
func (b *build) buildPart(ctx context.Context) (*report.Summary, error) {
	c, o := b.partition, &b.opts
	if _, err := c.Find(o.FS, o.Out); err != nil {
		return nil, err
	}
	out, from, err := dataset.CreatePart(o.FS, o.Out, b.Shards, c.Part(), c.Plan.Seal())
	if errors.Is(err, dataset.ErrFinished) {
		return b.builtPart()
	}
	if err != nil {
		return nil, advice.Of(advice.Folder, b.Facts(), err)
	}
	s, err := b.write(ctx, out, from, b.beginPart, (*flusher).finishPart)
	// A folder of a bucket has no locks: another machine may have built the part meanwhile, and a merge removes what a
	// part has not committed.
	if errors.Is(err, errOvertaken) || err != nil && b.bucket && c.IsBuilt(o.FS, o.Out) {
		if s, err = b.builtPart(); err == nil {
			s.Stopped = fault.Plain("another process committed the partition first")
		}
	}
	return s, err
}

// errOvertaken ends the build of a part that another machine has committed.
var errOvertaken = errors.New("another process committed the partition first")

func (b *build) builtPart() (*report.Summary, error) {
	s, err := b.partition.Built(b.opts.FS, b.opts.Out)
	if err == nil {
		s.Out, s.CapBytes = b.opts.Out, b.opts.Memory
	}
	return s, err
}

// beginPart makes the folder the plan's, and gives the flusher what earlier documents decided.
func (b *build) beginPart(f *flusher) error {
	c := b.partition
	if err := c.Put(b.opts.FS, b.opts.Out); err != nil {
		return err
	}
	before := &c.Entry().Before
	f.hold.Share = c.Plan.Share
	f.hold.Restore(before.Val, c.Plan.Held[:before.Held])
	f.state.Val, f.state.TextBytes = before.Val, before.TextBytes
	var copies plan.CopyReader
	f.isCopy = func(ordinal int64, key []byte) (bool, error) {
		isCopy, err := copies.Has(c.Entry().Copies, f.state.Phase, ordinal)
		if err != nil || isCopy {
			return isCopy, err
		}
		return false, f.seen.Keep(key)
	}
	return nil
}

// finishPart commits the part and returns its summary.
func (f *flusher) finishPart() (*report.Summary, error) {
	b, c := f.b, f.b.partition
	if b.bucket && c.IsBuilt(b.opts.FS, b.opts.Out) {
		return nil, errOvertaken
	}
	if err := c.Put(b.opts.FS, b.opts.Out); err != nil {
		return nil, err
	}
	if c.Number == 0 { // only the first part of a plan has it
		if err := f.writeTokenizer(); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(f.writeSeen(), f.origins.finish(&f.state, f.out)); err != nil {
		return nil, err
	}
	sum := f.summary()
	state, err := json.Marshal(f.left(sum.Seconds))
	if err != nil {
		return nil, err
	}
	m, err := f.out.Finish(dataset.Provenance{Tokenizer: b.TokenizerInfo(), Counters: map[string]int64{}, State: state,
		BySource: &f.state.Sources})
	if err != nil {
		return nil, err
	}
	sum.AddSplits(m)
	sum.Partition = c.String()
	return sum, nil
}

// left is what a part leaves to the merge.
func (f *flusher) left(seconds float64) plan.Left {
	s := &f.state
	left := plan.Left{Counts: s.Counts, Bad: s.Bad, Lines: s.Lines, Seconds: seconds,
		Finished: f.b.opts.Now().UTC().Truncate(time.Second)}
	left.Host, _ = os.Hostname()
	left.Counts.TextBytes -= f.b.partition.Entry().Before.TextBytes
	left.Counts.Unread = counts.Unread{} // it is about the part's range, not the sources
	var ends []source.Position
	for _, end := range s.Ends {
		if end.Stopped != "" {
			left.Stopped = end.Stopped
		}
		left.Ordinals = append(left.Ordinals, end.Position.Ordinal)
		left.Notes = append(left.Notes, report.Skipped(&end.Position)...)
		ends = append(ends, end.Position)
	}
	left.Columns = f.b.partition.ColumnSums(ends)
	return left
}
