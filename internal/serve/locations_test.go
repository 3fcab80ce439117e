package serve

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
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

// TestManyLocationsAtOnce checks that rows that several goroutines locate are where each of them lies, and that an
// error is that of the first row.
func TestManyLocationsAtOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	schema := shard.Schema{VocabSize: 500}
	reader, err := Open(Options{Datasets: []string{
		"a=" + randomRows(2*manyLocations, schema, 1).write(t, t.TempDir(), schema, 16<<10),
		"b=" + randomRows(manyLocations, schema, 2).write(t, t.TempDir(), schema, 64<<10),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	members, err := reader.members(feed.Query{Split: "train"})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var p locations
	for i := range manyLocations + 77 {
		source := int32(rng.IntN(2))
		p.add(sampler.Item{Ref: sampler.Ref{Source: source, Row: rng.Int64N(members[source].split.NumRows())}}, i)
	}
	if err := p.locate(members); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(p.found, compareLocations) {
		t.Error("the rows are not sorted")
	}
	var one [1]shard.Span
	for _, l := range p.found {
		if err := members[l.source].split.Locate(one[:], []int64{l.row}); err != nil || one[0] != l.span {
			t.Fatalf("row %d of %d: %+v, want %+v, %v", l.row, l.source, l.span, one[0], err)
		}
	}
	for _, i := range []int{len(p.found) - 1, 1500, 700} { // in other parts
		row := members[p.found[i].source].split.NumRows() + int64(i)
		p.found[i].row = row
		err := (&locatePart{}).locate(members, p.found)
		parts := locations{found: slices.Clone(p.found)}
		if got := parts.locateSorted(members); err == nil || got == nil || got.Error() != err.Error() {
			t.Errorf("%v, want %v", got, err)
		}
	}
}
