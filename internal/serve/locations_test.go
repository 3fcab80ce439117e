package serve

import (
	gocmp "cmp"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
	"pgregory.net/rapid"
)

// Locations are sorted by source and row, and know the index of each row.
func TestLocationsAreSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.SampledFrom([]int{1, 2, 3, sampler.MaxSources}).Draw(t, "sources")
		most := rapid.SampledFrom([]int64{3, 1 << 30, 1<<50 - 1}).Draw(t, "most")
		refs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sampler.Ref {
			return sampler.Ref{Source: rapid.Int32Range(0, int32(sources-1)).Draw(t, "source"),
				Row: rapid.Int64Range(0, most).Draw(t, "row")}
		}), 0, 100).Draw(t, "refs")
		var p locations
		p.reset(len(refs), sources)
		for _, ref := range refs {
			p.add(ref)
		}
		p.sort()
		seen := map[int]bool{}
		for i := range refs {
			if i > 0 && compareRefs(p.ref(i-1), p.ref(i)) > 0 || p.ref(i) != refs[p.index(i)] || seen[p.index(i)] {
				t.Fatalf("place %d of %v is row %d: %v", i, refs, p.index(i), p.ref(i))
			}
			seen[p.index(i)] = true
		}
	})
}

func compareRefs(a, b sampler.Ref) int {
	return gocmp.Or(gocmp.Compare(a.Source, b.Source), gocmp.Compare(a.Row, b.Row))
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
	const many = manyLocations + 77
	refill := func(bad int) { // a row that is not there takes the place of one
		p.reset(many, 2)
		for i := range many {
			source := int32(rng.IntN(2))
			ref := sampler.Ref{Source: source, Row: rng.Int64N(members[source].split.NumRows())}
			if i == bad {
				ref.Row += members[source].split.NumRows()
			}
			p.add(ref)
		}
	}
	refill(-1)
	if err := p.locate(members); err != nil {
		t.Fatal(err)
	}
	var one [1]shard.Span
	for i := range many {
		ref := p.ref(i)
		if err := members[ref.Source].split.Locate(one[:], []int64{ref.Row}); err != nil || one[0] != p.spans[i] {
			t.Fatalf("row %d of %d: %+v, want %+v, %v", ref.Row, ref.Source, p.spans[i], one[0], err)
		}
	}
	for _, bad := range []int{many - 1, 1500, 700} {
		refill(bad)
		got := p.locate(members)
		err := p.locatePart(members, 0, 0, many) // in the order of the rows
		if err == nil || got == nil || got.Error() != err.Error() {
			t.Errorf("%v, want %v", got, err)
		}
	}
	p.reset(many, 2)
	p.rowBits = 8 // as if there were more datasets
	if err := p.locate(members); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("rows that a key cannot hold: %v", err)
	}
}
