package example

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const loss = 1000 // added by slow tests to the ids that are trained on

// slowCut is what a Cutter must give, for a document that is there as a whole.
func slowCut(o CutterOptions, ids []uint32) [][]uint32 {
	if len(ids) == 0 {
		return nil
	}
	row := o.MaxLength - len(o.RowPrefix) - len(o.RowSuffix)
	room := row - len(o.Prefix) - len(o.Suffix)
	if o.Overflow != Chunk && len(ids) > room {
		if o.Overflow == Drop {
			return nil
		}
		ids = ids[:room]
	}
	all := slices.Concat(o.Prefix, ids, o.Suffix)
	var rows [][]uint32
	for part := range slices.Chunk(all, row) {
		rows = append(rows, slices.Concat(o.RowPrefix, part, o.RowSuffix))
	}
	if n := len(rows) - 1; !o.LoneEnds && n > 0 && len(o.Suffix) > 0 && len(rows[n]) == 1 && len(rows[n-1]) > 1 {
		// The end is not alone, unless the row is trained on for its last token alone.
		last := len(rows[n-1]) - 1
		if rows[n-1][last] < loss || slices.ContainsFunc(rows[n-1][:last], func(id uint32) bool { return id >= loss }) {
			rows[n-1], rows[n] = rows[n-1][:last], []uint32{rows[n-1][last], rows[n][0]}
		}
	}
	return rows
}

// TestCausalPairEqualsSlowCut compares rows and masks with those of a document whose tokens carry their loss with them.
func TestCausalPairEqualsSlowCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Uint32Max(9), 0, 2)
		o := CutterOptions{
			Prefix: ids.Draw(t, "prefix"), Suffix: ids.Draw(t, "suffix"), RowPrefix: ids.Draw(t, "row prefix"),
			RowSuffix: ids.Draw(t, "row suffix"),
			Overflow:  rapid.SampledFrom([]Overflow{Chunk, Truncate, Drop}).Draw(t, "overflow"),
			LoneEnds:  rapid.Bool().Draw(t, "lone ends"),
			Final:     func(id uint32) bool { return id == 3 },
		}
		o.MaxLength = len(o.Prefix) + len(o.Suffix) + len(o.RowPrefix) + len(o.RowSuffix) +
			rapid.IntRange(1, 12).Draw(t, "room")
		prompt := rapid.SliceOfN(rapid.Uint32Range(10, 99), 1, 20).Draw(t, "prompt")
		target := rapid.SliceOfN(rapid.Uint32Range(10, 99), 1, 20).Draw(t, "target")
		marked := o
		marked.Suffix = slices.Clone(o.Suffix)
		for i, id := range marked.Suffix {
			if o.Final(id) {
				marked.Suffix[i] += loss
			}
		}
		whole := slices.Clone(prompt)
		for _, id := range target {
			whole = append(whole, id+loss)
		}
		var want []string
		all := slowCut(marked, whole)
		for i, row := range all {
			if !slices.ContainsFunc(row, func(id uint32) bool { return id >= loss }) ||
				o.Overflow == Truncate && !slices.ContainsFunc(row, func(id uint32) bool { return id >= loss+10 }) {
				continue
			}
			if end := len(row) - len(o.RowSuffix); i == len(all)-1 {
				for j, id := range row[end:] {
					if o.Final(id) {
						row[end+j] += loss
					}
				}
			}
			want = append(want, fmt.Sprint(i, row))
		}
		c, err := NewCutter(o)
		if err != nil {
			t.Fatal(err)
		}
		for document := range int64(2) {
			var got []string
			c.Begin(document)
			err := c.CausalPair(prompt, target, func(e *Example) error {
				row := slices.Clone(e.InputIDs)
				for i := range row {
					if e.LossMask[i] {
						row[i] += loss
					}
				}
				if e.Document != document || e.Labels != nil || len(e.LossMask) != len(row) {
					t.Fatalf("example %+v", e)
				}
				got = append(got, fmt.Sprint(e.Part, row))
				return nil
			})
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("rows %v, want %v (%v)", got, want, err)
			}
		}
		if left := int64(2 * (len(all) - len(want))); c.Counts.WithoutTarget != left {
			t.Errorf("%d examples were left out, want %d", c.Counts.WithoutTarget, left)
		}
	})
}

func TestCutterEqualsSlowCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Uint32Max(9), 0, 3)
		o := CutterOptions{
			Prefix: ids.Draw(t, "prefix"), Suffix: ids.Draw(t, "suffix"), RowPrefix: ids.Draw(t, "row prefix"),
			RowSuffix: ids.Draw(t, "row suffix"),
			Overflow:  rapid.SampledFrom([]Overflow{Chunk, Truncate, Drop}).Draw(t, "overflow"),
			LoneEnds:  rapid.Bool().Draw(t, "lone ends"),
		}
		o.MaxLength = len(o.Prefix) + len(o.Suffix) + len(o.RowPrefix) + len(o.RowSuffix) +
			rapid.IntRange(1, 12).Draw(t, "room")
		c, err := NewCutter(o)
		if err != nil {
			t.Fatal(err)
		}
		var got, want [][]uint32
		var parts []int32
		emit := func(e *Example) error {
			got = append(got, slices.Clone(e.InputIDs))
			parts = append(parts, e.Part)
			return nil
		}
		for document := range int64(rapid.IntRange(1, 5).Draw(t, "documents")) {
			whole := rapid.SliceOfN(rapid.Uint32Max(99), 0, 40).Draw(t, "ids")
			expected := slowCut(o, whole)
			want = append(want, expected...)
			c.Begin(document)
			for rest := whole; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
				if err := c.Add(rest[:n], emit); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
				if rapid.Bool().Draw(t, "restart") { // as after a kill
					saved, err := json.Marshal(c.State())
					if err != nil {
						t.Fatal(err)
					}
					var state State
					if err := json.Unmarshal(saved, &state); err != nil {
						t.Fatal(err)
					}
					c, _ = NewCutter(o)
					if err := c.Restore(state); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.End(emit); err != nil {
				t.Fatal(err)
			}
			for i, part := range parts {
				if part != int32(i) {
					t.Fatalf("parts %v of document %d", parts, document)
				}
			}
			parts = parts[:0]
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%+v: got %v, want %v", o, got, want)
		}
	})
}

func TestPair(t *testing.T) {
	c, err := NewCutter(CutterOptions{MaxLength: 4, Suffix: []uint32{1}})
	if err != nil {
		t.Fatal(err)
	}
	c.Begin(7)
	if err := c.Pair([]uint32{10, 11, 12, 13, 14}, []uint32{20, 21}, func(e *Example) error {
		if !slices.Equal(e.InputIDs, []uint32{10, 11, 12, 1}) || !slices.Equal(e.Labels, []uint32{20, 21, 1}) ||
			e.Document != 7 || e.Part != 0 {
			t.Errorf("got %+v", e)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestCutterRefusesRoomForNoText(t *testing.T) {
	if _, err := NewCutter(CutterOptions{MaxLength: 2, Prefix: []uint32{1}, Suffix: []uint32{2}}); err == nil {
		t.Error("a cutter without room for text was made")
	}
	c, _ := NewCutter(CutterOptions{MaxLength: 2})
	if err := c.Restore(State{IDs: make([]uint32, 3)}); err == nil {
		t.Error("a state longer than an example was restored")
	}
}

func TestCutterAllocatesNothing(t *testing.T) {
	c, _ := NewCutter(CutterOptions{MaxLength: 16, Suffix: []uint32{1}})
	ids := make([]uint32, 100)
	emit := func(*Example) error { return nil }
	if n := testing.AllocsPerRun(100, func() {
		c.Begin(0)
		_ = c.Add(ids, emit)
		_ = c.End(emit)
	}); n != 0 {
		t.Errorf("%v allocations a document", n)
	}
}

// The rows of a masked document, joined, are its ids and its mask; one without a trained token gives
// none.
func TestMasked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := CutterOptions{Overflow: rapid.SampledFrom([]Overflow{Chunk, Truncate, Drop}).Draw(t, "overflow"),
			Suffix: rapid.SliceOfN(rapid.Just(uint32(7)), 0, 1).Draw(t, "suffix"),
			Final:  func(id uint32) bool { return id == 7 }, CountCuts: true}
		o.MaxLength = len(o.Suffix) + rapid.IntRange(1, 12).Draw(t, "room")
		c, err := NewCutter(o)
		if err != nil {
			t.Fatal(err)
		}
		ids := rapid.SliceOfN(rapid.Uint32Range(10, 99), 1, 40).Draw(t, "ids")
		mask := rapid.SliceOfN(rapid.Bool(), len(ids), len(ids)).Draw(t, "mask")
		var got []uint32
		var gotMask []bool
		var untrained, later, cut int64
		c.Begin(3)
		if err := c.Masked(ids, mask, func(e *Example) error {
			if len(e.InputIDs) != len(e.LossMask) || len(e.InputIDs) > o.MaxLength || e.Document != 3 {
				t.Fatalf("got %+v", e)
			}
			if !slices.Contains(e.LossMask, true) {
				untrained++
			}
			if later += int64(min(e.Part, 1)); e.Part == 1 {
				cut++
			}
			got, gotMask = append(got, e.InputIDs...), append(gotMask, e.LossMask...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want, wantMask, room := ids, mask, o.MaxLength-len(o.Suffix)
		over := o.Overflow != Chunk && len(ids) > room
		if over {
			want, wantMask = ids[:room], mask[:room]
		}
		none := !slices.Contains(wantMask, true) || over && o.Overflow == Drop
		if want, wantMask = slices.Concat(want, o.Suffix), append(slices.Clone(wantMask),
			make([]bool, len(o.Suffix))...); len(o.Suffix) > 0 {
			wantMask[len(wantMask)-1] = true
		}
		if none {
			want, wantMask = nil, nil
		}
		if !slices.Equal(got, want) || !slices.Equal(gotMask, wantMask) || c.Counts.UntrainedRows != untrained {
			t.Fatalf("%+v of %v %v: got %v %v, %d rows untrained", o, ids, mask, got, gotMask, c.Counts.UntrainedRows)
		}
		if c.Counts.LaterRows != later || c.Counts.Chunked != cut {
			t.Fatalf("%d documents in several rows, %d rows begin within one: counted %d and %d", cut, later,
				c.Counts.Chunked, c.Counts.LaterRows)
		}
		counted := c.Counts.Untrained + c.Counts.WithoutTarget + c.Counts.Dropped
		if (counted == 1) != none || counted > 1 {
			t.Fatalf("counted %d documents that were left out", counted)
		}
	})
}
