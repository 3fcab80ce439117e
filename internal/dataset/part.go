package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// restorePart is restore for a part. It leaves the files of other parts alone, and holds none of
// their names: a folder may have millions.
func (b *Builder) restorePart() (*Checkpoint, error) {
	var mine []string
	foreign, merged, begun := "", "", false
	err := shardfile.WalkNames(b.fs, b.dir, func(n string) error {
		part, isPart := shardfile.OfPart(n)
		switch {
		case isPart && part == b.opts.Part.Number:
			mine = append(mine, n)
			begun = begun || n != b.opts.Part.LockName()
		case isPart:
			begun = true
		case n == shardfile.LockName, n == shardfile.ManifestName, n == shardfile.PlanName && ownFile(b.fs, b.dir, n, false), shardfile.IgnoredName(n):
		case shardfile.IsMergedFile(strings.TrimSuffix(n, shardfile.TempSuffix)):
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
	built, resumes := slices.Contains(mine, b.opts.Part.ManifestName()), slices.Contains(mine, b.opts.Part.CheckpointName())
	switch {
	case b.opts.Overwrite:
	case built:
		if err := b.finishedPart(resumes); !errors.Is(err, errPartDamaged) {
			return nil, err
		}
		if err := b.merged(); err != nil { // it removes the shards after a budget
			return nil, err
		}
	case resumes:
		return b.resume(mine)
	}
	if err := b.clearPart(mine); err != nil { // without a checkpoint they are leftovers
		return nil, err
	}
	return nil, b.writeCheckpoint(false)
}

// merged returns the error for a folder with a manifest: ErrFinished if it was merged from this
// plan. It returns nil for a folder without one. A merge writes the manifest before it removes
// anything of the parts: a process that missed some of their files while it listed the folder finds
// the manifest afterwards.
func (b *Builder) merged() error {
	if _, err := b.fs.Stat(b.path(shardfile.ManifestName)); errors.Is(err, fs.ErrNotExist) {
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
	if errors.Is(err, shard.ErrCorrupt) || errors.Is(err, shard.ErrTruncated) {
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
	return b.alreadyFinished(checkpoint)
}

// clearPart removes what earlier builds of the part left, its manifest and checkpoint first.
func (b *Builder) clearPart(mine []string) error {
	p := b.opts.Part
	var first, rest []string
	for _, n := range mine {
		switch n {
		case p.LockName():
		case p.ManifestName(), p.CheckpointName():
			first = append(first, n)
		default:
			rest = append(rest, n)
		}
	}
	if err := b.remove(first...); err != nil {
		return err
	}
	return b.remove(rest...)
}

// InMerged reports whether a folder holds the dataset that was merged from a plan, and whether that
// dataset has a file of this name.
func InMerged(fsys shardfile.FS, dir, plan, name string) (merged, has bool, err error) {
	m, err := shard.ReadManifest(fsys, dir)
	switch {
	case errors.Is(err, shard.ErrNotFound), err == nil && (m.Merged == nil || m.Merged.Plan != plan):
		return false, false, nil
	case err != nil:
		return false, false, err
	}
	n, isShard := shardfile.ParsePartName(name)
	if !isShard {
		return true, m.File(name) != nil, nil
	}
	d, err := shard.ReaderOptions{}.OpenManifest(fsys, dir, m)
	if err != nil {
		return true, false, err
	}
	has, err = listedIn(d, n, name)
	return true, has, errors.Join(err, d.Close())
}

// ReadPartManifest reads and checks the manifest of a part. The error is ErrNotFound if the part is
// not finished.
func ReadPartManifest(fsys shardfile.FS, dir string, number int) (*shard.Manifest, error) {
	name := shardfile.Part{Number: number, Of: shardfile.MaxParts}.ManifestName()
	m, err := shard.ReadManifestFile(fsys, dir, name)
	if err == nil && (m.Part == nil || m.Part.Number != number) {
		return nil, shardfile.Corrupt(shardfile.Join(dir, name), -1, "not the manifest of part %d", number)
	}
	return m, err
}
