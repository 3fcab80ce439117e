// Package plan is what plan, part and merge share: the plan, which is read whole or for one partition alone; the scan
// that makes one while the sources are read; the partition that is chosen to be built; and what a part leaves to the
// merge. The stages that a scan watches, and those that build a part, are in package ingest.
package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// A Plan cuts a build into partitions that can be built anywhere, in any order, and give together
// the rows of the single build. It is made by reading the sources once: it notes at which record
// each partition begins, with which document number, and what the documents before it decide about
// its own.
type Plan struct {
	Format     string `json:"format"`
	Version    int    `json:"version"`
	Partitions int    `json:"partitions"`
	// Folder is where the relative names among the options begin; "" where all are absolute.
	Folder   string          `json:"folder,omitempty"`
	Settings json.RawMessage `json:"settings"`
	// Given are the settings before they were resolved on the machine that made the plan.
	Given           option.Settings `json:"given"`
	CheckpointEvery int64           `json:"checkpoint-every"`
	Share           float64         `json:"share,omitempty"` // holdout.share
	Phases          []Phase         `json:"phases"`
	// Held are the hashes of the documents held out, in the order of their choice.
	Held []uint64 `json:"held,omitempty"`
	// Sources lists the sources of all phases, as the manifest does.
	Sources []shard.SourceInfo `json:"sources"`
	Notes   []fault.Text       `json:"notes,omitempty"`
	// Unread is what `max-bytes` leaves of the sources.
	Unread counts.Unread `json:"unread,omitzero"`
	Parts  []Entry       `json:"parts"`

	seal string
	// Of a plan that holds one partition's lists alone.
	first int    // number of the partition that is Parts[0]
	path  string // where its file is
}

// Phase lists the inputs of one phase: of the sources, or of those of the split val.
type Phase struct {
	Inputs    []source.Listed `json:"inputs"`
	Documents int64           `json:"documents"` // the ordinal after the last

	before, total int // inputs before the first of Inputs, and all, where Inputs are one partition's alone
}

// count returns the number of inputs of the phase.
func (p *Phase) count() int { return max(p.total, len(p.Inputs)) }

// Entry returns partition i.
func (p *Plan) Entry(i int) *Entry { return &p.Parts[i-p.first] }

// Entry is where one partition begins; it ends where the next does.
type Entry struct {
	Phase int         `json:"phase"`
	From  source.Mark `json:"from"`
	// FirstSum and LastSum are over what the partition has of its first and last input, where it
	// does not have all. They are equal where both are one.
	FirstSum  checksum.Sum `json:"first_sum,omitzero"`
	LastSum   checksum.Sum `json:"last_sum,omitzero"`
	TextBytes int64        `json:"text_bytes"` // estimate of what it reads
	// Copies are the documents of each phase that `dedup` leaves out, see copies.go.
	Copies [][]byte `json:"copies,omitempty"`
	// What the partitions before decide.
	Before State `json:"before"`
}

// State is what the documents before a partition decide about those in it.
type State struct {
	Val       int64 `json:"val,omitempty"`        // examples held out
	Held      int   `json:"held,omitempty"`       // how many of Plan.Held
	TextBytes int64 `json:"text_bytes,omitempty"` // counted for `max-bytes`
}

const (
	planVersion = 1
	// maxPlanBytes bounds the file of a plan.
	maxPlanBytes = 1 << 30
)

// Write writes the plan to a file, or to an address of s3://, gs:// or az://, atomically.
func (p *Plan) Write(ctx context.Context, path string) error {
	data, err := p.encode()
	switch {
	case err != nil:
	case remote.Writable(path):
		store := remote.NewStore(remote.Options{})
		defer store.Close()
		_, err = store.Put(ctx, path, bytes.NewReader(data), int64(len(data)), remote.Condition{})
	default:
		err = shardfile.WriteFile(shardfile.OS(), fmt.Sprintf("%s.%d.tmp", path, os.Getpid()), path, bytes.NewReader(data))
	}
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// encode returns the plan's file, sealed like a manifest.
func (p *Plan) encode() ([]byte, error) {
	data, err := shardfile.EncodeSealed(p)
	if err == nil {
		p.seal, err = shardfile.CheckSeal("plan", data)
	}
	return data, err
}

// Seal returns the checksum of the plan's file, by which parts know that they are of one plan.
func (p *Plan) Seal() string { return p.seal }

// New returns an empty plan of a number of partitions.
func New(partitions int) *Plan {
	return &Plan{Format: shardfile.PlanFormat, Version: planVersion, Partitions: partitions}
}

// checkParts makes sure that no number leads outside a list.
func (p *Plan) checkParts() error {
	for i := range p.Parts {
		part := &p.Parts[i]
		if part.Phase < 0 || part.Phase >= len(p.Phases) || part.From.Input < 0 ||
			part.From.Input > p.Phases[part.Phase].count() || part.Before.Held < 0 ||
			part.Before.Held > len(p.Held) {
			return fmt.Errorf("partition %d: %w", p.first+i, shard.ErrCorrupt)
		}
	}
	return nil
}

// Start returns where partition i begins. For the one after the last it is the end of everything.
func (p *Plan) Start(i int) (phase int, from source.Mark) {
	if i < p.Partitions {
		return p.Entry(i).Phase, p.Entry(i).From
	}
	last := len(p.Phases) - 1
	return last, source.Mark{Input: p.Phases[last].count(), Ordinal: p.Phases[last].Documents}
}

// Ranges returns what partition i reads of each phase.
func (p *Plan) Ranges(i int) []*source.Range {
	first, from := p.Start(i)
	last, to := p.Start(i + 1)
	out := make([]*source.Range, len(p.Phases))
	for phase := range p.Phases {
		inputs, before := p.Phases[phase].Inputs, p.Phases[phase].before
		r := &source.Range{}
		out[phase] = r
		if phase < first || phase > last {
			continue
		}
		end := source.Mark{Input: p.Phases[phase].count()}
		if phase == first {
			r.From = from
		}
		if phase == last {
			end = to
		}
		stop := end.Input
		if end.Offset > 0 {
			stop++
		}
		start := r.From.Input
		r.From.Input = 0
		empty := phase == first && phase == last && from.Input == to.Input && from.Offset == to.Offset
		if stop <= start || empty { // cuts that are closer than a record lie at one place
			r.From = source.Mark{Ordinal: r.From.Ordinal}
			continue
		}
		r.Inputs = slices.Clone(inputs[start-before : stop-before])
		if r.From.Offset > 0 {
			r.Inputs[0].Sum = p.Entry(i).FirstSum
		}
		if end.Offset > 0 {
			r.Inputs[len(r.Inputs)-1].Sum = p.Entry(i).LastSum
			r.To = source.Mark{Input: len(r.Inputs) - 1, Offset: end.Offset, Row: end.Row}
		}
	}
	return out
}

// Options returns the options of the plan for building the partition. The caller may change only Out,
// Memory, Workers, CheckpointEvery and what observes the build.
func (c *Chosen) Options() option.Options {
	return option.Options{Settings: c.Plan.Given, Resources: option.Resources{CheckpointEvery: c.Plan.CheckpointEvery}}
}
