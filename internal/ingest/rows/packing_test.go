package rows

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

var narrow = shard.Schema{VocabSize: 300}

// TestRestoreDamagedWindows: windows of another build are refused, whatever they claim.
func TestRestoreDamagedWindows(t *testing.T) {
	small := Config{Policy: pack.BFD, Length: 8, Window: 100, Schema: narrow}
	p := New(small)
	err := errors.Join(p.add(&p.windows[0], &example.Example{InputIDs: []uint32{1, 2, 3}, Document: 4}, 0, 3),
		p.add(&p.windows[0], &example.Example{InputIDs: []uint32{5}, Document: 5, Part: 1}, 0, 1))
	if outside := p.add(&p.windows[1], &example.Example{InputIDs: []uint32{300}}, 0, 1); err != nil ||
		!errors.Is(outside, shard.ErrRange) {
		t.Fatalf("%v; an id outside the vocabulary: %v", err, outside)
	}
	data := slices.Concat(p.Save()...)
	q := New(small)
	if err := q.Restore(data); err != nil || fmt.Sprint(q.windows) != fmt.Sprint(p.windows) {
		t.Fatalf("%v, %v", err, q.windows)
	}
	for n := range data {
		q := New(small)
		if err := q.Restore(data[:n]); !errors.Is(err, errWindow) {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
		flipped := slices.Clone(data)
		flipped[n] ^= 0xff
		_ = New(small).Restore(flipped) // must not panic
	}
	if err := q.Restore(append(data, 0)); !errors.Is(err, errWindow) {
		t.Errorf("a byte too many: %v", err)
	}
}

// TestWindowsFillRows: rows of many windows are as full as those of one, whatever the lengths of the documents.
func TestWindowsFillRows(t *testing.T) {
	const length = 64
	rnd := rand.New(rand.NewPCG(6, 6))
	for name, size := range map[string]func() int{
		"short": func() int { return 1 + rnd.IntN(9) }, "any": func() int { return 1 + rnd.IntN(length) },
		"around half": func() int { return length*3/10 + rnd.IntN(length*4/10) },
		"alone":       func() int { return length*6/10 + rnd.IntN(9) },
	} {
		rows := 0
		p := New(Config{Policy: pack.BFD, Length: length, Window: 256 * length, Schema: narrow, Counts: new(counts.Counts),
			Rest: new(int64), Changed: func() {}, Wanted: func(int) int64 { return 256 * length },
			Write: func(int, *dataset.Example) error { rows++; return nil }})
		var lengths []int32
		for i := range int64(20_000) {
			n := size()
			lengths = append(lengths, int32(n))
			if err := p.Add(Train, &example.Example{InputIDs: make([]uint32, n), Document: i}); err != nil {
				t.Fatal(err)
			}
			if w := &p.windows[Train]; len(w.pieces) > maxPieces(length) || w.tokens > p.Window {
				t.Fatalf("%s: a window of %d pieces and %d tokens", name, len(w.pieces), w.tokens)
			}
		}
		if err := p.PackAll(); err != nil {
			t.Fatal(err)
		}
		if best := float64(pack.New(pack.BFD, length).Pack(lengths).Len()); float64(rows) > 1.01*best {
			t.Errorf("%s: %d rows, %.0f in one window", name, rows, best)
		}
	}
}
