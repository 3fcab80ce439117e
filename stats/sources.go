package stats

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// SourceText returns a table of what each source gave to a split, the largest first and at most so many; "" for
// fewer than two sources. Names are in it as they are, in one line.
func SourceText(sources []shard.SourceCounts, most int) string {
	if len(sources) < 2 {
		return ""
	}
	return aligned(sourceTable(sources, most))
}

// counts returns what the sources gave.
func (s *Split) counts() (out []shard.SourceCounts) {
	for i := range s.Sources {
		out = append(out, s.Sources[i].SourceCounts)
	}
	return out
}

// sourceTable has a line for each source, and one for all that are not listed.
func sourceTable(sources []shard.SourceCounts, most int) [][]string {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b shard.SourceCounts) int { return cmp.Compare(b.Tokens, a.Tokens) })
	var all shard.SourceCounts
	for _, s := range sources {
		all.Add(s)
	}
	if n := len(sources) - most; n > 1 {
		others := shard.SourceCounts{URI: units.Count(n) + " others"}
		for _, s := range sources[most:] {
			others.Add(s)
		}
		sources = append(sources[:most], others)
	}
	table := [][]string{{"source", "documents", "rows", "tokens", "share", "with loss", "bytes a token"}}
	for i := range sources {
		s, bytes := &sources[i], unknown
		if s.TextTokens > 0 {
			bytes = fmt.Sprintf("%.3f", s.BytesPerToken())
		}
		table = append(table, []string{oneLine(short(s.URI)), units.Count(s.Documents), units.Count(s.Rows),
			units.Count(s.Tokens), percent(float64(s.Tokens) / float64(all.Tokens)), units.Count(s.LossTokens), bytes})
	}
	return table
}
