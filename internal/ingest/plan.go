package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/remote"
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
	Phases          []PlanPhase     `json:"phases"`
	// Held are the hashes of the documents held out, in the order of their choice.
	Held []uint64 `json:"held,omitempty"`
	// Sources lists the sources of all phases, as the manifest does.
	Sources []shard.SourceInfo `json:"sources"`
	Notes   []fault.Text       `json:"notes,omitempty"`
	// Unread is what `max-bytes` leaves of the sources.
	Unread counts.Unread `json:"unread,omitzero"`
	Parts  []PlanPart    `json:"parts"`

	seal string
	// Of a plan that holds one partition's lists alone.
	first int    // number of the partition that is Parts[0]
	path  string // of its file
}

// PlanPhase lists the inputs of one phase: of the sources, or of those of the split val.
type PlanPhase struct {
	Inputs    []source.Listed `json:"inputs"`
	Documents int64           `json:"documents"` // the ordinal after the last

	before, total int // inputs before the first of Inputs, and all, where Inputs are one partition's alone
}

// count returns the number of inputs of the phase.
func (p *PlanPhase) count() int { return max(p.total, len(p.Inputs)) }

// part returns partition i.
func (p *Plan) part(i int) *PlanPart { return &p.Parts[i-p.first] }

// PlanPart is where one partition begins; it ends where the next does.
type PlanPart struct {
	Phase int         `json:"phase"`
	From  source.Mark `json:"from"`
	// FirstSum and LastSum are over what the partition has of its first and last input, where it
	// does not have all. They are equal where both are one.
	FirstSum  source.Sum `json:"first_sum,omitzero"`
	LastSum   source.Sum `json:"last_sum,omitzero"`
	TextBytes int64      `json:"text_bytes"` // estimate of what it reads
	// Copies are the documents of each phase that `dedup` leaves out, see copies.go.
	Copies [][]byte `json:"copies,omitempty"`
	// What the partitions before decide.
	Before PlanState `json:"before"`
}

// PlanState is what the documents before a partition decide about those in it.
type PlanState struct {
	Val       int64 `json:"val,omitempty"`        // examples held out
	Held      int   `json:"held,omitempty"`       // how many of Plan.Held
	TextBytes int64 `json:"text_bytes,omitempty"` // counted for `max-bytes`
}

const (
	planFormat  = "dsload-plan"
	planVersion = 1
	// maxPlanBytes bounds what readPlan reads.
	maxPlanBytes = 1 << 30
)

// Partition is the partition of a plan that is built.
type Partition struct {
	Plan   *Plan
	Number int // from 0
}

// MakePlan reads the sources once and cuts the build into partitions of about equal size.
func MakePlan(ctx context.Context, o option.Options, partitions int) (_ *Plan, err error) {
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
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.checkEnds(); err != nil {
		return nil, err
	}
	for i := range b.phases {
		if size, known := b.phases[i].set.EstimateBytes(); !known {
			return nil, fault.BadOption("partitions", partitions,
				"the size of %s is not known (%d bytes of the others), and a plan reads all of it; "+
					"bound it, as in synth://wikitext?bytes=1GB", b.phases[i].set.URI(0), size)
		}
	}
	p := &Plan{Format: planFormat, Version: planVersion, Partitions: partitions, Settings: b.shards.Settings,
		Given: o.Settings, CheckpointEvery: o.CheckpointEvery}
	if p.Folder, err = relativeTo(&o); err != nil {
		return nil, err
	}
	if err := scan.fill(ctx, p); err != nil {
		return nil, err
	}
	for i := range b.phases {
		p.Notes = append(p.Notes, b.phases[i].set.Notes()...)
	}
	p.Notes = append(p.Notes, b.warnings()...)
	if note := b.endNote(); !note.IsZero() {
		p.Notes = append(p.Notes, note)
	}
	scan.complete()
	return p, nil
}

// PlanningMemory returns the memory cap as a sum for making a plan; nothing is read.
func PlanningMemory(o option.Options, partitions int) (*MemoryPlan, error) {
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
		if safe := source.Redact(arg); safe != arg {
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

// Write writes the plan to a file, or to an address of s3:// or gs://, atomically.
func (p *Plan) Write(ctx context.Context, path string) error {
	data, err := p.encode()
	switch {
	case err != nil:
	case remote.Writable(path):
		err = putPlan(ctx, path, data)
	default:
		err = shard.WriteFile(shard.OS(), fmt.Sprintf("%s.%d.tmp", path, os.Getpid()), path, data)
	}
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// encode returns the plan's file, sealed like a manifest.
func (p *Plan) encode() ([]byte, error) {
	var members map[string]json.RawMessage
	data, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(data, &members)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	data, err = shard.EncodeSealed(members)
	if err == nil {
		p.seal, err = shard.CheckSealed("plan", data)
	}
	return data, err
}

// Seal returns the checksum of the plan's file, by which parts know that they are of one plan.
func (p *Plan) Seal() string { return p.seal }

// readPlan reads a plan and checks it.
func readPlan(fsys shard.FS, path string) (*Plan, error) {
	data, err := shard.ReadFile(fsys, path, maxPlanBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoPlan(path)
	case errors.Is(err, shard.ErrNotRegular), errors.Is(err, shard.ErrTooLarge):
		return nil, notAPlan(path)
	case err != nil:
		return nil, err
	}
	return parsePlan(path, data, "make it again")
}

// folderPlan reads the copy of the plan in a folder of parts.
func folderPlan(fsys shard.FS, dir string) (*Plan, error) {
	path := filepath.Join(dir, shard.PlanName)
	data, err := shard.ReadFile(fsys, path, maxPlanBytes)
	if err != nil {
		return readPlan(fsys, path) // for its error
	}
	return parsePlan(path, data, "replace it with the plan that the parts were built from")
}

func errNoPlan(path string) error {
	return fault.BadOption("plan", path, "there is no such file; make it with 'dsload plan'")
}

// putPlan writes a plan into a bucket.
func putPlan(ctx context.Context, uri string, data []byte) error {
	store := remote.NewStore(remote.Options{})
	defer store.Close()
	return store.Put(ctx, uri, bytes.NewReader(data), int64(len(data)))
}

// parsePlan checks the bytes of a plan. The advice says what to do if they are damaged.
func parsePlan(path string, data []byte, advice string) (_ *Plan, err error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if json.Unmarshal(data, &head) == nil && head.Format != planFormat || !bytes.Contains(data, []byte(planFormat)) {
		return nil, notAPlan(path)
	}
	if head.Version > planVersion {
		return nil, fault.BadOption("plan", path,
			"has the version %d; this dsload reads %d, use a later one",
			head.Version, planVersion)
	}
	p := new(Plan)
	if p.seal, err = shard.CheckSealed(path, data); err != nil {
		return nil, fmt.Errorf("read plan %w; %s", err, advice)
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(p); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	return p, nil
}

// check makes sure that no number leads outside a list.
func (p *Plan) check() error {
	if p.Partitions != len(p.Parts) || p.Partitions < 1 || len(p.Phases) < 1 || len(p.Phases) > 2 {
		return fmt.Errorf("%d partitions, %d listed, %d phases: %w", p.Partitions, len(p.Parts), len(p.Phases),
			shard.ErrCorrupt)
	}
	return p.checkParts()
}

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

// start returns where partition i begins. For the one after the last it is the end of everything.
func (p *Plan) start(i int) (phase int, from source.Mark) {
	if i < p.Partitions {
		return p.part(i).Phase, p.part(i).From
	}
	last := len(p.Phases) - 1
	return last, source.Mark{Input: p.Phases[last].count(), Ordinal: p.Phases[last].Documents}
}

// ranges returns what partition i reads of each phase.
func (p *Plan) ranges(i int) []*source.Range {
	first, from := p.start(i)
	last, to := p.start(i + 1)
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
			r.Inputs[0].Sum = p.part(i).FirstSum
		}
		if end.Offset > 0 {
			r.Inputs[len(r.Inputs)-1].Sum = p.part(i).LastSum
			r.To = source.Mark{Input: len(r.Inputs) - 1, Offset: end.Offset, Row: end.Row}
		}
	}
	return out
}
