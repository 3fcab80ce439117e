package serve

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/shard"
)

// sent is a row as the feed sent it.
type sent struct {
	row  TracedRow
	next int64
	ids  []int64
}

// everySent reads the streams of all ranks. Steps are distinguished by their `next`.
func everySent(t *testing.T, fetchRank func(rank int) []wireBatch, world int) (all []sent) {
	t.Helper()
	for rank := range world {
		for _, b := range fetchRank(rank) {
			for i, e := range b.example {
				if e < 0 {
					continue // a filler
				}
				r := TracedRow{Example: e, Position: b.order[i], Rank: rank}
				if b.dataset != nil {
					r.Member = int(b.dataset[i])
				}
				all = append(all, sent{r, b.next[0], b.columns["input_ids"][i][:b.length[i]]})
			}
		}
	}
	var nexts []int64
	for _, s := range all {
		nexts = append(nexts, s.next)
	}
	slices.Sort(nexts)
	nexts = slices.Compact(nexts)
	for i := range all {
		step, _ := slices.BinarySearch(nexts, all[i].next)
		all[i].row.Step = int64(step)
	}
	return all
}

func TestTraceAgreesWithTheFeed(t *testing.T) {
	schema := shard.Schema{VocabSize: 90}
	dirs := make([]string, 2)
	documents := make([][]int64, 2)
	for d := range dirs {
		rows := randomRows(151+70*d, schema, uint64(d))
		document := int64(0)
		for i := range rows {
			if i > 0 && i%3 != d {
				rows[i].Part = rows[i-1].Part + 1
			} else {
				document += int64(1 + i%2)
			}
			rows[i].Document = document
			documents[d] = append(documents[d], document)
		}
		dirs[d] = rows.write(t, filepath.Join(t.TempDir(), fmt.Sprint("d", d)), schema, 8<<10)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range effort.Of(8, 40, 1000) {
		served := dirs[:1+rng.IntN(2)]
		world := 1 + rng.IntN(4)
		v := url.Values{"world": {fmt.Sprint(world)}, "batch_size": {fmt.Sprint(1 + rng.IntN(20))},
			"seed": {fmt.Sprint(rng.IntN(99))}, "epochs": {fmt.Sprint(1 + rng.IntN(3))},
			"shuffle": {pick("full", "block", "none")}, "tail": {pick("drop", "pad", "keep", "once")},
			"bucket": {pick("0", "0", "64", "1000")}, "group": {pick("8", "256")},
			"balance": {pick("none", "none", "tokens", "quadratic")}}
		if rng.IntN(3) == 0 {
			v.Set("max_tokens", fmt.Sprint(64+rng.IntN(400)))
		}
		if len(served) > 1 && rng.IntN(2) == 0 {
			v.Set("mix", "d1=2,d0=0.5")
		}
		if rng.IntN(2) == 0 {
			v.Set("bucket", "0")
			v.Set("balance", "none")
			v.Set("pack", pick("wrapped", "bfd", "bfd_split"))
			v.Set("max_length", pick("16", "40", "64"))
		}
		if rng.IntN(3) == 0 {
			v.Set("start", fmt.Sprint(rng.IntN(151)))
		}
		checkTrace(t, served, v, world, documents)
	}
}

func checkTrace(t *testing.T, served []string, v url.Values, world int, documents [][]int64) {
	t.Helper()
	client := serveDir(t, served...)
	all := everySent(t, func(rank int) []wireBatch {
		v.Set("rank", fmt.Sprint(rank))
		batches, err := fetch(client, v.Encode())
		if err != nil && !strings.Contains(err.Error(), "world") {
			t.Fatalf("%v: %v", v, err)
		}
		return batches
	}, world)
	v.Del("rank")
	q, err := feed.ParseQuery(v.Encode())
	if err != nil {
		t.Fatal(err)
	}
	reader, err := Open(Options{Datasets: served, Memory: MinMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	trace, err := reader.Trace(q)
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	var steps int64
	for _, s := range all {
		steps = max(steps, s.row.Step+1)
	}
	for k := range steps {
		var want []TracedRow
		for _, s := range all {
			if s.row.Step == k {
				want = append(want, s.row)
			}
		}
		got, err := trace.Step(k, -1)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: step %d: %v %v\nwant %v", v, k, got, err, want)
		}
		one, err := trace.Step(k, world-1)
		if err != nil || !slices.Equal(one, want[len(want)-len(one):]) {
			t.Fatalf("%v: step %d of the last rank: %v %v", v, k, one, err)
		}
	}
	if more, err := trace.Step(steps, -1); err == nil {
		t.Fatalf("%v: there is a step %d: %v", v, steps, more)
	}
	checkTracedRows(t, v, trace, all, documents)
}

// checkTracedRows compares single rows, and the rows of documents, with what was sent.
func checkTracedRows(t *testing.T, v url.Values, trace *Trace, all []sent, documents [][]int64) {
	t.Helper()
	number := func(part int) int { name, _, _ := trace.Dataset(part); return int(name[1] - '0') }
	first := map[int64]bool{}
	for _, s := range all {
		if first[s.row.Position] || s.row.Position < trace.opts.Start {
			continue // repeated by tail=pad
		}
		first[s.row.Position] = true
		want := s.row
		checkPieces(t, v, trace, s)
		if v.Has("max_tokens") && !v.Has("pack") {
			want.Step, want.Rank = -1, -1
		}
		if want.Position%7 == 0 {
			got, err := trace.Row(want.Position)
			if err != nil || got != want && v.Get("tail") != "pad" {
				t.Fatalf("%v: row %v %v, want %v", v, got, err, want)
			}
		}
		if want.Position%13 != 0 {
			continue
		}
		document := documents[number(want.Member)][want.Example]
		rows, err := trace.Document(want.Member, document)
		if err != nil || !slices.ContainsFunc(rows, func(r TracedRow) bool {
			return r.Position == want.Position && r.Example == want.Example
		}) {
			t.Fatalf("%v: document %d is not at row %d: %v %v", v, document, want.Position, rows, err)
		}
		for _, r := range rows {
			pieces, err := trace.Pieces(r)
			if err != nil {
				t.Fatal(err)
			}
			if pieces != nil {
				if !slices.ContainsFunc(pieces, func(p TracedPiece) bool {
					return p.Member == want.Member && documents[number(p.Member)][p.Example] == document
				}) {
					t.Fatalf("%v: document %d: row %v of %v", v, document, r, pieces)
				}
				continue
			}
			if documents[number(r.Member)][r.Example] != document {
				t.Fatalf("%v: document %d: row %v", v, document, r)
			}
		}
	}
}

// checkPieces compares what a packed row is made of with what was sent.
func checkPieces(t *testing.T, v url.Values, trace *Trace, s sent) {
	t.Helper()
	pieces, err := trace.Pieces(s.row)
	if err != nil || (pieces != nil) != v.Has("pack") {
		t.Fatalf("%v: row %v: %v %v", v, s.row, pieces, err)
	}
	var ids []int64
	for _, p := range pieces {
		var row shard.Row
		if err := trace.Split(p.Member).ReadRow(p.Example, &row); err != nil {
			t.Fatal(err)
		}
		of := row.AppendInputIDs(nil)
		if p.Whole != (p.From == 0 && p.Tokens == int64(len(of))) {
			t.Fatalf("%v: row %v: piece %v of %d tokens", v, s.row, p, len(of))
		}
		for _, id := range of[p.From : p.From+p.Tokens] {
			ids = append(ids, int64(id))
		}
	}
	if pieces != nil && !slices.Equal(ids, s.ids) {
		t.Fatalf("%v: row %v: pieces make %v, sent was %v", v, s.row, ids, s.ids)
	}
}
