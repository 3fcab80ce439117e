package dataset

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// An addition is a build into a folder that holds a finished dataset. Its shards follow those of
// the dataset, under names that the manifest does not list, and its checkpoint has its own name.
// Until the new manifest replaces the old one, the folder is the old dataset, for every reader and
// after every crash. Files that the old manifest lists are never written.

// openBase makes the Builder add to the dataset in the folder.
func (b *Builder) openBase(names []string) (*Checkpoint, error) {
	m, err := b.manifest()
	if err != nil {
		return nil, err
	}
	begun := slices.Contains(names, b.checkpointName())
	if DiffSettings(m.Settings, b.opts.Settings, nil) == nil {
		return nil, b.alreadyFinished(begun)
	}
	if err := b.checkBase(m); err != nil {
		return nil, err
	}
	resumed := begun && !b.opts.Overwrite
	if resumed {
		st, err := readHead(b.fs, b.path(b.checkpointName()))
		if err != nil {
			return nil, err
		}
		// A crash at the end of an addition that the manifest includes left its checkpoint.
		resumed = DiffSettings(st.opts.Settings, m.Settings, nil) != nil
	}
	if !resumed {
		if err := b.clearAddition(names, begun && !b.opts.Overwrite); err != nil {
			return nil, err
		}
	}
	b.base, b.files = m, slices.Clone(m.Files)
	if resumed {
		return b.resume(names)
	}
	if err := b.adopt(m); err != nil {
		return nil, err
	}
	if err := b.removeStrays(names, true); err != nil {
		return nil, err
	}
	// The first checkpoint says that shards which the manifest does not list belong to an addition.
	return nil, b.writeCheckpoint(false)
}

// clearAddition makes a folder ready for a new addition: it removes the checkpoints that earlier builds left.
func (b *Builder) clearAddition(names []string, ended bool) error {
	if err := b.claim(); err != nil {
		return err
	}
	if slices.Contains(names, shardfile.BuildCheckpointName) { // a crash left it at the end of the first build
		if err := b.remove(shardfile.BuildCheckpointName); err != nil {
			return err
		}
	}
	switch {
	case ended: // a crash left it at the end of the last addition
		return b.removeCheckpoint()
	case slices.Contains(names, b.checkpointName()):
		return b.remove(b.checkpointName())
	}
	return nil
}

// checkBase returns why nothing can be added to a dataset, or nil.
func (b *Builder) checkBase(m *shard.Manifest) error {
	wanted := b.opts
	wanted.Settings, wanted.ShardBytes = m.Settings, 0
	if err := sameBuild(b.dir, BuilderOptions{Settings: m.Settings, Schema: m.Schema}, wanted); err != nil {
		return err
	}
	switch {
	case m.Merged != nil && m.Merged.Partitions >= shardfile.MaxParts:
		return fmt.Errorf("%s: %w: an addition is one part more, and there are %d", b.dir, shard.ErrTooLarge, shardfile.MaxParts)
	case slices.ContainsFunc(m.Splits, func(s shard.SplitInfo) bool { return s.List != nil }):
		return fmt.Errorf("%s: %w: a split has more than %d shards, and nothing can be added to it; "+
			"build the new sources into a dataset of their own, or build all again with larger shards",
			b.dir, shard.ErrTooLarge, shardfile.MaxListed)
	}
	return nil
}

// adopt takes over the rows of the dataset that is added to.
func (b *Builder) adopt(m *shard.Manifest) error {
	shards := 0
	for i := range b.splits {
		s := &b.splits[i]
		if info := m.Split(s.name); info != nil {
			addStats(&s.stats, info)
			for j := range info.Shards {
				sh := &info.Shards[j]
				c := committedShard{rows: sh.Rows, tokens: sh.Tokens, bytes: sh.Bytes}
				_, err := hex.Decode(c.sum[:], []byte(sh.BLAKE3))
				_, footerErr := hex.Decode(c.footer[:], []byte(sh.Footer))
				if err := errors.Join(err, footerErr); err != nil {
					return err
				}
				s.shards = append(s.shards, c)
			}
			s.countBegun()
		}
		if b.opts.FirstDocument > 0 {
			s.document, s.part = b.opts.FirstDocument-1, math.MaxInt32
		}
		shards += len(s.shards)
	}
	return b.opts.checkShards(b.dir, shards)
}

// extendsBase reports whether the restored state begins with the shards of the dataset.
func (b *Builder) extendsBase() bool {
	for i := range b.splits {
		s := &b.splits[i]
		for j, info := range b.baseSplit(s.name).Shards {
			if j >= len(s.shards) || b.shardInfo(s, j) != info {
				return false
			}
		}
	}
	return true
}

// sideFile reports whether an unfinished or abandoned addition may have left a file of this name
// next to its shards.
func (b *Builder) sideFile(name string) bool {
	switch name {
	case shardfile.ManifestName, shardfile.RunName, shardfile.LockName, shardfile.BuildCheckpointName, b.checkpointName():
		return false
	}
	if _, _, _, isShard := shardfile.ParseShardName(name); isShard || !shardfile.OwnName(name) {
		return false
	}
	if _, isPart := shardfile.OfPart(name); isPart || name == shardfile.PlanName { // an unfinished merge left it
		return false
	}
	return !slices.ContainsFunc(b.base.Files, func(f shard.FileInfo) bool { return f.Name == name })
}

// HasAddition reports whether a folder holds an addition that is not finished.
func HasAddition(fsys shardfile.ReadFS, dir string) bool {
	_, err := fsys.Stat(shardfile.Join(dir, shardfile.AdditionCheckpointName))
	return err == nil
}

// An addition to a merged dataset is one more part of it: the shards have the part's names, which
// follow those of the parts before, and the manifest counts a partition more.

// ofMerged reports whether the Builder adds to a merged dataset.
func (b *Builder) ofMerged() bool { return b.base != nil && b.base.Merged != nil }

// addedPart returns the part that the addition is.
func (b *Builder) addedPart() shardfile.Part {
	n := b.base.Merged.Partitions
	return shardfile.Part{Number: n, Of: n + 1}
}

// baseSplit returns what the dataset had of a split before the addition, without shards if it had nothing.
func (b *Builder) baseSplit(split string) (had shard.SplitInfo) {
	if b.base != nil {
		if s := b.base.Split(split); s != nil {
			had = *s
		}
	}
	return had
}

// shardName returns the name of the i-th shard of a split.
func (b *Builder) shardName(split string, i int) string {
	if !b.ofMerged() {
		return b.opts.Part.ShardName(split, i)
	}
	base := b.baseSplit(split).Shards
	if i < len(base) {
		return base[i].Name
	}
	return b.addedPart().ShardName(split, i-len(base))
}

// shardInfo returns the manifest's entry of the i-th shard of a split.
func (b *Builder) shardInfo(s *buildSplit, i int) shard.ShardInfo {
	return s.shards[i].info(b.shardName(s.name, i))
}
