package sampler

import (
	"errors"
	"io"
	"testing"

	"github.com/dsload/dsload/internal/pack"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestStartsInGaps starts at every kind of number: a stream begins with the first row from there on, and a number
// that no row can have costs no window.
func TestStartsInGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.Int64Range(1, 3*minPackWindow).Draw(t, "rows")
		o := PackOptions{
			Policy:  rapid.SampledFrom([]pack.Policy{pack.BFD, pack.BFDSplit, pack.Wrapped}).Draw(t, "policy"),
			Length:  rapid.SampledFrom([]int{50, 97, 98, 200, 1000}).Draw(t, "length"),
			Longest: 97, Tokens: 49 * rows}
		windows := 0
		locate := func(units []Item) error {
			windows++
			for i := range units {
				units[i].Length = 1 + int32(mix64(uint64(units[i].Row))%97)
			}
			return nil
		}
		order, err := NewOrder(Options{Sources: []Source{{Rows: rows}}, Seed: 3}, locate)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := NewPacked(order, o)
		if err != nil {
			t.Fatal(err)
		}
		start := rapid.Int64Range(0, 2*packed.Rows()-1).Draw(t, "start")
		want := int64(-1) // one number after another
		for number := start; number < 2*packed.Rows() && want < 0; {
			_, ok, err := packed.Row(number)
			switch {
			case err != nil:
				t.Fatal(err)
			case ok:
				want = number
			default:
				number = packed.user.at.next
			}
			if made := int64(packed.user.at.rows.Len()); made > packed.mostRows(int64(len(packed.user.at.units))) {
				t.Fatalf("a window of %d rows has %d, more than %d", len(packed.user.at.units), made,
					packed.mostRows(int64(len(packed.user.at.units))))
			}
		}
		packed.user, windows = alone(), 0
		steps, err := NewPackedSteps(packed, StepOptions{BatchRows: 1, Epochs: 2, Start: start})
		if err != nil {
			t.Fatal(err)
		}
		have := int64(-1)
		_, err = steps.Next(func(r PackedRow) error {
			have = r.Position
			return nil
		}, func() {})
		if err != nil && !(errors.Is(err, io.EOF) && want < 0) || have != want {
			t.Fatalf("start %d: row %d, want %d, %v", start, have, want, err)
		}
		if _, past := packed.pastRows(start); past && windows > 1 {
			t.Errorf("start %d: %d windows were packed", start, windows)
		}
	})
}

// TestPastRows checks where windows end, of which the last of an epoch is smaller.
func TestPastRows(t *testing.T) {
	order, err := NewOrder(Options{Sources: []Source{{Rows: minPackWindow + 100}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPacked(order, PackOptions{Policy: pack.BFD, Length: 1000, Longest: 100, Tokens: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	p.window = minPackWindow
	type found struct {
		Next int64
		Past bool
	}
	const epoch = minPackWindow + 100
	for number, want := range map[int64]found{
		0: {minPackWindow, false}, 409: {minPackWindow, false}, 410: {minPackWindow, true},
		minPackWindow - 1: {minPackWindow, true}, minPackWindow + 9: {epoch, false}, minPackWindow + 10: {epoch, true},
		epoch: {epoch + minPackWindow, false}, 2*epoch - 1: {2 * epoch, true},
	} {
		next, past := p.pastRows(number)
		if diff := cmp.Diff(want, found{next, past}); diff != "" {
			t.Errorf("number %d: %s", number, diff)
		}
	}
}
