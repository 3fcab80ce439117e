package plan

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// randomPlan returns a plan of one or two phases, cut anywhere: between inputs, inside them, and several times at one
// place.
func randomPlan(rng *rand.Rand) *Plan {
	p := New(1 + rng.IntN(6))
	p.Settings = []byte(`{"max-length":8}`)
	for phase := range 1 + rng.IntN(2) {
		list := make([]source.Listed, rng.IntN(5))
		for i := range list {
			list[i] = source.Listed{URI: fmt.Sprintf("%d-%d", phase, i), Bytes: 100, TextBytes: 100}
		}
		p.Phases = append(p.Phases, Phase{Inputs: list, Documents: int64(10 * len(list))})
	}
	p.Parts = append(p.Parts, Entry{})
	for len(p.Parts) < p.Partitions {
		phase := rng.IntN(len(p.Phases))
		at := source.Mark{Input: rng.IntN(len(p.Phases[phase].Inputs) + 1)}
		if at.Input < len(p.Phases[phase].Inputs) {
			at.Offset = int64(50 * rng.IntN(2))
		}
		var copies CopyWriter
		copies.Add(phase, int64(rng.IntN(9)))
		p.Parts = append(p.Parts, Entry{Phase: phase, From: at, Copies: copies.Lists(), Before: State{Val: int64(len(p.Parts))}})
	}
	slices.SortStableFunc(p.Parts, func(a, b Entry) int {
		for _, d := range []int{a.Phase - b.Phase, a.From.Input - b.From.Input, int(a.From.Offset - b.From.Offset)} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	return p
}

// TestRangesCover: the ranges of all partitions have every byte of every input once, in order.
func TestRangesCover(t *testing.T) {
	rng := effort.Random(t)
	for range 300 {
		p := randomPlan(rng)
		var read, want []string
		for phase := range p.Phases {
			for i := range p.Partitions {
				r := p.Ranges(i)[phase]
				for k, in := range r.Inputs {
					from, to := int64(0), in.Bytes
					if k == 0 {
						from = r.From.Offset
					}
					if k == len(r.Inputs)-1 && r.To.Offset > 0 {
						to = r.To.Offset
					}
					for at := from; at < to; at += 50 {
						read = append(read, fmt.Sprint(in.URI, " ", at))
					}
				}
			}
			for _, in := range p.Phases[phase].Inputs {
				want = append(want, in.URI+" 0", in.URI+" 50")
			}
		}
		if !slices.Equal(read, want) {
			t.Fatalf("%d partitions from %+v read %v, want %v", p.Partitions, p.Parts, read, want)
		}
	}
}

// TestOpenReadsItsPart: a plan that is read for one partition says the same about it as the whole plan.
func TestOpenReadsItsPart(t *testing.T) {
	rng, dir := effort.Random(t), t.TempDir()
	for range 30 {
		p, path := randomPlan(rng), filepath.Join(dir, shardfile.PlanName)
		if err := p.Write(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		whole, err := ReadFolder(shardfile.OS(), dir)
		if err != nil || whole.Seal() != p.Seal() || len(whole.Parts) != p.Partitions {
			t.Fatalf("%v, seal %s of %s", err, whole.Seal(), p.Seal())
		}
		for i := range p.Partitions {
			one, err := Open(path, i)
			if err != nil {
				t.Fatal(err)
			}
			if one.Seal() != p.Seal() || !reflect.DeepEqual(one.Entry(i), whole.Entry(i)) || !reflect.DeepEqual(one.Ranges(i), whole.Ranges(i)) {
				t.Fatalf("partition %d of %+v: %+v", i, p.Parts, one)
			}
		}
		if head, err := ReadHead(shardfile.OS(), dir); err != nil || head.Seal() != p.Seal() || head.Parts != nil {
			t.Fatalf("head %+v: %v", head, err)
		}
		if _, err := whole.Partition(p.Partitions); fault.OptionOf(err) != "partition" {
			t.Errorf("a partition after the last: %v", err)
		}
	}
}

// TestDamagedPlan: every flipped byte of a plan is found.
func TestDamagedPlan(t *testing.T) {
	p, path := randomPlan(effort.Random(t)), filepath.Join(t.TempDir(), "plan.json")
	if err := p.Write(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path, 0)
		if kind := fault.KindOf(err); kind != fault.Corrupt && (kind != fault.Usage || fault.OptionOf(err) != "plan") {
			t.Fatalf("byte %d: kind %q: %v", i, kind, err)
		}
	}
}

// TestCopies: a reader finds exactly the documents that were listed, and damage to the list.
func TestCopies(t *testing.T) {
	rng := effort.Random(t)
	for range 100 {
		var w CopyWriter
		listed := map[[2]int64]bool{}
		for phase := range 2 {
			for ordinal := range int64(40) {
				if rng.IntN(3) == 0 {
					w.Add(phase, 1000*ordinal)
					listed[[2]int64{int64(phase), 1000 * ordinal}] = true
				}
			}
		}
		var r CopyReader
		lists := w.Lists()
		for phase := range 2 {
			for ordinal := int64(0); ordinal < 40_000; ordinal += 500 {
				if is, err := r.Has(lists, phase, ordinal); err != nil || is != listed[[2]int64{int64(phase), ordinal}] {
					t.Fatalf("phase %d, document %d: %v, %v", phase, ordinal, is, err)
				}
			}
		}
	}
	for _, bad := range [][]byte{{0}, {0x80}, {1, 0}} {
		if _, err := new(CopyReader).Has([][]byte{bad}, 0, 5); !errors.Is(err, shard.ErrCorrupt) {
			t.Errorf("list %v: %v", bad, err)
		}
	}
}
