package dataset

import (
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// splitInfo returns the manifest's entry for a split with these rows, without name and shards.
func splitInfo(s *shardfile.Stats) shard.SplitInfo {
	return shard.SplitInfo{Examples: s.Rows, Tokens: s.Tokens, LabelTokens: s.LabelTokens, MinLength: s.MinLength,
		MaxLength: s.MaxLength,
		MaxLabels: s.MaxLabels, Lengths: s.Lengths()}
}
