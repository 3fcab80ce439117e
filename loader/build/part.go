package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader/build/source"
	"github.com/dsload/dsload/shard"
)

// PartOptions returns the options of a plan for building one of its partitions. The caller may
// change only Out, Memory, Workers, CheckpointEvery and what observes the build.
func (p *Plan) PartOptions(number int) (Options, error) {
	if number < 0 || number >= p.Partitions {
		return Options{}, fault.BadOption("partition", fmt.Sprintf("%d/%d", number, p.Partitions),
			"partitions are numbered from 0 to %d", p.Partitions-1)
	}
	return Options{Settings: p.Given, Partition: &Partition{Plan: p, Number: number},
		Resources: Resources{CheckpointEvery: p.CheckpointEvery}}, nil
}

// rangeOf returns what the partition reads of a phase, nil for a whole build.
func (p *Partition) rangeOf(phase int) *source.Range {
	if p == nil {
		return nil
	}
	return p.Plan.ranges(p.Number)[phase]
}

// renderPart makes the builder that of a part. It checks that the plan's options give the same
// settings here as where the plan was made.
func (b *build) renderPart() error {
	p := b.opts.Partition
	if name, have, want, differ := shard.DiffSettings(p.Plan.Settings, b.shards.Settings); differ {
		return fault.Kindf(fault.Usage, "build partition %d/%d: the plan was made with %s = %s, and here it is %s; "+
			"give this machine what the plan was made with, or make the plan again",
			p.Number, p.Plan.Partitions, name, have, want)
	}
	b.shards.Part = shard.Part{Number: p.Number, Of: p.Plan.Partitions}
	b.shards.Plan = p.Plan.Seal()
	var err error
	b.shards.Settings, err = partSettings(p.Plan, p.Number)
	return err
}

// beginPart gives the flusher of a partition what the documents before it decided.
func (f *flusher) beginPart() {
	p := f.b.opts.Partition
	if p == nil {
		return
	}
	before := &p.Plan.part(p.Number).Before
	f.hold.share = p.Plan.Share
	f.hold.restore(before.Val, p.Plan.Held[:before.Held])
	f.state.Val, f.state.TextBytes = before.Val, before.TextBytes
}

// partState is what a part leaves to the merge.
type partState struct {
	Counts  counts.Counts `json:"counts"` // of this part alone
	Rejects []reject      `json:"rejects,omitempty"`
	Notes   []fault.Text  `json:"notes,omitempty"`
	Lines   *lineStats    `json:"lines,omitempty"`
	// Ordinals are those of the next document of each phase.
	Ordinals []int64   `json:"ordinals"`
	Stopped  string    `json:"stopped,omitempty"` // the budget that ended the part
	Seconds  float64   `json:"seconds"`
	Finished time.Time `json:"finished"`
	Host     string    `json:"host"`
	// Columns are the checksums of the files of columns, which the plan did not read.
	Columns []columnSum `json:"columns,omitempty"`
}

// columnSum is the checksum of what a part read of a file of columns: everything from the file's
// beginning on, or the part's groups of rows.
type columnSum struct {
	Phase  int          `json:"phase"`
	Input  int          `json:"input"` // in the plan
	Sum    source.Sum   `json:"sum,omitzero"`
	Groups []source.Sum `json:"groups,omitempty"`
}

// columnSums returns the checksums of the files of columns that were read.
func (f *flusher) columnSums() (sums []columnSum) {
	p := f.b.opts.Partition
	for phase, end := range f.state.Ends {
		r := p.Plan.ranges(p.Number)[phase]
		if len(end.Position.Done) != len(r.Inputs) { // a budget ended it, or its inputs are not listed one by one
			continue
		}
		first := 0
		if firstPhase, from := p.Plan.start(p.Number); phase == firstPhase {
			first = from.Input
		}
		for i, done := range end.Position.Done {
			if in := &r.Inputs[i]; !in.Tail.IsZero() && in.Sum.IsZero() {
				c := columnSum{Phase: phase, Input: first + i, Groups: done.Groups}
				if i > 0 || r.From.Offset == 0 {
					c.Sum = done.Sum
				}
				sums = append(sums, c)
			}
		}
	}
	return sums
}

// partState renders the state of a finished part.
func (f *flusher) partState(sum *Summary) (json.RawMessage, error) {
	s := &f.state
	before := &f.b.opts.Partition.Plan.part(f.b.opts.Partition.Number).Before
	p := partState{Counts: s.Counts, Rejects: s.Rejects, Lines: s.Lines, Seconds: sum.Seconds,
		Finished: f.b.opts.Now().UTC().Truncate(time.Second)}
	p.Host, _ = os.Hostname()
	p.Counts.TextBytes -= before.TextBytes
	p.Counts.Unread = counts.Unread{} // of the part's range, not of the sources
	for _, end := range s.Ends {
		if end.Stopped != "" {
			p.Stopped = end.Stopped
		}
		p.Ordinals = append(p.Ordinals, end.Position.Ordinal)
		if t := end.Position.Trailing; t != nil {
			p.Notes = append(p.Notes, fault.Plain(trailingNote(t)))
		}
		if m := end.Position.Members; m != nil {
			p.Notes = append(p.Notes, fault.Plain(membersNote(m)))
		}
	}
	p.Columns = f.columnSums()
	return json.Marshal(p)
}

// finishPart commits the part and returns its summary.
func (f *flusher) finishPart() (*Summary, error) {
	b := f.b
	if committed(b.opts) {
		return f.yield()
	}
	if err := b.writePlan(); err != nil {
		return nil, err
	}
	if err := errors.Join(f.writeTokenizer(), f.writeSeen(), f.origins.finish(&f.state, f.builder)); err != nil {
		return nil, err
	}
	sum := f.summary()
	state, err := f.partState(sum)
	if err != nil {
		return nil, err
	}
	m, err := f.builder.Finish(shard.Provenance{Tokenizer: b.tokenizerInfo(), Counters: map[string]int64{},
		State: state})
	if err != nil {
		return nil, err
	}
	sum.addSplits(m)
	sum.Partition = fmt.Sprintf("%d/%d", b.opts.Partition.Number, b.opts.Partition.Plan.Partitions)
	return sum, nil
}

// writePlan puts a copy of the plan into the folder, for the merge, unless it is there.
func (b *build) writePlan() error {
	p := b.opts.Partition.Plan
	path := filepath.Join(b.opts.Out, shard.PlanName)
	if have, err := readPlanHead(b.opts.FS, b.opts.Out); err == nil && have.Seal() == p.Seal() {
		return nil
	}
	part := shard.Part{Number: b.opts.Partition.Number, Of: p.Partitions}
	if err := p.copyTo(b.opts.FS, filepath.Join(b.opts.Out, part.PlanTempName()), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// checkPlan refuses a folder whose parts are of another plan.
func (b *build) checkPlan() error {
	p := b.opts.Partition.Plan
	have, err := readPlanHead(b.opts.FS, b.opts.Out)
	switch {
	case fault.OptionOf(err) != "":
		return nil // none is there yet
	case err != nil:
		return err
	case have.Seal() == p.Seal():
		return nil
	}
	name, a, w, differ := shard.DiffSettings(have.Settings, p.Settings)
	if !differ {
		name, a, w = "partitions", fmt.Sprint(have.Partitions), fmt.Sprint(p.Partitions)
		if reflect.DeepEqual(have.Partitions, p.Partitions) {
			name, a, w = "plan", have.Seal()[:16], p.Seal()[:16]
		}
	}
	return &shard.SettingsError{Dir: b.opts.Out, Name: name, Have: a, Want: w}
}

// finishedPart returns the summary of a part that another run built.
func (b *build) finishedPart() (*Summary, error) {
	o := &b.opts
	s := &Summary{Out: o.Out, AlreadyBuilt: true, CapBytes: o.Memory, Stopped: fault.Plain("nothing to do: the partition is already built"),
		Partition: fmt.Sprintf("%d/%d", o.Partition.Number, o.Partition.Plan.Partitions)}
	m, err := shard.ReadPartManifest(o.FS, o.Out, o.Partition.Number)
	if errors.Is(err, shard.ErrNotFound) { // merged, and tidied up
		s.Stopped = fault.Plain("nothing to do: the partitions are already merged")
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.addSplits(m)
	for _, name := range []string{shard.PlanName, shard.ManifestName} { // a merge removes the plan
		if _, err := o.FS.Stat(filepath.Join(o.Out, name)); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return s, b.writePlan()
}
