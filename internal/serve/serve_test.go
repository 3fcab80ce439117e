package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var schemas = map[string]shard.Schema{
	"plain": {VocabSize: 50257}, "wide": {VocabSize: 200_000}, "chat": {VocabSize: 1000, LossMask: true},
	"targets": {VocabSize: 1000, Labels: true}, "packed": {VocabSize: 70_000, Segments: true},
	"everything": {VocabSize: 300, Labels: true, LossMask: true, Segments: true},
}

// TestBatchesEqualReference checks that what comes through shard, sampler, collate, encoder, HTTP
// and arrow-go equals the slow reference over the rows in memory, for every kind of row.
func TestBatchesEqualReference(t *testing.T) {
	for name, schema := range schemas {
		t.Run(name, func(t *testing.T) {
			rows := randomRows(300, schema, 1)
			client := serveDir(t, rows.write(t, t.TempDir(), schema, 8<<10))
			rapid.Check(t, func(t *rapid.T) {
				labels := []string{"auto", "causal", "none"}
				if schema.Labels {
					labels = append(labels, "seq2seq")
				}
				query := fmt.Sprintf("batch_size=%d&seed=%d&shuffle=%s&bucket=%d&group=%d&labels=%s&borders=%s&padding_side=%s&pad_to_multiple_of=%d&padding=%s&dtype=%s&start=%d",
					rapid.IntRange(1, 300).Draw(t, "batch"), rapid.IntRange(0, 3).Draw(t, "seed"),
					rapid.SampledFrom([]string{"full", "block", "none"}).Draw(t, "shuffle"),
					rapid.SampledFrom([]int{0, 100, 1000}).Draw(t, "bucket"), rapid.IntRange(1, 50).Draw(t, "group"),
					rapid.SampledFrom(labels).Draw(t, "labels"),
					rapid.SampledFrom([]string{"mask", "keep"}).Draw(t, "borders"),
					rapid.SampledFrom([]string{"left", "right"}).Draw(t, "side"),
					rapid.SampledFrom([]int{1, 8}).Draw(t, "multiple"),
					rapid.SampledFrom([]string{"longest", "max_length"}).Draw(t, "padding"),
					rapid.SampledFrom([]string{"int64", "int32"}).Draw(t, "dtype"),
					rapid.IntRange(0, 300).Draw(t, "start"))
				if rapid.Bool().Draw(t, "by tokens") {
					query += fmt.Sprintf("&max_tokens=%d", rapid.IntRange(80, 4000).Draw(t, "max_tokens"))
				}
				q, err := feed.ParseQuery(query)
				if err != nil {
					t.Fatal(err)
				}
				batches, err := fetch(client, query)
				if err != nil {
					t.Fatal(query, err)
				}
				at := q.Start
				for _, b := range batches {
					if want := rows.slow(q, b.example, schema); !reflect.DeepEqual(want, b.columns) {
						t.Fatal(query, cmp.Diff(want, b.columns))
					}
					if longest := int64(slices.Max(b.length)); q.MaxTokens > 0 &&
						longest*int64(len(b.length)) > q.MaxTokens {
						t.Fatalf("%d rows of %d tokens", len(b.length), longest)
					}
					for i, e := range b.example {
						if b.order[i] != at || int(b.length[i]) != len(rows[e].InputIDs) ||
							b.next[i] != b.order[0]+int64(len(b.order)) {
							t.Fatalf("row %d: order %d length %d next %d", at, b.order[i], b.length[i], b.next[i])
						}
						at++
					}
				}
				if at != 300 {
					t.Fatalf("%s ended at row %d", query, at)
				}
			})
		})
	}
}

func TestMixOfDatasets(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	a, b := randomRows(300, schema, 2), randomRows(900, schema, 3)
	client := serveDir(t, "left="+a.write(t, t.TempDir(), schema, 8<<10),
		"right="+b.write(t, t.TempDir(), schema, 8<<10))
	const query = "mix=left=3,right=1&batch_size=16&epochs=2&seed=4&bucket=200"
	all, err := fetch(client, query)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int32]int{}
	for _, batch := range all {
		for i, d := range batch.dataset {
			counts[d]++
			want := memoryRows{[]memoryRows{a, b}[d][batch.example[i]]}.slow(feed.Query{Labels: collate.Causal,
				PadToMultipleOf: 1}, []int64{0}, schema)
			if got := batch.columns["input_ids"][i][:batch.length[i]]; !slices.Equal(want["input_ids"][0], got) {
				t.Fatal(cmp.Diff(want["input_ids"][0], got))
			}
		}
	}
	if n := counts[0] + counts[1]; n != 2400 || counts[0] < n*3/4-60 || counts[0] > n*3/4+60 {
		t.Errorf("%v rows of the two datasets", counts)
	}
	rest, err := fetch(client, fmt.Sprintf("%s&start=%d", query, all[70].next[0]))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(all[71:], rest) {
		diff := cmp.Diff(all[71:], rest, cmp.AllowUnexported(wireBatch{}))
		t.Error("resume differs: ", diff[:min(len(diff), 500)])
	}
	for bad, query := range map[string]string{"unknown": "mix=middle=1", "split": "split=val"} {
		if _, err := fetch(client, query); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// TestRanksOverTheWire checks that every step's next is the same on all ranks, and that together
// the ranks give the order.
func TestRanksOverTheWire(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	rows := randomRows(1000, schema, 5)
	client := serveDir(t, rows.write(t, t.TempDir(), schema, 8<<10))
	for _, query := range []string{"batch_size=8", "max_tokens=400", "max_tokens=400&bucket=300",
		"batch_size=8&tail=pad", "batch_size=8&tail=keep"} {
		seen := map[int64]int{}
		var nexts [3][]int64
		for rank := range 3 {
			batches, err := fetch(client, fmt.Sprintf("%s&rank=%d&world=3&seed=9", query, rank))
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range batches {
				nexts[rank] = append(nexts[rank], b.next[0])
				for _, p := range b.order {
					seen[p]++
				}
			}
		}
		if query != "batch_size=8&tail=keep" && !(slices.Equal(nexts[0], nexts[1]) &&
			slices.Equal(nexts[0], nexts[2])) {
			t.Errorf("%s: ranks disagree", query)
		}
		for p, n := range seen {
			if n != 1 && query != "batch_size=8&tail=pad" {
				t.Fatalf("%s: row %d came %d times", query, p, n)
			}
		}
		if len(seen) < 1000-60 || len(seen) != 1000 && (query == "batch_size=8&tail=pad" ||
			query == "batch_size=8&tail=keep") {
			t.Errorf("%s: %d rows", query, len(seen))
		}
	}
}

// TestDamagedShardMidStream damages a shard while it is served. The client's stream breaks with an
// error, asking again gives the reason, and the server reports bad health.
func TestDamagedShardMidStream(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	dir := randomRows(3000, schema, 6).write(t, t.TempDir(), schema, 16<<10)
	client := serveDir(t, dir)
	last := filepath.Join(dir, "train-00003.arrow")
	info, err := os.Stat(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(last, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	batches, err := fetch(client, "shuffle=none&batch_size=10")
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(batches) == 0 {
		t.Fatalf("%d batches, then %v", len(batches), err)
	}
	next := batches[len(batches)-1].next[0]
	if _, err := fetch(client, fmt.Sprintf("shuffle=none&batch_size=10&start=%d", next)); err == nil ||
		!contains(err.Error(), "train-00003.arrow", "truncated") {
		t.Errorf("asking again: %v", err)
	}
	resp, err := client.Get("http://dsload/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 503 || !contains(string(body), "train-00003.arrow") {
		t.Errorf("health: %d %s", resp.StatusCode, body)
	}
}

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func TestOptionsAreChecked(t *testing.T) {
	schema := shard.Schema{VocabSize: 100}
	dir := randomRows(10, schema, 7).write(t, t.TempDir(), schema, 8<<10)
	for name, o := range map[string]Options{"none": {}, "twice": {Datasets: []string{dir, dir}},
		"missing": {Datasets: []string{dir + "/nothing"}}} {
		if r, err := Open(o); err == nil {
			r.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	r, err := Open(Options{Datasets: []string{"a=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := NewServer(r, Options{Memory: 1 << 20}); err == nil {
		t.Error("a cap of 1 MiB was accepted")
	}
	for _, query := range []string{"labels=seq2seq", "max_tokens=3", "start=11", "epochs=2&start=21", "split=val"} {
		q, err := feed.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var re *feed.RequestError
		if _, err := r.Open(q); !errors.As(err, &re) || re.Status != 400 || re.Hint == "" {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestSealKnowsTheOrderOfDatasets checks that a client which reconnects to a server with the same
// datasets in another order, where a default mix has other rows at the same places, sees it.
func TestSealKnowsTheOrderOfDatasets(t *testing.T) {
	schema := shard.Schema{VocabSize: 100}
	a := "a=" + randomRows(10, schema, 7).write(t, t.TempDir(), schema, 8<<10)
	b := "b=" + randomRows(10, schema, 8).write(t, t.TempDir(), schema, 8<<10)
	sealed := func(datasets ...string) string {
		r, err := Open(Options{Datasets: datasets})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Seal()
	}
	ordered := sealed(a, b)
	if again := sealed(a, b); again != ordered || sealed(b, a) == ordered {
		t.Error("the seal is not that of the datasets in their order")
	}
}

// TestDefaultMemoryHoldsItsStreams checks that under the default cap a stream of large batches
// works ahead, and 256 usual streams that nobody reads still fit next to it.
func TestDefaultMemoryHoldsItsStreams(t *testing.T) {
	rows := make(memoryRows, 300)
	for i := range rows {
		rows[i] = dataset.Example{InputIDs: make([]uint32, 512), Document: int64(i)}
	}
	client := serveDir(t, rows.write(t, t.TempDir(), shard.Schema{VocabSize: 50257}, 1<<20))
	ask := func(query string) {
		resp, err := client.Get("http://dsload/v1/batches?epochs=0&" + query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", query, resp.Status)
		}
	}
	type stats struct {
		Streams int   `json:"streams"`
		Leased  int64 `json:"memory_leased_bytes"`
		Cap     int64 `json:"memory_cap_bytes"`
		Clients []struct {
			Leased int64 `json:"lease_bytes"`
		}
	}
	look := func() (s stats) {
		resp, err := client.Get("http://dsload/v1/stats")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const batch = 256 * 512 * 2 // as in the shard
	ask("batch_size=256&bucket=256")
	if s := look(); len(s.Clients) != 1 || s.Clients[0].Leased < 3*batch {
		t.Errorf("%+v: no batches ahead", s)
	}
	for i := range 256 {
		ask(fmt.Sprintf("batch_size=32&seed=%d", i))
	}
	if s := look(); s.Streams != 257 || s.Cap != DefaultMemory || s.Leased > s.Cap {
		t.Errorf("%d streams, %d bytes of %d", s.Streams, s.Leased, s.Cap)
	}
}
