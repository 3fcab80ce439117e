package serve

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

// servedRow is a packed row as a client sees it.
type servedRow struct {
	Number, Example int64
	Segments        [][]int64 // ids by document
	Labels          []int64
}

// unpack reads rows out of padded batches, and checks that the columns agree.
func unpack(t *testing.T, batches []wireBatch, left bool) (rows []servedRow) {
	t.Helper()
	for _, b := range batches {
		for i, n := range b.length {
			ids := b.columns["input_ids"][i]
			begin := 0
			if left {
				begin = len(ids) - int(n)
			}
			row := servedRow{Number: b.order[i], Example: b.example[i]}
			for j, id := range ids {
				at, inside := j-begin, j >= begin && j < begin+int(n)
				position, segment := b.columns["position_ids"][i][j], b.columns["segments"][i][j]
				if mask := b.columns["attention_mask"][i][j]; mask != 0 != inside || !inside &&
					(position != 0 || segment != 0) {
					t.Fatalf("row %d, element %d: mask %d, position %d, segment %d", row.Number, j, mask, position,
						segment)
				}
				if !inside {
					continue
				}
				if position == 0 {
					row.Segments = append(row.Segments, nil)
				}
				last := len(row.Segments) - 1
				if row.Segments[last] = append(row.Segments[last],
					id); int64(len(row.Segments[last])) != position+1 || segment != int64(last+1) {
					t.Fatalf("row %d, token %d: position %d, segment %d", row.Number, at, position, segment)
				}
				if labels := b.columns["labels"]; labels != nil {
					row.Labels = append(row.Labels, labels[i][j])
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func mustFetch(t *testing.T, client *http.Client, query string) []wireBatch {
	t.Helper()
	batches, err := fetch(client, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return batches
}

// plainPack packs rows in their own order with the packer. It is the reference for shuffle=none.
func plainPack(rows memoryRows, policy pack.Policy, length int) (out [][][]int64) {
	var lengths []int32
	for _, r := range rows {
		lengths = append(lengths, int32(len(r.InputIDs)))
	}
	packed := pack.New(policy, length).Pack(lengths)
	for i := range packed.Len() {
		var row [][]int64
		for _, p := range packed.Row(i) {
			e, from := rows[p.Item], p.From
			segments := e.Segments
			if segments == nil {
				segments = []int32{int32(len(e.InputIDs))}
			}
			at := int32(0)
			for _, n := range segments { // what the piece has of each
				var ids []int64
				for k := max(at, from); k < min(at+n, from+p.Len); k++ {
					ids = append(ids, int64(e.InputIDs[k]))
				}
				if at += n; ids != nil {
					row = append(row, ids)
				}
			}
		}
		out = append(out, row)
	}
	return out
}

// TestPackedIsThePacker: without shuffling, and in one window, rows are those of the packer; with
// it the same rows of each window in another order.
func TestPackedIsThePacker(t *testing.T) {
	for _, schema := range []shard.Schema{{VocabSize: 500}, {VocabSize: 70_000, LossMask: true},
		{VocabSize: 500, Segments: true}, {VocabSize: 500, LossMask: true, Segments: true}} {
		rows := randomRows(400, schema, 3)
		client := serveDir(t, rows.write(t, t.TempDir(), schema, 16<<10))
		for _, policy := range pack.Policies[1:] {
			for _, length := range effort.Of([]int{16, 100}, []int{1, 16, 39, 100}, []int{1, 16, 39, 100}) {
				name := fmt.Sprintf("%+v, %s %d", schema, policy, length)
				query := fmt.Sprintf("pack=%s&max_length=%d&shuffle=none&batch_size=3", policy, length)
				var got [][][]int64
				for _, r := range unpack(t, mustFetch(t, client, query), false) {
					got = append(got, r.Segments)
				}
				if want := plainPack(rows, policy, length); !reflect.DeepEqual(want, got) {
					t.Fatalf("%s: %d rows, want %d; the first is %v, want %v", name, len(got), len(want), got[0],
						want[0])
				}
			}
		}
	}
}

// labelled returns an id and its label as one number.
func labelled(id, label int64) int64 { return id<<32 | label&(1<<32-1) }

// tokensOf returns all tokens of rows, each with the label that it should have.
func tokensOf(rows []servedRow) (out []int64) {
	for _, r := range rows {
		at := 0
		for _, ids := range r.Segments {
			for _, id := range ids {
				out = append(out, labelled(id, r.Labels[at]))
				at++
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestPackedLosesNothing: over shuffles, epochs, batch sizes, worlds and resume points, every row
// comes exactly once, with its mask.
func TestPackedLosesNothing(t *testing.T) {
	schema := shard.Schema{VocabSize: 500, LossMask: true}
	rows := randomRows(6000, schema, 4) // two windows
	client := serveDir(t, rows.write(t, t.TempDir(), schema, 64<<10))
	var want []int64
	for _, r := range rows {
		for i, id := range r.InputIDs {
			label := int64(id)
			if !r.LossMask[i] {
				label = -100
			}
			want = append(want, labelled(int64(id), label))
		}
	}
	slices.Sort(want)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, policy := range pack.Policies[1:] {
		for _, shuffle := range []string{"full", "none"}[:effort.Of(1, 2, 2)] {
			order := fmt.Sprintf("pack=%s&max_length=41&borders=keep&shuffle=%s&seed=%d", policy, shuffle,
				rng.Uint32()) // no row is longer
			all := mustFetch(t, client, order+"&epochs=2&batch_size=7")
			rowsOf := unpack(t, all, false)
			half := slices.IndexFunc(rowsOf, func(r servedRow) bool { return r.Number >= int64(len(rows)) })
			for epoch, part := range [][]servedRow{rowsOf[:half], rowsOf[half:]} {
				if !slices.Equal(want, tokensOf(part)) {
					t.Fatalf("%s, epoch %d: other tokens", order, epoch)
				}
			}
			if shuffle != "none" && cmp.Equal(rowsOf[0].Segments, rowsOf[half].Segments) {
				t.Errorf("%s: both epochs begin with the same row", order)
			}
			if !slices.IsSortedFunc(rowsOf, func(a, b servedRow) int { return int(a.Number - b.Number) }) {
				t.Errorf("%s: row numbers do not rise", order)
			}
			// Resumed at any step with another batch size, budget and world.
			for range effort.Of(1, 2, 2) {
				at := rng.IntN(len(all))
				next := all[at].next[0]
				first := slices.IndexFunc(rowsOf, func(r servedRow) bool { return r.Number >= next })
				if first < 0 {
					continue
				}
				world, size := 1+rng.IntN(3), 1+rng.IntN(9)
				limit := fmt.Sprintf("batch_size=%d", size)
				if rng.IntN(3) == 0 {
					limit = fmt.Sprintf("max_tokens=%d", 41*size)
				}
				var dealt []servedRow
				var steps [][]int64
				for rank := range world {
					b := mustFetch(t, client, fmt.Sprintf("%s&epochs=2&start=%d&%s&world=%d&rank=%d&tail=keep", order,
						next, limit, world, rank))
					dealt = append(dealt, unpack(t, b, false)...)
					var nexts []int64
					for _, x := range b {
						nexts = append(nexts, x.next[0])
					}
					steps = append(steps, nexts)
				}
				slices.SortFunc(dealt, func(a, b servedRow) int { return int(a.Number - b.Number) })
				if !reflect.DeepEqual(rowsOf[first:], dealt) {
					t.Fatalf("%s from %d by %d × %s: other rows", order, next, world, limit)
				}
				for _, next := range steps[world-1] { // at the end of an epoch there may be none for it
					if !slices.Contains(steps[0], next) {
						t.Fatalf("%s: the last rank continues at %d, the first at %v", order, next, steps[0])
					}
				}
				if last := steps[0][len(steps[0])-1]; last != 2*int64(len(rows)) {
					t.Fatalf("%s: the last step is followed by %d", order, last)
				}
			}
			// Every number between two rows begins with the row after it.
			start := rowsOf[half].Number - 1
			if b := mustFetch(t, client, fmt.Sprintf("%s&epochs=2&start=%d&batch_size=1", order,
				start)); !cmp.Equal(unpack(t, b[:1], false)[0], rowsOf[half]) && rowsOf[half-1].Number < start {
				t.Errorf("%s: row %d of an epoch's end is not the next epoch's first", order, start)
			}
		}
	}
}

// TestPackedTails: what each tail makes of the uneven end of an epoch.
func TestPackedTails(t *testing.T) {
	schema := shard.Schema{VocabSize: 500}
	client := serveDir(t, randomRows(200, schema, 5).write(t, t.TempDir(), schema, 64<<10))
	const order = "pack=bfd&max_length=64&seed=2"
	all := unpack(t, mustFetch(t, client, order), false)
	for _, world := range []int{1, 2, 3} {
		for _, size := range []int{1, 7, len(all) + 3} {
			for _, tail := range []string{"drop", "pad", "keep", "once"} {
				var got []servedRow
				counts := map[int]bool{}
				for rank := range world {
					b, err := fetch(client, fmt.Sprintf("%s&batch_size=%d&world=%d&rank=%d&tail=%s", order, size,
						world, rank, tail))
					if err != nil {
						if tail == "drop" && size*world > len(all) && strings.Contains(err.Error(),
							"do not make one whole step") {
							continue
						}
						t.Fatal(err)
					}
					for _, x := range b {
						if (tail == "drop" || tail == "pad") && len(x.length) != size {
							t.Errorf("world %d, batch %d, %s: a batch of %d", world, size, tail, len(x.length))
						}
					}
					counts[len(b)] = true
					for _, r := range unpack(t, b, false) {
						if tail != "once" || r.Number >= 0 {
							got = append(got, r)
						} else if len(b) == 0 ||
							slices.ContainsFunc(r.Labels, func(l int64) bool { return l != -100 }) {
							t.Errorf("world %d, batch %d: a filler with labels %v", world, size, r.Labels)
						}
					}
				}
				step := size * world
				want := map[string]int{"drop": len(all) / step * step, "pad": (len(all) + step - 1) / step * step,
					"keep": len(all), "once": len(all)}[tail]
				if len(got) != want || tail != "keep" && len(counts) > 1 {
					t.Errorf("world %d, batch %d, %s: %d rows of %d, want %d; batches %v", world, size, tail,
						len(got), len(all), want, counts)
				}
				seen := map[int64]bool{}
				for _, r := range got {
					seen[r.Number] = true
				}
				if len(seen) != min(want, len(all)) {
					t.Errorf("world %d, batch %d, %s: %d different rows", world, size, tail, len(seen))
				}
			}
		}
	}
}

// TestPackedCollation: padding side, width, labels and borders of packed rows.
func TestPackedCollation(t *testing.T) {
	schema := shard.Schema{VocabSize: 500}
	client := serveDir(t, randomRows(100, schema, 6).write(t, t.TempDir(), schema, 64<<10))
	plain := unpack(t, mustFetch(t, client, "pack=bfd&max_length=50"), false)
	for _, options := range []string{"padding_side=left", "dtype=int32", "padding=max_length",
		"pad_to_multiple_of=64&padding_side=left", "max_tokens=500"} {
		b := mustFetch(t, client, "pack=bestfit&max_length=50&"+options)
		if got := unpack(t, b, strings.Contains(options, "left")); !cmp.Equal(plain, got) {
			t.Errorf("%s: other rows", options)
		}
		if n := len(b[0].columns["input_ids"][0]); strings.Contains(options, "multiple") && n != 64 ||
			strings.Contains(options, "max_length") && n != 50 {
			t.Errorf("%s: a batch of length %d", options, n)
		}
	}
	if b := mustFetch(t, client, "pack=bfd&max_length=50&labels=none"); b[0].columns["labels"] != nil {
		t.Error("labels=none has labels")
	}
	for _, borders := range []string{"", "&borders=mask", "&borders=keep"} {
		for i, r := range unpack(t, mustFetch(t, client, "pack=bfd&max_length=50&padding_side=left"+borders), true) {
			at := 0
			for _, ids := range r.Segments {
				for j, id := range ids {
					want := id
					if j == 0 && borders != "&borders=keep" {
						want = -100
					}
					if r.Labels[at] != want {
						t.Fatalf("%s row %d, token %d of its document: label %d, want %d", borders, i, j, r.Labels[at],
							want)
					}
					at++
				}
			}
		}
	}
}

// TestPackedMix: rows of several datasets share packed rows; every row of an epoch comes once where
// the weights are those of the rows.
func TestPackedMix(t *testing.T) {
	schema := shard.Schema{VocabSize: 500}
	a, b := randomRows(512, schema, 7), randomRows(512, schema, 8)
	client := serveDir(t, "a="+a.write(t, t.TempDir(), schema, 64<<10), "b="+b.write(t, t.TempDir(), schema, 64<<10))
	var want, got []string
	for _, rows := range []memoryRows{a, b} {
		for _, r := range rows {
			want = append(want, fmt.Sprint(r.InputIDs))
		}
	}
	batches := mustFetch(t, client, "pack=bfd&max_length=64")
	for _, r := range unpack(t, batches, false) {
		for _, ids := range r.Segments {
			got = append(got, fmt.Sprint(ids))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || len(batches[0].dataset) != len(batches[0].length) {
		t.Error("a mix loses or repeats rows")
	}
}
