package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/partition"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/shard"
)

// part is the target of a build of one partition of a plan.
type part struct {
	whole
	*partition.Chosen
	copies partition.CopyReader
}

func (p *part) choose(phase int, o *source.Options) { o.Only = p.Plan.Ranges(p.Number)[phase] }

func (p *part) memory() (heldOut int64, why string, more []budget.Share) {
	heldOut, why, _ = p.whole.memory()
	return heldOut, why, []budget.Share{{Name: "plan", Bytes: p.Plan.Bytes(),
		Why: fmt.Sprintf("what the plan says about partition %d", p.Number)}}
}

// settings makes the builder that of a part. It checks that the plan's options give the same
// settings here as where the plan was made.
func (p *part) settings() error {
	b := p.b
	if err := p.whole.settings(); err != nil {
		return err
	}
	if name, have, want, differ := shard.DiffSettings(p.Plan.Settings, b.Shards.Settings); differ {
		return fault.Kindf(fault.Usage, "build partition %d/%d: the plan was made with %s = %s, and here it is %s; "+
			"give this machine what the plan was made with, or make the plan again",
			p.Number, p.Plan.Partitions, name, have, want)
	}
	b.Shards.Part = shard.Part{Number: p.Number, Of: p.Plan.Partitions}
	b.Shards.Plan = p.Plan.Seal()
	var err error
	b.Shards.Settings, err = p.Settings()
	return err
}

// begin makes the folder the plan's, and gives the flusher what earlier documents decided.
func (p *part) begin(f *flusher) error {
	if err := p.writePlan(); err != nil {
		return err
	}
	before := &p.Plan.Entry(p.Number).Before
	f.hold.Share = p.Plan.Share
	f.hold.Restore(before.Val, p.Plan.Held[:before.Held])
	f.state.Val, f.state.TextBytes = before.Val, before.TextBytes
	return p.whole.begin(f)
}

// isCopy looks a document up in the plan's list of copies.
func (p *part) isCopy(f *flusher, ordinal int64, key []byte) (bool, error) {
	isCopy, err := p.copies.Has(p.Plan.Entry(p.Number).Copies, f.state.Phase, ordinal)
	if err != nil || isCopy {
		return isCopy, err
	}
	return false, f.seen.Keep(key)
}

// columnSums returns the checksums of the files of columns that were read.
func (p *part) columnSums(f *flusher) (sums []partition.ColumnSum) {
	for phase, end := range f.state.Ends {
		r := p.Plan.Ranges(p.Number)[phase]
		if len(end.Position.Done) != len(r.Inputs) { // a budget ended it, or its inputs are not listed one by one
			continue
		}
		first := 0
		if firstPhase, from := p.Plan.Start(p.Number); phase == firstPhase {
			first = from.Input
		}
		for i, done := range end.Position.Done {
			if in := &r.Inputs[i]; !in.Tail.IsZero() && in.Sum.IsZero() {
				c := partition.ColumnSum{Phase: phase, Input: first + i, Groups: done.Groups}
				if i > 0 || r.From.Offset == 0 {
					c.Sum = done.Sum
				}
				sums = append(sums, c)
			}
		}
	}
	return sums
}

// state renders the state of a finished part.
func (p *part) state(f *flusher, sum *report.Summary) (json.RawMessage, error) {
	s := &f.state
	before := &p.Plan.Entry(p.Number).Before
	left := partition.Left{Counts: s.Counts, Bad: s.Bad, Lines: s.Lines, Seconds: sum.Seconds,
		Finished: f.b.opts.Now().UTC().Truncate(time.Second)}
	left.Host, _ = os.Hostname()
	left.Counts.TextBytes -= before.TextBytes
	left.Counts.Unread = counts.Unread{} // of the part's range, not of the sources
	for _, end := range s.Ends {
		if end.Stopped != "" {
			left.Stopped = end.Stopped
		}
		left.Ordinals = append(left.Ordinals, end.Position.Ordinal)
		left.Notes = append(left.Notes, report.Skipped(&end.Position)...)
	}
	left.Columns = p.columnSums(f)
	return json.Marshal(left)
}

// finish commits the part and returns its summary.
func (p *part) finish(f *flusher) (*report.Summary, error) {
	if p.overtaken() {
		return p.giveUp(f.builder)
	}
	if err := p.writePlan(); err != nil {
		return nil, err
	}
	if p.Number == 0 { // of a plan's parts only the first has it
		if err := f.writeTokenizer(); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(f.writeSeen(), f.origins.finish(&f.state, f.builder)); err != nil {
		return nil, err
	}
	sum := f.summary()
	state, err := p.state(f, sum)
	if err != nil {
		return nil, err
	}
	m, err := f.builder.Finish(shard.Provenance{Tokenizer: p.b.TokenizerInfo(), Counters: map[string]int64{},
		State: state})
	if err != nil {
		return nil, err
	}
	sum.AddSplits(m)
	sum.Partition = p.String()
	return sum, nil
}

// failed leaves a part to another machine that has committed or merged it: a merge removes what a part has not
// committed.
func (p *part) failed(builder *shard.Builder, err error) (*report.Summary, error) {
	if p.overtaken() {
		return p.giveUp(builder)
	}
	return p.whole.failed(builder, err)
}

// overtaken reports whether another machine has built the same part into the same folder of a bucket, which has no
// locks: the part has a manifest, or was merged.
func (p *part) overtaken() bool {
	o := &p.b.opts
	if !p.b.bucket {
		return false
	}
	m, err := shard.ReadPartManifest(o.FS, o.Out, p.Number)
	if err == nil {
		return m.Part.Plan == p.Plan.Seal()
	}
	have, err := shard.ReadManifest(o.FS, o.Out)
	return err == nil && have.Merged != nil && have.Merged.Plan == p.Plan.Seal()
}

// giveUp ends the build of a part that another machine has committed meanwhile.
func (p *part) giveUp(builder *shard.Builder) (*report.Summary, error) {
	s, err := p.finished()
	if err = errors.Join(err, builder.Close()); err != nil {
		return nil, err
	}
	s.Stopped = fault.Plain("another process committed the partition first")
	return s, nil
}

// writePlan puts a copy of the plan into the folder, for the merge, unless it is there. From then on the folder is
// the plan's: parts of others are refused.
func (p *part) writePlan() error {
	o := &p.b.opts
	there, err := p.planThere()
	if there || err != nil {
		return err
	}
	path := filepath.Join(o.Out, shard.PlanName)
	part := shard.Part{Number: p.Number, Of: p.Plan.Partitions}
	if err := p.Plan.CopyTo(o.FS, filepath.Join(o.Out, part.PlanTempName()), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = p.planThere() // a part of another plan may have been first
	return err
}

// check returns an error for a folder whose parts are of another plan.
func (p *part) check() error {
	_, err := p.planThere()
	return err
}

// planThere reports whether the folder has the plan. If it has another one, the error is a *shard.SettingsError.
func (p *part) planThere() (bool, error) {
	o := &p.b.opts
	have, err := partition.ReadHead(o.FS, o.Out)
	switch {
	case fault.OptionOf(err) != "":
		return false, nil // there is none yet
	case err != nil:
		return false, err
	case have.Seal() == p.Plan.Seal():
		return true, nil
	}
	name, a, w, differ := shard.DiffSettings(have.Settings, p.Plan.Settings)
	if !differ {
		name, a, w = "partitions", fmt.Sprint(have.Partitions), fmt.Sprint(p.Plan.Partitions)
		if have.Partitions == p.Plan.Partitions {
			name, a, w = "plan", have.Seal()[:16], p.Plan.Seal()[:16]
		}
	}
	return false, &shard.SettingsError{Dir: o.Out, Name: name, Have: a, Want: w}
}

// notOpened returns the summary of a part that is built.
func (p *part) notOpened(ctx context.Context, err error) (*report.Summary, error) {
	if errors.Is(err, shard.ErrFinished) {
		return p.finished()
	}
	return p.whole.notOpened(ctx, err)
}

// finished returns the summary of a part that another run built.
func (p *part) finished() (*report.Summary, error) {
	o := &p.b.opts
	s := &report.Summary{Out: o.Out, AlreadyBuilt: true, CapBytes: o.Memory, Partition: p.String(),
		Stopped: fault.Plain("nothing to do: the partition is already built")}
	m, err := shard.ReadPartManifest(o.FS, o.Out, p.Number)
	if errors.Is(err, shard.ErrNotFound) { // merged, and tidied up
		s.Stopped = fault.Plain("nothing to do: the partitions are already merged")
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.AddSplits(m)
	for _, name := range []string{shard.PlanName, shard.ManifestName} { // a merge removes the plan
		if _, err := o.FS.Stat(filepath.Join(o.Out, name)); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return s, p.writePlan()
}
