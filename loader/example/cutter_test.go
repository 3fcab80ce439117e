package example

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slowCut is what a Cutter must give, for a document that is there as a whole.
func slowCut(o CutterOptions, ids []uint32) [][]uint32 {
	if len(ids) == 0 {
		return nil
	}
	room := o.MaxLength - len(o.Prefix) - len(o.Suffix)
	if o.Overflow != Chunk && len(ids) > room {
		if o.Overflow == Drop {
			return nil
		}
		ids = ids[:room]
	}
	all := slices.Concat(o.Prefix, ids, o.Suffix)
	return slices.Collect(slices.Chunk(all, o.MaxLength))
}

func TestCutterEqualsSlowCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Uint32Max(9), 0, 3)
		o := CutterOptions{
			Prefix: ids.Draw(t, "prefix"), Suffix: ids.Draw(t, "suffix"),
			Overflow: rapid.SampledFrom([]Overflow{Chunk, Truncate, Drop}).Draw(t, "overflow"),
		}
		o.MaxLength = len(o.Prefix) + len(o.Suffix) + rapid.IntRange(1, 12).Draw(t, "room")
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
		if !slices.Equal(e.InputIDs, []uint32{10, 11, 12, 1}) || !slices.Equal(e.Labels, []uint32{20, 21, 1}) || e.Document != 7 || e.Part != 0 {
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
