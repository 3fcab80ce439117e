package dataset

import (
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// An addition to a merged dataset is one more part of it: the shards have the part's names, which
// follow those of the parts before, and the manifest counts a partition more.

// ofMerged reports whether the Builder adds to a merged dataset.
func (b *Builder) ofMerged() bool { return b.base != nil && b.base.Merged != nil }

// addedPart returns the part that the addition is.
func (b *Builder) addedPart() shardfile.Part {
	n := b.base.Merged.Partitions
	return shardfile.Part{Number: n, Of: n + 1}
}

// baseShards returns the shards of a split that the dataset had before the addition.
func (b *Builder) baseShards(split string) []shard.ShardInfo {
	if b.base == nil {
		return nil
	}
	if s := b.base.Split(split); s != nil {
		return s.Shards
	}
	return nil
}

// ShardName returns the name of the i-th shard of a split.
func (b *Builder) shardName(split string, i int) string {
	if !b.ofMerged() {
		return b.opts.Part.ShardName(split, i)
	}
	base := b.baseShards(split)
	if i < len(base) {
		return base[i].Name
	}
	return b.addedPart().ShardName(split, i-len(base))
}

// shardInfo returns the manifest's entry of the i-th shard of a split.
func (b *Builder) shardInfo(s *buildSplit, i int) shard.ShardInfo {
	info := s.shards[i].info(s.name, b.opts.Part, i)
	info.Name = b.shardName(s.name, i)
	return info
}

// strayOfMerged is stray for the shards of an addition to a merged dataset.
func (b *Builder) strayOfMerged(n shardfile.PartName) bool {
	s := &b.splits[n.Split]
	if n.Part != b.base.Merged.Partitions {
		return n.Part > b.base.Merged.Partitions
	}
	index := n.Index + len(b.baseShards(s.name))
	if n.Temp {
		return s.open == nil || index != len(s.shards)
	}
	return index >= len(s.shards)
}
