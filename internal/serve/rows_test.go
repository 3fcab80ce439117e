package serve

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Locations are sorted by numbers where these can say it all, and as the comparison says.
func TestLocationsAreSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.IntRange(1, 3).Draw(t, "sources")
		most := rapid.SampledFrom([]int64{3, 1 << 40, 1 << 60}).Draw(t, "most")
		var p locations
		for i := range rapid.IntRange(0, 40).Draw(t, "rows") {
			p.found = append(p.found, location{row: rapid.Int64Range(0, most).Draw(t, "row"),
				source: rapid.Int32Range(0, int32(sources-1)).Draw(t, "source"), index: int32(i)})
		}
		want := slices.Clone(p.found)
		slices.SortStableFunc(want, compareLocations)
		p.sort(sources)
		byRow := cmp.Comparer(func(a, b location) bool { return a.row == b.row && a.source == b.source })
		if !slices.IsSortedFunc(p.found, compareLocations) || !cmp.Equal(want, p.found, byRow) {
			t.Fatalf("%v, want %v", p.found, want)
		}
		seen := map[int32]bool{}
		for _, l := range p.found {
			if seen[l.index] || want[slices.IndexFunc(want,
				func(w location) bool { return w.index == l.index })].row != l.row {
				t.Fatalf("index %d is not of its row", l.index)
			}
			seen[l.index] = true
		}
	})
}
