package pack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tables are rows as lists of (item, from, len).
func table(r *Rows) (out [][]Piece) {
	for i := range r.Len() {
		out = append(out, slices.Clone(r.Row(i)))
	}
	return out
}

// TestPack has the cases of the documentation of TRL's pack_dataset, and corners of each policy.
func TestPack(t *testing.T) {
	for _, c := range []struct {
		policy  Policy
		length  int
		lengths []int32
		want    [][]Piece
		dropped int64
	}{
		{BFD, 4, []int32{5, 2, 3, 1}, [][]Piece{{{0, 0, 4}}, {{2, 0, 3}, {3, 0, 1}}, {{1, 0, 2}}}, 1},
		{BFDSplit, 4, []int32{5, 2, 3, 1}, [][]Piece{{{0, 0, 4}}, {{2, 0, 3}, {0, 4, 1}}, {{1, 0, 2}, {3, 0, 1}}}, 0},
		{Wrapped, 4, []int32{5, 2, 3, 1}, [][]Piece{{{0, 0, 4}}, {{0, 4, 1}, {1, 0, 2}, {2, 0, 1}},
			{{2, 1, 2}, {3, 0, 1}}}, 0},
		{Wrapped, 4, []int32{4, 4}, [][]Piece{{{0, 0, 4}}, {{1, 0, 4}}}, 0},
		{Wrapped, 3, []int32{0, 7, 0}, [][]Piece{{{1, 0, 3}}, {{1, 3, 3}}, {{1, 6, 1}}}, 0},
		{BFD, 1, []int32{3, 0, 1}, [][]Piece{{{0, 0, 1}}, {{2, 0, 1}}}, 2},
		{BFDSplit, 10, []int32{20, 0, 10}, [][]Piece{{{0, 0, 10}}, {{0, 10, 10}}, {{2, 0, 10}}}, 0},
		// equal room: the row that has had it longest; the least room first
		{BFD, 10, []int32{6, 6, 7, 3, 4, 4}, [][]Piece{{{2, 0, 7}, {3, 0, 3}}, {{0, 0, 6}, {4, 0, 4}},
			{{1, 0, 6}, {5, 0, 4}}}, 0},
		{BFD, 10, nil, nil, 0},
		{BFDSplit, 10, []int32{0}, nil, 0},
		{Wrapped, 10, []int32{0}, nil, 0},
	} {
		t.Run(fmt.Sprintf("%s/%d/%v", c.policy, c.length, c.lengths), func(t *testing.T) {
			p := New(c.policy, c.length)
			p.Pack([]int32{9, 1, 1, 2}) // what is reused must not matter
			rows := p.Pack(c.lengths)
			if diff := cmp.Diff(c.want, table(rows)); diff != "" || rows.Dropped != c.dropped {
				t.Errorf("dropped %d, want %d; rows (-want +got)\n%s", rows.Dropped, c.dropped, diff)
			}
		})
	}
}

// plain is best fit decreasing in the most obvious way.
func plain(pieces []Piece, length int32) (rows [][]Piece) {
	slices.SortStableFunc(pieces, func(a, b Piece) int { return int(b.Len - a.Len) })
	type row struct {
		pieces []Piece
		room   int32
		since  int // when it got this room
	}
	var all []*row
	for at, p := range pieces {
		var best *row
		for _, r := range all {
			if r.room >= p.Len && (best == nil || r.room < best.room || r.room == best.room && r.since < best.since) {
				best = r
			}
		}
		if best == nil {
			best = &row{room: length}
			all = append(all, best)
		}
		best.pieces, best.room, best.since = append(best.pieces, p), best.room-p.Len, at
	}
	for _, r := range all {
		rows = append(rows, r.pieces)
	}
	return rows
}

// TestPackProperties holds invariants I1 and I2, and best fit against its plain form.
func TestPackProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := int32(rapid.IntRange(1, 200).Draw(t, "length"))
		policy := rapid.SampledFrom(Policies[1:]).Draw(t, "policy")
		lengths := rapid.SliceOfN(rapid.Int32Range(0, 3*length), 0, 120).Draw(t, "lengths")
		rows := New(policy, int(length)).Pack(lengths)
		var all []Piece
		for i := range rows.Len() {
			n := int32(0)
			for _, p := range rows.Row(i) {
				n += p.Len
			}
			if n < 1 || n > length || n < length && policy == Wrapped && i+1 < rows.Len() {
				t.Fatalf("row %d has %d tokens", i, n)
			}
			all = append(all, rows.Row(i)...)
		}
		slices.SortFunc(all, func(a, b Piece) int {
			return int(a.Item-b.Item)*1_000_000 + int(a.From-b.From)
		})
		var dropped int64
		for i, n := range lengths {
			at := int32(0)
			for len(all) > 0 && all[0].Item == int32(i) {
				if all[0].From != at || all[0].Len < 1 {
					t.Fatalf("item %d: piece %v after %d tokens", i, all[0], at)
				}
				at += all[0].Len
				all = all[1:]
			}
			if at != n && (policy != BFD || at != length) {
				t.Fatalf("item %d: %d of %d tokens", i, at, n)
			}
			dropped += int64(n - at)
		}
		if len(all) > 0 || dropped != rows.Dropped {
			t.Fatalf("%d pieces too many; %d tokens dropped, said %d", len(all), dropped, rows.Dropped)
		}
		if policy == Wrapped {
			return
		}
		p := New(policy, int(length))
		p.cutItems(lengths)
		counts := make([]int64, length+1)
		for _, c := range p.cut {
			counts[c.Len]++
		}
		want := plain(slices.Clone(p.cut), length)
		if diff := cmp.Diff(want, table(rows)); diff != "" {
			t.Fatalf("not best fit decreasing (-want +got)\n%s", diff)
		}
		if n := Count(counts); n != int64(len(want)) {
			t.Fatalf("Count says %d rows, there are %d", n, len(want))
		}
	})
}

func TestParse(t *testing.T) {
	for name, want := range map[string]Policy{"none": None, "wrapped": Wrapped, "concat": Wrapped, "bfd": BFD,
		"bestfit": BFD, "bfd_split": BFDSplit} {
		if p, ok := Parse(name); !ok || p != want {
			t.Errorf("%q is %q, %v", name, p, ok)
		}
	}
	for _, name := range []string{"", "BFD", "bfd-split", "nosuch"} {
		if p, ok := Parse(name); ok {
			t.Errorf("%q is taken as %q", name, p)
		}
	}
}

// TestPackAllocations: in steady state nothing is allocated.
func TestPackAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := make([]int32, 2000)
	for i := range lengths {
		lengths[i] = 1 + rng.Int32N(3000)
	}
	for _, policy := range Policies[1:] {
		p := New(policy, 2048)
		p.Pack(lengths)
		if n := testing.AllocsPerRun(5, func() { p.Pack(lengths) }); n > 0 {
			t.Errorf("%s: %v allocations", policy, n)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := make([]int32, 8192)
	for i := range lengths {
		lengths[i] = 1 + rng.Int32N(300)
	}
	for _, policy := range Policies[1:] {
		b.Run(string(policy), func(b *testing.B) {
			p := New(policy, 4096)
			for b.Loop() {
				p.Pack(lengths)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(lengths)), "ns/item")
		})
	}
}
