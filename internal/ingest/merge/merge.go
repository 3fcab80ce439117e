// Package merge makes one dataset of the parts of a plan: it checks them, joins their small files, and
// writes the manifest.
package merge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
)

// Options configures a merge.
type Options struct {
	// Dir is the folder that holds the parts: a path, or an address of s3://, gs:// or az://.
	Dir string
	// Quick compares sizes and footers of the shards, and does not read their rows.
	Quick bool
	// Workers is how many shards are compared at once. Default: the CPU quota.
	Workers int
	// FS is the file system of Dir. Default: the operating system's.
	FS shardfile.FS
}

// Summary is what a merge made.
type Summary struct {
	Out        string                `json:"out"`
	Partitions int                   `json:"partitions"`
	Splits     []report.SplitSummary `json:"splits"`
	Documents  int64                 `json:"documents"`
	CutBy      []string              `json:"cut_by,omitempty"`
	Removed    int                   `json:"removed_shards,omitempty"` // shards that budgets left out
	Notes      []fault.Text          `json:"notes,omitempty"`
	Already    bool                  `json:"already_merged,omitempty"`
	Seconds    float64               `json:"seconds"`
	PeakRSS    int64                 `json:"peak_rss_bytes"`
}

// merged gathers what the parts left.
type merged struct {
	plan    *plan.Plan
	counts  counts.Counts
	bad     report.Rejects
	notes   []fault.Text
	lines   []report.LineStats // one for each part
	seconds float64
	columns columnChain
	extras  map[string][]partFile // keys: their names in the dataset
}

// Run checks the parts of a plan in a folder and writes the folder's manifest. No row is moved,
// except those of the one shard of each split in which a budget ends the build.
func Run(ctx context.Context, o Options) (_ *Summary, err error) {
	if remote.Writable(o.Dir) {
		return runInto(ctx, o)
	}
	start := time.Now()
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	if o.FS == nil {
		o.FS = shardfile.OS()
	}
	g, plan, err := openParts(o)
	if err != nil {
		return nil, err
	}
	m, err := dataset.OpenMerger(ctx, o.FS, o.Dir, plan)
	if missing := (*dataset.MissingPartsError)(nil); errors.As(err, &missing) {
		return nil, fault.Advise(err, "build each, such as with 'dsload build --plan %s --partition %d/%d --out %s', and "+
			"merge again", shell.Quote(shardfile.Join(o.Dir, shardfile.PlanName)), missing.Parts[0], missing.Of, shell.Quote(o.Dir))
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s := &Summary{Out: o.Dir, Partitions: plan.Partitions, Already: m.Merged() != nil}
	if m.Merged() == nil {
		files, end := g.files(o)
		res, err := m.Finish(func(cutBy []string) (dataset.Provenance, error) { return g.provenance(m, cutBy, start) },
			files)
		end()
		if err != nil {
			return nil, err
		}
		var lines report.LineStats // of the parts of which rows were kept
		for part, of := range g.lines {
			if kept := m.Kept(part); kept[0] > of.Before[0] || kept[1] > of.Before[1] {
				lines.Add(of)
			}
		}
		s.CutBy, s.Notes = res.CutBy, slices.Concat(g.plan.Notes, g.notes, lines.Notes(), g.bad.Notes())
		for i := range res.Splits {
			res.Splits[i].Shards = nil
		}
		s.add(&shard.Manifest{Schema: m.First().Schema, Settings: g.plan.Settings, Counters: g.counts.Map(),
			Dropped: g.counts.DroppedBy, Splits: res.Splits})
		for i := range s.Splits {
			s.Splits[i].Shards = int(res.Shards[i])
		}
	} else {
		s.add(m.Merged())
	}
	if s.Removed, err = m.Tidy(); err != nil {
		return nil, err
	}
	s.Seconds, s.PeakRSS = time.Since(start).Seconds(), resident.Peak()
	return s, nil
}

// add adds the splits, counts and notes of a manifest.
func (s *Summary) add(m *shard.Manifest) {
	full := &report.Summary{}
	full.AddSplits(m)
	c := counts.Of(m.Counters, m.Dropped)
	s.Splits, s.Documents = full.Splits, c.Documents
	s.Notes = slices.Concat(s.Notes, report.ValRest(c.ValRest), report.Losses(m))
	if cut := report.DescribeCut(m); !cut.IsZero() {
		s.Notes = append(s.Notes, cut)
	}
}

// openParts reads the plan of a folder of parts. In a merged folder, the manifest stands for the
// plan.
func openParts(o Options) (*merged, dataset.MergeOptions, error) {
	g := &merged{}
	so := dataset.MergeOptions{Quick: o.Quick, Workers: o.Workers, Visit: g.visit}
	if have, err := shard.ReadManifest(o.FS, o.Dir); err == nil && have.Merged != nil {
		g.plan = &plan.Plan{}
		so.Plan, so.Partitions = have.Merged.Plan, have.Merged.Partitions
		return g, so, nil
	}
	plan, err := plan.ReadFolder(o.FS, o.Dir)
	if fault.OptionOf(err) != "" {
		if m, err := dataset.ReadPartManifest(o.FS, o.Dir, 0); err == nil {
			return nil, so, fmt.Errorf("merge %s: %s is missing; run 'dsload build --plan plan.json --partition 0/%d "+
				"--out %s' again, which writes it", o.Dir, shardfile.PlanName, m.Part.Of, shell.Quote(o.Dir))
		}
		return nil, so, fault.Kindf(fault.Usage, "merge %s: there are no parts: build the partitions of a plan into it "+
			"first, with 'dsload build --plan plan.json --partition 0/N --out %s'", o.Dir, shell.Quote(o.Dir))
	}
	if err != nil {
		return nil, so, err
	}
	g.plan = plan
	p := &plan.Given
	so.Partitions, so.Plan, so.Settings = plan.Partitions, plan.Seal(), plan.Settings
	so.MaxTrain, so.MaxVal, so.MaxTokens, so.ValLast = p.MaxExamples, p.MaxValExamples, p.MaxTokens,
		len(p.ValSources) > 0
	so.PartSettings = func(part int) (json.RawMessage, error) {
		one, err := plan.Partition(part)
		if err != nil {
			return nil, err
		}
		return one.Settings()
	}
	return g, so, nil
}

// visit takes what a part left. Parts come in order.
func (g *merged) visit(part int, m *shard.Manifest) error {
	var p plan.Left
	if err := json.Unmarshal(m.Part.State, &p); err != nil {
		return err
	}
	if err := g.checkOrdinals(part, &p); err != nil {
		return err
	}
	g.counts.Add(p.Counts)
	g.bad.Merge(&p.Bad)
	g.notes = append(g.notes, p.Notes...)
	g.lines = append(g.lines, p.Lines)
	g.addColumnSums(p.Columns)
	g.noteFiles(part, m)
	g.seconds += p.Seconds
	return nil
}

// addColumnSums joins the checksums of files of columns, whose parts come in order.
func (g *merged) addColumnSums(sums []plan.ColumnSum) {
	inputs := 0
	for i := range g.plan.Phases {
		inputs += len(g.plan.Phases[i].Inputs)
	}
	if inputs != len(g.plan.Sources) {
		return // folders share a line, whose checksum is over those of all their files
	}
	for _, c := range sums {
		at := c.Input
		for phase := range min(c.Phase, len(g.plan.Phases)) {
			at += len(g.plan.Phases[phase].Inputs)
		}
		if at < 0 || at >= inputs {
			continue
		}
		if g.columns.at != at {
			g.columns = columnChain{at: at}
		}
		if !c.Sum.IsZero() {
			g.columns.sum = c.Sum
		}
		if g.columns.sum = source.JoinGroupSums(g.columns.sum, c.Groups); !g.columns.sum.IsZero() {
			g.plan.Sources[at].Checksum = g.columns.sum.Tagged()
		}
	}
}

// columnChain is the checksum of the groups of a file of columns so far.
type columnChain struct {
	at  int // the source
	sum checksum.Sum
}

// checkOrdinals compares the documents that a part read with those that the plan counted: unless a
// budget stopped it, a part ends with the number that the next begins with.
func (g *merged) checkOrdinals(part int, p *plan.Left) error {
	phase, to := g.plan.Start(part + 1)
	if len(p.Counts.CutBy) > 0 || phase >= len(p.Ordinals) {
		return nil
	}
	first, from := g.plan.Start(part)
	if first == phase && from == to || p.Stopped != "" {
		return nil
	}
	if have := p.Ordinals[phase]; have != to.Ordinal {
		return fmt.Errorf("%w: it read documents up to %d, the plan counted %d; make the plan again",
			shard.ErrCorrupt, have, to.Ordinal)
	}
	return nil
}

func (g *merged) provenance(m *dataset.Merger, cutBy []string, start time.Time) (dataset.Provenance, error) {
	g.counts.Add(counts.Counts{CutBy: cutBy})
	if len(cutBy) == 0 { // otherwise the budgets that the merge applies leave more
		g.counts.Unread = g.plan.Unread
	}
	host, _ := os.Hostname() // for people; it may be missing
	return dataset.Provenance{Tokenizer: m.First().Tokenizer, Sources: g.plan.Sources, Counters: g.counts.Map(),
		Dropped: g.counts.DroppedBy,
		Run: map[string]any{
			"finished": time.Now().UTC().Format(time.RFC3339), "host": host, "partitions": g.plan.Partitions,
			"seconds": g.seconds, "merge_seconds": time.Since(start).Seconds(), "peak_rss_bytes": resident.Peak(),
		}}, nil
}

// runInto is Run for a folder of a bucket.
func runInto(ctx context.Context, o Options) (s *Summary, err error) {
	err = store.Merge(ctx, o.Dir, func(fsys shardfile.FS, dir string) (err error) {
		inner := o
		inner.FS, inner.Dir = fsys, dir
		s, err = Run(ctx, inner)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Out = strings.TrimRight(o.Dir, "/")
	return s, nil
}
