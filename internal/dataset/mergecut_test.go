package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

type splitRow struct {
	split int
	e     Example
}

// randomParts builds partitions of random rows, some without any, and returns the rows of each.
func randomParts(t *testing.T, rng *rand.Rand, fsys shardfile.FS, s shard.Schema, valLast bool) (parts [][]splitRow) {
	document, n := int64(0), 1+rng.IntN(3)
	shardBytes := int64(4<<10) << (4 * rng.IntN(2))
	for p := range n {
		var rows []splitRow
		for range rng.IntN(30) * []int{0, 1, 1, 1, 1, 1, 1, 30}[rng.IntN(8)] {
			split := min(1, rng.IntN(4)/3)
			if valLast {
				split = 2 * p / n
			}
			for part := range 1 + rng.Int32N(2) {
				e := Example{InputIDs: make([]uint32, 1+rng.IntN(20)), Document: document, Part: part}
				for i := range e.InputIDs {
					e.InputIDs[i] = rng.Uint32N(uint32(s.VocabSize))
					if s.LossMask {
						e.LossMask = append(e.LossMask, 2*i > len(e.InputIDs))
					}
				}
				if s.Labels {
					e.Labels = slices.Clone(e.InputIDs[:1+rng.IntN(len(e.InputIDs))])
				}
				rows = append(rows, splitRow{split, e})
			}
			document++
		}
		b, _, err := OpenBuilder(fsys, "d", BuilderOptions{Schema: s, ShardBytes: shardBytes, Plan: "plan",
			Part: shardfile.Part{Number: p, Of: n}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := b.Row(shardfile.SplitNames[rows[i].split], &rows[i].e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Finish(Provenance{State: json.RawMessage("{}")}); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, rows)
	}
	return parts
}

// kept is the definition of the budgets: it takes row by row, and returns which it leaves out for each option.
func kept(parts [][]splitRow, o MergeOptions) (rows []splitRow, keep [][2]int64, cutBy []string) {
	left, tokens, full := [2]int64{cmp.Or(o.MaxTrain, math.MaxInt64), cmp.Or(o.MaxVal, math.MaxInt64)}, o.MaxTokens, false
	note := func(name string) {
		if !slices.Contains(cutBy, name) {
			cutBy = append(cutBy, name)
		}
	}
	for _, part := range parts {
		var n [2]int64
		for _, r := range part {
			if left[r.split] == 0 {
				if !full {
					note([]string{"max-examples", "max-val-examples"}[r.split])
				}
				continue
			}
			left[r.split]--
			size := int64(len(r.e.InputIDs) + len(r.e.Labels))
			if o.MaxTokens > 0 && size > tokens {
				if full = true; tokens == 0 || r.e.Labels != nil || r.e.LossMask != nil && !slices.Contains(r.e.LossMask[:tokens], true) {
					tokens = 0
					note("max-tokens")
					continue
				}
				note("max-tokens")
				r.e.InputIDs, size = r.e.InputIDs[:tokens], tokens
				if r.e.LossMask != nil {
					r.e.LossMask = r.e.LossMask[:tokens]
				}
			}
			tokens -= size
			rows, n[r.split] = append(rows, r), n[r.split]+1
		}
		keep = append(keep, n)
	}
	return rows, keep, cutBy
}

// TestMergedBudgets: a merge keeps the rows that the budgets keep of all rows one by one.
func TestMergedBudgets(t *testing.T) {
	rng := effort.Random(t)
	for range effort.Of(30, 400, 20_000) {
		s := []shard.Schema{{VocabSize: 300}, {VocabSize: 300, LossMask: true}, {VocabSize: 70_000, Labels: true}}[rng.IntN(3)]
		o := MergeOptions{Plan: "plan", Settings: json.RawMessage("{}"), ValLast: rng.IntN(3) == 0,
			PartSettings: func(int) (json.RawMessage, error) { return json.RawMessage("{}"), nil }}
		fsys := shardtest.New()
		parts := randomParts(t, rng, fsys, s, o.ValLast)
		o.Partitions = len(parts)
		large := 1 + 19*(rng.IntN(5)/4)
		budget := func(most int) int64 { return int64(min(1, rng.IntN(3)) * (1 + rng.IntN(most*large))) }
		o.MaxTrain, o.MaxVal, o.MaxTokens = budget(80), budget(30), budget(900)
		want, keep, wantCut := kept(parts, o)
		name := fmt.Sprintf("%+v, of %d parts: train %d, val %d, tokens %d", s, len(parts), o.MaxTrain, o.MaxVal, o.MaxTokens)
		m, err := OpenMerger(context.Background(), fsys, "d", o)
		if err != nil {
			t.Fatal(name, err)
		}
		var cutBy []string
		if _, err := m.Finish(func(by []string) (Provenance, error) { cutBy = by; return Provenance{}, nil }, nil); err != nil {
			if len(want) > 0 {
				t.Fatal(name, err)
			}
			m.Close()
			continue // nothing is left of a dataset
		}
		for i := range parts {
			if m.Kept(i) != keep[i] {
				t.Errorf("%s: part %d keeps %d, want %d", name, i, m.Kept(i), keep[i])
			}
		}
		if slices.Contains(cutBy, "max-tokens") != slices.Contains(wantCut, "max-tokens") ||
			o.MaxTokens == 0 && !slices.Equal(slices.Sorted(slices.Values(cutBy)), slices.Sorted(slices.Values(wantCut))) {
			t.Errorf("%s: cut by %s, want %s", name, cutBy, wantCut)
		}
		if _, err := m.Tidy(); err != nil {
			t.Error(name, err)
		}
		m.Close()
		if damage, err := shard.Verify(context.Background(), fsys, "d", nil); err != nil || len(damage) > 0 {
			t.Error(name, damage, err)
		}
		compareRows(t, name, fsys, s, want)
	}
}

// compareRows compares a dataset with its rows.
func compareRows(t *testing.T, name string, fsys shardfile.FS, s shard.Schema, want []splitRow) {
	t.Helper()
	d, err := shard.ReaderOptions{}.Open(fsys, "d")
	if err != nil {
		t.Fatal(name, err)
	}
	defer d.Close()
	for n, split := range shardfile.SplitNames {
		var got, wanted []string
		if d.Manifest().Split(split) != nil {
			r, err := d.Split(split)
			if err != nil {
				t.Fatal(name, err)
			}
			var e Example
			for row, err := range r.Rows(0, r.NumRows()) {
				if err != nil {
					t.Fatal(name, err)
				}
				fillExample(&e, row, s)
				got = append(got, fmt.Sprint(e.Document, e.Part, e.InputIDs, e.Labels, e.LossMask))
			}
		}
		for _, r := range want {
			if e := r.e; r.split == n {
				wanted = append(wanted, fmt.Sprint(e.Document, e.Part, e.InputIDs, e.Labels, e.LossMask))
			}
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: %s has %d rows that are others than the %d wanted", name, split, len(got), len(wanted))
		}
	}
}
