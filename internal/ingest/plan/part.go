package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// Chosen is the partition of a plan that is built.
type Chosen struct {
	Plan   *Plan
	Number int // counted from 0
}

// Partition returns one of the partitions of a plan.
func (p *Plan) Partition(number int) (*Chosen, error) {
	if number < 0 || number >= p.Partitions {
		return nil, fault.BadOption("partition", fmt.Sprintf("%d/%d", number, p.Partitions),
			"partitions are numbered from 0 to %d", p.Partitions-1)
	}
	return &Chosen{Plan: p, Number: number}, nil
}

// String returns the partition's number and how many there are.
func (c *Chosen) String() string { return fmt.Sprintf("%d/%d", c.Number, c.Plan.Partitions) }

// Entry is where the partition begins, and what the documents before it decide.
func (c *Chosen) Entry() *Entry { return c.Plan.Entry(c.Number) }

// Part returns the partition as the names of files have it.
func (c *Chosen) Part() shardfile.Part {
	return shardfile.Part{Number: c.Number, Of: c.Plan.Partitions}
}

// Narrow leaves out what other partitions read of a phase.
func (c *Chosen) Narrow(phase int, o *source.Options) { o.Only = c.Plan.Ranges(c.Number)[phase] }

// Shares returns the shares of the memory cap that the plan takes.
func (c *Chosen) Shares() []budget.Share {
	return []budget.Share{{Name: "plan", Bytes: c.Plan.Bytes(),
		Why: fmt.Sprintf("what the plan says about partition %d", c.Number)}}
}

// Compare returns an error unless the plan's options give the same settings here as where the plan was made.
func (c *Chosen) Compare(here json.RawMessage) error {
	if diff := dataset.DiffSettings(c.Plan.Settings, here, nil); diff != nil {
		return fault.Kindf(fault.Usage, "build partition %v: the plan was made with %s = %s, and here it is %s; "+
			"give this machine what the plan was made with, or make the plan again", c, diff.Name, diff.Have, diff.Want)
	}
	return nil
}

// Settings returns the settings of the part: those of the whole, and which part it is.
func (c *Chosen) Settings() (json.RawMessage, error) {
	return dataset.WithSettings(c.Plan.Settings, map[string]any{"partition": c.String(), "plan": c.Plan.Seal()})
}

// Put puts a copy of the plan into a folder, for the merge, unless it is there. From then on the folder is the plan's:
// parts of others are refused.
func (c *Chosen) Put(fsys shardfile.FS, dir string) error {
	there, err := c.Find(fsys, dir)
	if there || err != nil {
		return err
	}
	path := filepath.Join(dir, shardfile.PlanName)
	if err := c.Plan.CopyTo(fsys, filepath.Join(dir, c.Part().PlanTempName()), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = c.Find(fsys, dir) // a part of another plan may have been first
	return err
}

// Find reports whether a folder has the plan. If it has another one, the error is a *dataset.SettingsError.
func (c *Chosen) Find(fsys shardfile.FS, dir string) (bool, error) {
	have, err := ReadHead(fsys, dir)
	switch {
	case fault.OptionOf(err) != "":
		return false, nil // there is none yet
	case err != nil:
		return false, err
	case have.Seal() == c.Plan.Seal():
		return true, nil
	}
	diff := dataset.DiffSettings(have.Settings, c.Plan.Settings, nil)
	switch {
	case diff != nil:
	case have.Partitions != c.Plan.Partitions:
		diff = &dataset.SettingsError{Name: "partitions", Have: fmt.Sprint(have.Partitions), Want: fmt.Sprint(c.Plan.Partitions)}
	default:
		diff = &dataset.SettingsError{Name: "plan", Have: have.Seal()[:16], Want: c.Plan.Seal()[:16]}
	}
	diff.Dir = dir
	return false, diff
}

// IsBuilt reports whether a folder has the part's manifest, or a dataset that was merged from the plan.
func (c *Chosen) IsBuilt(fsys shardfile.FS, dir string) bool {
	m, err := dataset.ReadPartManifest(fsys, dir, c.Number)
	if err == nil {
		return m.Part.Plan == c.Plan.Seal()
	}
	have, err := shard.ReadManifest(fsys, dir)
	return err == nil && have.Merged != nil && have.Merged.Plan == c.Plan.Seal()
}

// Built returns the summary of a part that another run built. It puts the plan back where a folder of parts lacks it.
func (c *Chosen) Built(fsys shardfile.FS, dir string) (*report.Summary, error) {
	s := &report.Summary{AlreadyBuilt: true, Partition: c.String(),
		Stopped: fault.Plain("nothing to do: the partition is already built")}
	m, err := dataset.ReadPartManifest(fsys, dir, c.Number)
	if errors.Is(err, shard.ErrNotFound) { // merged, and tidied up
		s.Stopped = fault.Plain("nothing to do: the partitions are already merged")
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.AddSplits(m)
	for _, name := range []string{shardfile.PlanName, shardfile.ManifestName} { // a merge removes the plan
		if _, err := fsys.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return s, c.Put(fsys, dir)
}

// ColumnSums returns the checksums of the files of columns that were read, by where each phase ended.
func (c *Chosen) ColumnSums(ends []source.Position) (sums []ColumnSum) {
	for phase, end := range ends {
		r := c.Plan.Ranges(c.Number)[phase]
		if len(end.Done) != len(r.Inputs) { // a budget ended it, or its inputs are not listed one by one
			continue
		}
		first := 0
		if firstPhase, from := c.Plan.Start(c.Number); phase == firstPhase {
			first = from.Input
		}
		for i, done := range end.Done {
			if in := &r.Inputs[i]; !in.Tail.IsZero() && in.Sum.IsZero() {
				sum := ColumnSum{Phase: phase, Input: first + i, Groups: done.Groups}
				if i > 0 || r.From.Offset == 0 {
					sum.Sum = done.Sum
				}
				sums = append(sums, sum)
			}
		}
	}
	return sums
}

// Left is what a part leaves to the merge.
type Left struct {
	Counts counts.Counts    `json:"counts"` // this part alone
	Bad    report.Rejects   `json:"bad,omitzero"`
	Notes  []fault.Text     `json:"notes,omitempty"`
	Lines  report.LineStats `json:"lines,omitzero"`
	// Ordinals are those of the next document of each phase.
	Ordinals []int64   `json:"ordinals"`
	Stopped  string    `json:"stopped,omitempty"` // the budget that ended the part
	Seconds  float64   `json:"seconds"`
	Finished time.Time `json:"finished"`
	Host     string    `json:"host"`
	// Columns are the checksums of the files of columns, which the plan did not read.
	Columns []ColumnSum `json:"columns,omitempty"`
}

// ColumnSum is the checksum of what a part read of a file of columns: everything from the file's
// beginning on, or the part's groups of rows.
type ColumnSum struct {
	Phase  int            `json:"phase"`
	Input  int            `json:"input"` // in the plan
	Sum    checksum.Sum   `json:"sum,omitzero"`
	Groups []checksum.Sum `json:"groups,omitempty"`
}
