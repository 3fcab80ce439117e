package serve

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/shard"
)

// mostCounted is how many sources of all datasets are counted one by one. The others of a split count as one.
const mostCounted = 256

// splitSources knows which source each row of a split came from.
type splitSources struct {
	starts  []int64 // how many rows come before each source; nil if rows do not tell theirs
	counter []int   // the index in counted of each source's
	counted []*feed.Counted
}

// sourcesOf prepares a split of a dataset, of whose sources at most so many are counted one by one.
func sourcesOf(dataset string, m *shard.Manifest, s *shard.SplitInfo, most int) *splitSources {
	out := &splitSources{}
	add := func(source string, size int64) int {
		out.counted = append(out.counted, &feed.Counted{Dataset: dataset, Split: s.Name, Source: source, Size: size})
		return len(out.counted) - 1
	}
	if len(s.Sources) < 2 || m.Schema.Segments {
		if out.counter = []int{add("", s.Examples)}; len(m.Sources) == 1 {
			out.starts, out.counted[0].Source = []int64{0}, m.Sources[0].URI
		}
		return out
	}
	largest := make([]int, len(s.Sources))
	for i := range largest {
		largest[i] = i
	}
	slices.SortStableFunc(largest, func(a, b int) int { return cmp.Compare(s.Sources[b].Tokens, s.Sources[a].Tokens) })
	others := -1
	out.counter, out.starts = make([]int, len(largest)), make([]int64, len(largest))
	for n, i := range largest {
		switch {
		case n < most || len(largest) == most+1:
			out.counter[i] = add(s.Sources[i].URI, s.Sources[i].Rows)
		case others < 0:
			others = add(fmt.Sprintf("%d others", len(largest)-most), 0)
			fallthrough
		default:
			out.counter[i] = others
			out.counted[others].Size += s.Sources[i].Rows
		}
	}
	rows := int64(0)
	for i := range s.Sources {
		out.starts[i] = rows
		rows += s.Sources[i].Rows
	}
	return out
}

// of returns the index of a row's source, 0 where that is unknown.
func (s *splitSources) of(row int64) int {
	return max(0, sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > row })-1)
}

// locate returns the source of a row, in the order of all members' sources, and its counter.
func (m *member) locate(row int64) (source int32, counter int) {
	i := m.sources.of(row)
	return int32(m.firstSource + i), m.firstCounter + m.sources.counter[i]
}

// tellSources prepares the counters of the members' sources, and checks that batches can have them as a column.
func (c *choice) tellSources() error {
	sources, unknown := 0, ""
	for i := range c.members {
		m := &c.members[i]
		m.firstSource, m.firstCounter = sources, len(c.counted)
		sources += len(m.sources.counter)
		c.counted = append(c.counted, m.sources.counted...)
		if m.sources.starts == nil {
			unknown = m.dataset.name
		}
	}
	c.collation.Counters = len(c.counted)
	switch {
	case !c.query.Sources:
	case unknown != "" && c.members[0].split.Schema().Segments:
		return feed.BadParam("sources", fmt.Sprintf("the build of %s packed its rows, each of several sources", unknown),
			"build without pack, and pack nothing here either; or serve each source as a dataset of its own, whose "+
				"mix has the column dataset")
	case unknown != "":
		return feed.BadParam("sources", fmt.Sprintf("dataset %s does not record which rows came from which source", unknown),
			"it was built by an earlier version: build it again")
	case c.length > 0 && sources > 1:
		return feed.BadParam("sources", "packed rows hold documents of several sources", "leave pack out, or sources")
	}
	return nil
}

// asked returns the share of rows that each member has in the mix at the row where the stream begins.
func (c *choice) asked() map[string]float64 {
	shares, sum := map[string]float64{}, 0.0
	current := make([]float64, len(c.members))
	for i := range c.members {
		current[i] = c.members[i].weight
	}
	for _, change := range c.order.Changes {
		if change.At <= c.query.Start {
			current = change.Weights
		}
	}
	for _, w := range current {
		sum += w
	}
	for i := range c.members {
		shares[c.members[i].dataset.name] = current[i] / sum
	}
	return shares
}
