package shard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// A Part is one partition of a build. The builders of all parts write into one folder at the same
// time, each its own shards, checkpoint, lock and manifest; a merge then writes the folder's
// manifest. The zero Part is a whole build.
type Part struct {
	Number int // from 0
	Of     int // partitions; 0 for a whole build
}

// MaxParts is the number of names that parts can have.
const MaxParts = maxShardIndex + 1

// isPart reports whether p is one partition of several.
func (p Part) isPart() bool { return p.Of > 0 }

func (p Part) validate() error {
	if p.isPart() && (p.Number < 0 || p.Number >= p.Of || p.Of > MaxParts) || !p.isPart() && p != (Part{}) {
		return fmt.Errorf("part %d of %d: %w: numbers go from 0 to the number of parts less one, at most %d", p.Number,
			p.Of, ErrRange, MaxParts)
	}
	return nil
}

// PartInfo is what the manifest of a part holds in addition to a dataset's.
type PartInfo struct {
	Number int    `json:"number"`
	Of     int    `json:"of"`
	Plan   string `json:"plan"` // the seal of the plan
	// State is what the build passes to the merge.
	State json.RawMessage `json:"state"`
}

// MergeInfo is what the manifest of a merged dataset holds in addition.
type MergeInfo struct {
	Partitions int    `json:"partitions"`
	Plan       string `json:"plan"` // the seal of the plan
}

// restorePart is restore for a part. It leaves the files of other parts alone, and holds none of
// their names: a folder may have millions.
func (b *Builder) restorePart() (*Checkpoint, error) {
	has := map[string]bool{}
	var mine []string
	foreign, merged, begun := "", "", false
	err := walkNames(b.fs, b.dir, func(n string) error {
		part, isPart := ofPart(n)
		switch {
		case isPart && part == b.opts.Part.Number:
			mine = append(mine, n)
			has[n] = true
			begun = begun || n != b.opts.Part.lockName()
		case isPart:
			begun = true
		case n == lockName, n == ManifestName, n == PlanName && ownFile(b.fs, b.dir, n, false), ignoredName(n):
		case isMergedFile(strings.TrimSuffix(n, tempSuffix)):
			merged = n
		case foreign == "" || n < foreign:
			foreign = n
		}
		return nil
	})
	if err == nil {
		err = b.merged()
	}
	if err != nil {
		return nil, err
	}
	if !begun { // then no merge can have made it
		foreign = cmp.Or(foreign, merged)
	}
	if foreign != "" {
		return nil, b.foreign(foreign)
	}
	slices.Sort(mine)
	switch {
	case b.opts.Overwrite:
		if err := b.clearPart(mine); err != nil {
			return nil, err
		}
	case has[b.opts.Part.ManifestName()]:
		if err := b.finishedPart(has[b.opts.Part.checkpointName()]); !errors.Is(err, errPartDamaged) {
			return nil, err
		}
		if err := b.merged(); err != nil { // it removes the shards after a budget
			return nil, err
		}
		if err := b.clearPart(mine); err != nil {
			return nil, err
		}
	case has[b.opts.Part.checkpointName()]:
		return b.resume(mine)
	default:
		if err := b.clearPart(mine); err != nil { // without a checkpoint they are leftovers
			return nil, err
		}
	}
	return nil, b.writeCheckpoint(false)
}

// merged returns the error for a folder with a manifest: ErrFinished if it was merged from this
// plan. It returns nil for a folder without one. A merge writes the manifest before it removes
// anything of the parts: a process that missed some of their files while it listed the folder finds
// the manifest afterwards.
func (b *Builder) merged() error {
	if _, err := b.fs.Stat(b.path(ManifestName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m, err := b.manifest()
	if err != nil {
		return err
	}
	if m.Merged != nil && m.Merged.Plan == b.opts.Plan {
		return fmt.Errorf("%s: %w", b.dir, ErrFinished)
	}
	return fmt.Errorf("%s: %w: it holds a dataset that was not made by this plan", b.dir, ErrForeign)
}

// errPartDamaged means that shards of a finished part are missing, so that it is built again.
var errPartDamaged = errors.New("shards of the part are missing")

// finishedPart returns the error for a part with a manifest.
func (b *Builder) finishedPart(checkpoint bool) error {
	m, err := ReadPartManifest(b.fs, b.dir, b.opts.Part.Number)
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) {
		return errPartDamaged
	}
	if err != nil {
		return err
	}
	if err := sameBuild(b.dir, BuilderOptions{Settings: m.Settings, Schema: m.Schema}, b.opts); err != nil {
		return err
	}
	for _, s := range m.Splits {
		for i := range s.Shards {
			if st, err := b.fs.Stat(b.path(s.Shards[i].Name)); errors.Is(err, fs.ErrNotExist) || err == nil &&
				st.Size() != s.Shards[i].Bytes {
				return errPartDamaged
			} else if err != nil {
				return err
			}
		}
	}
	if checkpoint {
		if err := b.removeCheckpoint(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", b.dir, ErrFinished)
}

// clearPart removes what earlier builds of the part left, its manifest and checkpoint first.
func (b *Builder) clearPart(mine []string) error {
	last := func(name string) bool {
		return name != b.opts.Part.ManifestName() && name != b.opts.Part.checkpointName()
	}
	for _, late := range []bool{false, true} {
		for _, n := range mine {
			if n == b.opts.Part.lockName() || last(n) != late {
				continue
			}
			if err := removeAny(b.fs, b.path(n)); err != nil {
				return err
			}
			b.namesNew = true
		}
		if err := b.syncNames(); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile reads a whole file of at most limit bytes.
func ReadFile(fsys FS, path string, limit int64) ([]byte, error) {
	return readSmallFile(fsys, path, limit)
}

// WriteFile writes a file under a temporary name, syncs it and renames it to path.
func WriteFile(fsys FS, temp, path string, data []byte) error {
	return WriteFileFrom(fsys, temp, path, bytes.NewReader(data))
}

// WriteFileFrom is WriteFile with what a reader gives.
func WriteFileFrom(fsys FS, temp, path string, r io.Reader) error {
	f, err := createNew(fsys, temp)
	if err != nil {
		return err
	}
	if _, err = io.Copy(io.NewOffsetWriter(f, 0), r); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return fsys.Rename(temp, path)
}

// InMerged reports whether a folder holds the dataset that was merged from a plan, and whether that
// dataset has a file of this name.
func InMerged(fsys FS, dir, plan, name string) (merged, has bool, err error) {
	m, err := ReadManifest(fsys, dir)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && (m.Merged == nil || m.Merged.Plan != plan):
		return false, false, nil
	case err != nil:
		return false, false, err
	}
	n, isShard := parsePartName(name)
	if !isShard {
		return true, m.File(name) != nil, nil
	}
	s := m.Split(splitNames[n.split])
	if s == nil {
		return true, false, nil
	}
	table, err := openTable(fsys, dir, m, s)
	if err != nil {
		return true, false, err
	}
	has, err = table.has(n)
	return true, has, errors.Join(err, table.Close())
}
