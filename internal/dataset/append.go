package dataset

import (
	"encoding/hex"
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

// errNotOfBase reports a checkpoint of an addition to another dataset than the folder holds.
var errNotOfBase = fmt.Errorf("%w: it belongs to an addition to another dataset", shard.ErrCorrupt)

// openBase makes the Builder add to the dataset in the folder.
func (b *Builder) openBase(names []string, has map[string]bool) (*Checkpoint, error) {
	m, err := b.manifest()
	if err != nil {
		return nil, err
	}
	if _, _, _, differ := diffSettings(m.Settings, b.opts.Settings, nil); !differ {
		if has[b.checkpointName()] {
			if err := b.endLeft(); err != nil {
				return nil, err
			}
		}
		return nil, fmt.Errorf("%s: %w", b.dir, ErrFinished)
	}
	if err := b.checkBase(m); err != nil {
		return nil, err
	}
	resumed, ended := has[b.checkpointName()] && !b.opts.Overwrite, false
	if resumed {
		if ended, err = b.additionEnded(m); err != nil {
			return nil, err
		}
		resumed = !ended
	}
	if !resumed {
		if err := b.clearAddition(has, ended); err != nil {
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
func (b *Builder) clearAddition(has map[string]bool, ended bool) error {
	if err := b.claim(); err != nil {
		return err
	}
	if has[shardfile.BuildCheckpointName] { // a crash left it at the end of the first build
		if err := b.removeFile(shardfile.BuildCheckpointName); err != nil {
			return err
		}
	}
	switch {
	case ended: // a crash left it at the end of the last addition
		return b.removeCheckpoint()
	case has[b.checkpointName()]:
		return b.removeFile(b.checkpointName())
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

// additionEnded reports whether the checkpoint belongs to an addition that the manifest includes: a
// crash at the end left it.
func (b *Builder) additionEnded(m *shard.Manifest) (bool, error) {
	r, err := openCheckpoint(b.fs, b.path(b.checkpointName()))
	if err != nil {
		return false, err
	}
	defer r.f.Close()
	st, err := r.head()
	if err != nil {
		return false, err
	}
	_, _, _, differ := diffSettings(st.opts.Settings, m.Settings, nil)
	return !differ, nil
}

// removeFile removes a file durably.
func (b *Builder) removeFile(name string) error {
	if err := shardfile.RemoveAny(b.fs, b.path(name)); err != nil {
		return err
	}
	b.namesNew = true
	return b.syncNames()
}

// adopt takes over the rows of the dataset that is added to.
func (b *Builder) adopt(m *shard.Manifest) error {
	shards := 0
	for i := range b.splits {
		s := &b.splits[i]
		if info := m.Split(s.name); info != nil {
			s.stats = statsOf(info)
			for j := range info.Shards {
				c, err := committedOf(&info.Shards[j])
				if err != nil {
					return err
				}
				s.shards = append(s.shards, c)
			}
		}
		if b.opts.FirstDocument > 0 {
			s.document, s.part = b.opts.FirstDocument-1, math.MaxInt32
		}
		shards += len(s.shards)
	}
	return b.opts.checkShards(b.dir, shards)
}

// extends reports whether the restored state begins with the shards of the dataset.
func (b *Builder) extends(m *shard.Manifest) bool {
	for i := range b.splits {
		s, info := &b.splits[i], m.Split(shardfile.SplitNames[i])
		if info == nil {
			continue
		}
		for j := range info.Shards {
			if j >= len(s.shards) || b.shardInfo(s, j) != info.Shards[j] {
				return false
			}
		}
	}
	return true
}

// committedOf is the inverse of committedShard.info.
func committedOf(info *shard.ShardInfo) (c committedShard, err error) {
	c.rows, c.tokens, c.bytes = info.Rows, info.Tokens, info.Bytes
	_, err = hex.Decode(c.sum[:], []byte(info.BLAKE3))
	if err == nil {
		_, err = hex.Decode(c.footer[:], []byte(info.Footer))
	}
	return c, err
}

// statsOf is the inverse of splitInfo.
func statsOf(info *shard.SplitInfo) shardfile.Stats {
	st := shardfile.Stats{Rows: info.Examples, Tokens: info.Tokens, LabelTokens: info.LabelTokens,
		MinLength: info.MinLength, MaxLength: info.MaxLength, MaxLabels: info.MaxLabels}
	for _, h := range info.Lengths {
		st.Hist[shardfile.LengthBucket(int(h[0]))] = [2]int64{h[1], h[2]}
	}
	return st
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
func HasAddition(fsys shardfile.FS, dir string) bool {
	_, err := fsys.Stat(shardfile.Join(dir, shardfile.AdditionCheckpointName))
	return err == nil
}
