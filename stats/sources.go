package stats

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/markup"
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

func (s *Split) sourcesHTML() markup.HTML {
	if s.Sources == nil {
		return `<p class="soft">The dataset was built by a version that did not record it.</p>`
	}
	var rows markup.HTML
	for i, cells := range sourceTable(s.Sources, maxSources) {
		cell := []string{"<td>%s</td>", `<th scope="col">%s</th>`}[max(0, 1-i)]
		rows += markup.Format(`<tr><th scope="row"><bdi class="name">%s</bdi></th>%s</tr>`+"\n", cells[0],
			markup.Each(cells[1:], func(_ int, text string) markup.HTML { return markup.Format(cell, text) }))
	}
	return markup.Format(`<div class="scroll" tabindex="0" role="region" aria-label="Sources of %s"><table>%s</table></div>`,
		s.Name, rows)
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
