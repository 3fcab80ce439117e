package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// MergeOptions configures a merge: what a folder of parts must hold, and the budgets of the whole build.
type MergeOptions struct {
	Partitions int
	Plan       string          // its seal
	Settings   json.RawMessage // of the whole build; goes into the manifest
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
	Visit func(part int, m *Manifest) error
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
	names := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		names[i] = fmt.Sprint(p)
	}
	more, are := "", "are"
	if e.N == 1 {
		are = "is"
	}
	if e.N > len(e.Parts) {
		more = fmt.Sprintf(" and %d more", e.N-len(e.Parts))
	}
	return fmt.Sprintf("merge %s: %d of %d parts %s not built: %s%s", e.Dir, e.N, e.Of, are, strings.Join(names, ", "),
		more)
}

// maxMissingListed is how many missing parts an error names.
const maxMissingListed = 20

// Merger joins the parts of a folder into a dataset. It holds only totals of each part; the lists
// of shards pass through it.
type Merger struct {
	ctx    context.Context
	fs     FS
	dir    string
	o      MergeOptions
	lock   Lock
	first  *Manifest // of part 0
	parts  []partTotals
	splits [numSplits]mergedSplit
	whole  [numSplits]mergedSplit // all rows of all parts
	before *Manifest              // of a folder that has already been merged
	tables [numSplits]shardTable  // of before, once they are needed
}

// partTotals is what a merge remembers of a part.
type partTotals struct {
	rows, tokens [numSplits]int64 // tokens with labels
	keep         [numSplits]int64 // rows that the budgets keep
	cut          [numSplits]*ShardInfo
	listed       [numSplits]int // whole shards of the part that the manifest lists
	shards       int
}

// mergedSplit holds the totals of a split's kept rows.
type mergedSplit struct {
	stats  splitStats
	shards int64
}

// OpenMerger takes the folder's lock and checks every part: that it exists, that it belongs to the
// plan, and that its shards are those that its manifest lists. A *MissingPartsError says which
// parts are not built.
func OpenMerger(ctx context.Context, fsys FS, dir string, o MergeOptions) (_ *Merger, err error) {
	m := &Merger{ctx: ctx, fs: fsys, dir: dir, o: o, parts: make([]partTotals, o.Partitions)}
	if m.lock, err = lockDir(fsys, dir, lockName); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	have, err := ReadManifest(fsys, dir)
	switch {
	case err == nil && have.Merged != nil && have.Merged.Plan == o.Plan:
		m.before = have
		return m, nil
	case err == nil:
		return nil, fmt.Errorf("merge %s: %w: it holds a dataset that was not merged from this plan; "+
			"remove its manifest.json to merge the parts", dir, ErrForeign)
	case !errors.Is(err, ErrNotFound):
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
func (m *Merger) Merged() *Manifest { return m.before }

// First returns the manifest of part 0.
func (m *Merger) First() *Manifest { return m.first }

// Close releases the folder.
func (m *Merger) Close() error {
	if m.lock == nil {
		return nil
	}
	errs := []error{m.lock.Close()}
	m.lock = nil
	for _, t := range m.tables {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	return errors.Join(errs...)
}

// part reads the manifest of a part and compares it with what the merge expects.
func (m *Merger) part(i int) (*Manifest, error) {
	p, err := ReadPartManifest(m.fs, m.dir, i)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(m.dir, Part{i, m.o.Partitions}.ManifestName())
	want, err := m.o.PartSettings(i)
	if err != nil {
		return nil, err
	}
	again := fmt.Sprintf("remove it and its shards, and build partition %d/%d again", i, m.o.Partitions)
	if name, have, want, differ := diffSettings(p.Settings, want, nil); differ {
		return nil, &FileError{File: path, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w: it was built with %s = %s, the plan has %s; %s", ErrOtherPart, name, have, want,
				again)}
	}
	if p.Part.Plan != m.o.Plan || p.Part.Of != m.o.Partitions {
		return nil, &FileError{File: path, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w: it is part %d of %d of another plan; %s", ErrOtherPart, p.Part.Number, p.Part.Of,
				again)}
	}
	if m.first != nil && (p.Tokenizer.Fingerprint != m.first.Tokenizer.Fingerprint || p.Schema != m.first.Schema) {
		return nil, &FileError{File: path, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w: its tokenizer or columns are not those of part 0; %s", ErrOtherPart, again)}
	}
	for _, s := range p.Splits {
		for j := range s.Shards {
			if n, ok := parsePartName(s.Shards[j].Name); !ok || n.part != i || n.index != j || n.cut {
				return nil, corrupt(path, -1, "shard %d of split %s is named %q; %s", j, s.Name, s.Shards[j].Name,
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
		if errors.Is(err, ErrNotFound) {
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
			n := splitIndex(s.Name)
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
	err := walkNames(m.fs, m.dir, func(name string) error {
		n, ok := parsePartName(name)
		whole, _, _, isWhole := parseShardName(name)
		switch {
		case isWhole:
			return fmt.Errorf("merge %s: %w: %s is a shard of a whole build (split %s); remove it", m.dir,
				ErrOtherPart, name, splitNames[whole])
		case !ok, n.temp, n.cut:
			return nil
		case n.part >= len(m.parts):
			return fmt.Errorf("merge %s: %w: %s is of a part that the plan does not have; remove it", m.dir,
				ErrOtherPart, name)
		}
		found[n.part]++
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
	err = walkNames(m.fs, m.dir, func(name string) error {
		n, isShard := parsePartName(name)
		_, isFile := parsePartFile(name)
		switch {
		case isShard && !n.temp:
			if have, err := m.lists(n, name); have || err != nil {
				return err
			}
		case isShard, isFile, name == PlanName:
		default:
			return nil
		}
		if err := removeAny(m.fs, filepath.Join(m.dir, name)); err != nil {
			return err
		}
		if isShard && !n.temp {
			removed++
		}
		return nil
	})
	return removed, errors.Join(err, m.fs.SyncDir(m.dir))
}

// lists reports whether the merged manifest lists a shard.
func (m *Merger) lists(n partName, name string) (bool, error) {
	if m.before != nil {
		return m.listedBefore(n)
	}
	if n.part >= len(m.parts) {
		return false, nil
	}
	t := &m.parts[n.part]
	if n.cut {
		return t.cut[n.split] != nil && t.cut[n.split].Name == name, nil
	}
	return n.index < t.listed[n.split], nil
}

// listedBefore reports whether the manifest of a folder that was merged before lists a shard.
func (m *Merger) listedBefore(n partName) (_ bool, err error) {
	s := m.before.Split(splitNames[n.split])
	if s == nil {
		return false, nil
	}
	if m.tables[n.split] == nil {
		if m.tables[n.split], err = openTable(m.fs, m.dir, m.before, s); err != nil {
			return false, err
		}
	}
	return m.tables[n.split].has(n)
}

// nameWalker is a file system that can walk a large folder without a list of its names.
type nameWalker interface {
	WalkNames(dir string, visit func(name string) error) error
}

// walkNames calls visit for every name in a folder, which it may remove.
func walkNames(fsys FS, dir string, visit func(name string) error) error {
	if w, ok := fsys.(nameWalker); ok {
		return w.WalkNames(dir, visit)
	}
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}
