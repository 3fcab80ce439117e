package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// MergeOptions configures a merge: what a folder of parts must hold, and the budgets of the whole build.
type MergeOptions struct {
	Partitions int
	Plan       string          // its seal
	Settings   json.RawMessage // the whole build's; goes into the manifest
	// PartSettings returns what a part's manifest has as settings.
	PartSettings func(part int) (json.RawMessage, error)
	// MaxTrain and MaxVal bound the rows of each split, MaxTokens the tokens of both together,
	// labels included, in the order of their documents; 0 means no limit. ValLast means that the
	// documents of val come after all of train.
	MaxTrain, MaxVal, MaxTokens int64
	ValLast                     bool
	// Quick compares sizes and footers of the shards, and does not read their rows.
	Quick bool
	// MaxListed is how many shards of a split the manifest itself lists at most; more are listed in a
	// file next to it. 0 means 100,000. It affects the bytes of the manifest.
	MaxListed int
	// Workers is how many shards are read at once. 0 means 1.
	Workers int
	// Visit, if set, is called with the manifest of each part, in order.
	Visit func(part int, m *shard.Manifest) error
	// Progress, if set, is called with the number of compared bytes and the total.
	Progress func(done, total int64)
}

// A MissingPartsError lists the parts that are not built.
type MissingPartsError struct {
	Dir   string
	Parts []int // the first ones
	N, Of int
}

func (e *MissingPartsError) Error() string {
	more, are := "", "are"
	if e.N == 1 {
		are = "is"
	}
	if e.N > len(e.Parts) {
		more = fmt.Sprintf(" and %d more", e.N-len(e.Parts))
	}
	return fmt.Sprintf("merge %s: %d of %d parts %s not built: %s%s", e.Dir, e.N, e.Of, are,
		strings.ReplaceAll(strings.Trim(fmt.Sprint(e.Parts), "[]"), " ", ", "), more)
}

// maxMissingListed is how many missing parts an error names.
const maxMissingListed = 20

// Merger joins the parts of a folder into a dataset. It holds only totals of each part; the lists
// of shards pass through it.
type Merger struct {
	ctx    context.Context
	fs     shardfile.FS
	dir    string
	o      MergeOptions
	lock   shardfile.Lock
	first  *shard.Manifest // part 0's
	parts  []partTotals
	splits [shardfile.NumSplits]mergedSplit
	whole  [shardfile.NumSplits]mergedSplit // all rows of all parts
	before *shard.Manifest                  // the manifest of a folder that has already been merged
	merged *shard.Dataset                   // the dataset of before, once it is needed
}

// partTotals is what a merge remembers of a part.
type partTotals struct {
	rows, tokens [shardfile.NumSplits]int64 // tokens with labels
	keep         [shardfile.NumSplits]int64 // rows that the budgets keep
	cut          [shardfile.NumSplits]*shard.ShardInfo
	listed       [shardfile.NumSplits]int // whole shards of the part that the manifest lists
	shards       int
}

// mergedSplit holds the totals of a split's kept rows.
type mergedSplit struct {
	stats   shardfile.Stats
	shards  int64
	sources []shard.SourceCounts
}

// OpenMerger takes the folder's lock and checks every part: that it exists, that it belongs to the
// plan, and that its shards are those that its manifest lists. A *MissingPartsError says which
// parts are not built.
func OpenMerger(ctx context.Context, fsys shardfile.FS, dir string, o MergeOptions) (_ *Merger, err error) {
	m := &Merger{ctx: ctx, fs: fsys, dir: dir, o: o, parts: make([]partTotals, o.Partitions)}
	if m.lock, err = lockDir(fsys, dir, shardfile.LockName); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	have, err := shard.ReadManifest(fsys, dir)
	switch {
	case err == nil && have.Merged != nil && have.Merged.Plan == o.Plan:
		m.before = have
		return m, nil
	case err == nil:
		return nil, fmt.Errorf("merge %s: %w: it holds a dataset that was not merged from this plan; "+
			"remove its manifest.json to merge the parts", dir, ErrForeign)
	case !errors.Is(err, shard.ErrNotFound):
		return nil, fmt.Errorf("%w; remove it to merge the parts", err)
	}
	if err := m.readParts(); err != nil {
		return nil, err
	}
	if err := m.unlisted(); err != nil {
		return nil, err
	}
	return m, m.compareShards()
}

// Merged returns the manifest of a folder that was merged from the plan before, else nil.
func (m *Merger) Merged() *shard.Manifest { return m.before }

// First returns the manifest of part 0.
func (m *Merger) First() *shard.Manifest { return m.first }

// Close releases the folder.
func (m *Merger) Close() error {
	if m.lock == nil {
		return nil
	}
	errs := []error{m.lock.Close()}
	m.lock = nil
	if m.merged != nil {
		errs = append(errs, m.merged.Close())
	}
	return errors.Join(errs...)
}

// part reads the manifest of a part and compares it with what the merge expects.
func (m *Merger) part(i int) (*shard.Manifest, error) {
	p, err := ReadPartManifest(m.fs, m.dir, i)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(m.dir, shardfile.Part{Number: i, Of: m.o.Partitions}.ManifestName())
	want, err := m.o.PartSettings(i)
	if err != nil {
		return nil, err
	}
	again := fmt.Sprintf("remove it and its shards, and build partition %d/%d again", i, m.o.Partitions)
	other := func(format string, args ...any) (*shard.Manifest, error) {
		return nil, shardfile.Wrong(path, fmt.Errorf("%w: %s; %s", ErrOtherPart, fmt.Sprintf(format, args...), again))
	}
	diff := DiffSettings(p.Settings, want, nil)
	switch {
	case diff != nil:
		return other("it was built with %s = %s, the plan has %s", diff.Name, diff.Have, diff.Want)
	case p.Part.Plan != m.o.Plan || p.Part.Of != m.o.Partitions:
		return other("it is part %d of %d of another plan", p.Part.Number, p.Part.Of)
	case m.first != nil && (p.Tokenizer.Fingerprint != m.first.Tokenizer.Fingerprint || p.Schema != m.first.Schema):
		return other("its tokenizer or columns are not those of part 0")
	}
	for _, s := range p.Splits {
		for j := range s.Shards {
			if n, ok := shardfile.ParsePartName(s.Shards[j].Name); !ok || n.Part != i || n.Index != j || n.Cut {
				return nil, shardfile.Corrupt(path, -1, "shard %d of split %s is named %q; %s", j, s.Name, s.Shards[j].Name,
					again)
			}
		}
	}
	return p, nil
}

// readParts reads every part once, for the totals.
func (m *Merger) readParts() error {
	missing := &MissingPartsError{Dir: m.dir, Of: m.o.Partitions}
	for i := range m.parts {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		p, err := m.part(i)
		if errors.Is(err, shard.ErrNotFound) {
			if missing.N++; missing.N <= maxMissingListed {
				missing.Parts = append(missing.Parts, i)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("merge %s: %w", m.dir, err)
		}
		if missing.N > 0 {
			continue
		}
		if i == 0 {
			p0 := *p
			p0.Splits = nil
			m.first = &p0
		}
		t := &m.parts[i]
		for _, s := range p.Splits {
			n := shardfile.SplitIndex(s.Name)
			t.rows[n], t.tokens[n] = s.Examples, s.Tokens+s.LabelTokens
			t.shards += len(s.Shards)
			m.whole[n].add(&s)
		}
		if m.o.Visit != nil {
			if err := m.o.Visit(i, p); err != nil {
				return fmt.Errorf("merge %s: part %d: %w", m.dir, i, err)
			}
		}
	}
	if missing.N > 0 {
		return missing
	}
	return nil
}

// unlisted refuses shards in the folder that no part lists: their rows would be lost, or they were
// copied from elsewhere.
func (m *Merger) unlisted() error {
	found := make([]int, len(m.parts))
	err := shardfile.WalkNames(m.fs, m.dir, func(name string) error {
		n, ok := shardfile.ParsePartName(name)
		whole, _, _, isWhole := shardfile.ParseShardName(name)
		switch {
		case isWhole:
			return fmt.Errorf("merge %s: %w: %s is a shard of a whole build (split %s); remove it", m.dir,
				ErrOtherPart, name, shardfile.SplitNames[whole])
		case !ok, n.Temp, n.Cut:
			return nil
		case n.Part >= len(m.parts):
			return fmt.Errorf("merge %s: %w: %s is of a part that the plan does not have; remove it", m.dir,
				ErrOtherPart, name)
		}
		found[n.Part]++
		return nil
	})
	if err != nil {
		return err
	}
	for i, n := range found {
		if n > m.parts[i].shards {
			return fmt.Errorf("merge %s: %w: part %d has %d shards here and lists %d; "+
				"remove its files and build partition %d/%d again",
				m.dir, ErrOtherPart, i, n, m.parts[i].shards, i, len(m.parts))
		}
	}
	return nil
}

// Tidy removes what a merged dataset does not need: the manifests of the parts, and the shards
// beyond the budgets. It returns the number of removed shards.
func (m *Merger) Tidy() (removed int, err error) {
	err = shardfile.WalkNames(m.fs, m.dir, func(name string) error {
		n, isShard := shardfile.ParsePartName(name)
		_, isFile := shardfile.ParsePartFile(name)
		switch {
		case isShard && !n.Temp:
			if have, err := m.lists(n, name); have || err != nil {
				return err
			}
		case isShard, isFile, name == shardfile.PlanName:
		default:
			return nil
		}
		if err := shardfile.RemoveAny(m.fs, filepath.Join(m.dir, name)); err != nil {
			return err
		}
		if isShard && !n.Temp {
			removed++
		}
		return nil
	})
	return removed, errors.Join(err, m.fs.SyncDir(m.dir))
}

// lists reports whether the merged manifest lists a shard.
func (m *Merger) lists(n shardfile.PartName, name string) (_ bool, err error) {
	if m.before != nil {
		if m.merged == nil {
			if m.merged, err = (shard.ReaderOptions{}).OpenManifest(m.fs, m.dir, m.before); err != nil {
				return false, err
			}
		}
		return listedIn(m.merged, n, name)
	}
	if n.Part >= len(m.parts) {
		return false, nil
	}
	t := &m.parts[n.Part]
	if n.Cut {
		return t.cut[n.Split] != nil && t.cut[n.Split].Name == name, nil
	}
	return n.Index < t.listed[n.Split], nil
}

// listedIn reports whether a dataset has the shard of a part.
func listedIn(d *shard.Dataset, n shardfile.PartName, name string) (bool, error) {
	s, err := d.Split(shardfile.SplitNames[n.Split])
	if err != nil {
		return false, nil // no rows of that split
	}
	return s.HasShard(name)
}
