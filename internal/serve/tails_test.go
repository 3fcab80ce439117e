package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/shard"
)

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns what was logged since the last call.
func (b *logBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// served collects the rows that the ranks get; a filler must not count anywhere.
func served(t *testing.T, ranks [][]wireBatch) (rows []int64) {
	t.Helper()
	for _, batches := range ranks {
		for _, b := range batches {
			for i, e := range b.example {
				if e >= 0 {
					rows = append(rows, e)
				} else if b.order[i] != -1 || slices.ContainsFunc(b.columns["labels"][i],
					func(l int64) bool { return l != -100 }) {
					t.Errorf("example %d, row %d has labels %v", e, b.order[i], b.columns["labels"][i])
				}
			}
		}
	}
	return rows
}

// TestRowsAreServedOnceOrCounted: by default, ranks that share an evaluation get every row once, in
// equally many steps. Where rows are left out, the log says how many, once.
func TestRowsAreServedOnceOrCounted(t *testing.T) {
	for _, schema := range []shard.Schema{{VocabSize: 500}, {VocabSize: 500, Labels: true}} {
		dir := randomRows(100, schema, 5).write(t, t.TempDir(), schema, 8<<10)
		var log logBuffer
		o := Options{Datasets: []string{dir}, Feed: feed.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
		reader, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		client := serveBackend(t, reader, o)
		fetchAll := func(query string, world int) (ranks [][]wireBatch) {
			for rank := range world {
				ranks = append(ranks, mustFetch(t, client, fmt.Sprintf("%s&world=%d&rank=%d", query, world, rank)))
			}
			return ranks
		}
		for _, query := range []string{"batch_size=32", "batch_size=7", "batch_size=1", "batch_size=500",
			"max_tokens=300", "batch_size=8&balance=tokens", "batch_size=8&balance=quadratic",
			"batch_size=8&bucket=40"} {
			for _, world := range []int{1, 2, 3, 8} {
				ranks := fetchAll(query+"&shuffle=none", world)
				rows := served(t, ranks)
				slices.Sort(rows)
				if len(rows) != 100 || len(slices.Compact(rows)) != 100 {
					t.Errorf("%s on %d ranks: %d rows", query, world, len(rows))
				}
				for _, batches := range ranks {
					if len(batches) != len(ranks[0]) {
						t.Errorf("%s on %d ranks: %d batches and %d", query, world, len(batches), len(ranks[0]))
					}
				}
			}
		}
		if text := log.take(); strings.Contains(text, "left out") {
			t.Errorf("logged: %s", text)
		}
		for _, query := range []string{"batch_size=32", "batch_size=32&tail=drop&shuffle=none", "max_tokens=300",
			"batch_size=8&balance=quadratic"} {
			rows := len(served(t, fetchAll(query, 3)))
			text, want := log.take(), fmt.Sprintf("%d of 100 rows of the epoch are left out", 100-rows)
			if rows == 100 || strings.Count(text, want) != 1 || strings.Count(text, "left out") != 1 {
				t.Errorf("%s: %d rows, and logged: %s", query, rows, text)
			}
		}
		if schema.Labels {
			continue
		}
		packed := len(served(t, fetchAll("pack=bfd&max_length=64", 1)))
		log.take()
		rows := len(served(t, fetchAll("pack=bfd&max_length=64&batch_size=4", 3)))
		want := fmt.Sprintf("%d of %d rows of the epoch are left out", packed-rows, packed)
		if text := log.take(); strings.Count(text, want) != 1 {
			t.Errorf("packed: %d of %d rows, and logged: %s", rows, packed, text)
		}
	}
}

// TestDroppedTokensAreLogged: best fit decreasing cuts rows that are longer than a packed one. The log says so, once, and
// never more tokens than are missing.
func TestDroppedTokensAreLogged(t *testing.T) {
	schema := shard.Schema{VocabSize: 500}
	rows := randomRows(100, schema, 5)
	for _, length := range []int{130, 130, 131, 300} { // 130 and 131 are of one bucket of the histogram
		rows = append(rows, dataset.Example{InputIDs: make([]uint32, length), Document: int64(len(rows))})
	}
	var log logBuffer
	o := Options{Datasets: []string{rows.write(t, t.TempDir(), schema, 8<<10)},
		Feed: feed.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	reader, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	client := serveBackend(t, reader, o)
	tokens := func(query string) (n int) {
		for _, b := range mustFetch(t, client, query) {
			for _, row := range b.columns["attention_mask"] {
				for _, v := range row {
					n += int(v)
				}
			}
		}
		return n
	}
	all := tokens("batch_size=8")
	for _, length := range []int{1, 2, 39, 127, 128, 129, 130, 131, 132, 299, 300, 301} {
		for _, policy := range pack.Policies {
			if policy == pack.None {
				continue
			}
			log.take()
			query := fmt.Sprintf("batch_size=8&pack=%s&max_length=%d", policy, length)
			missing, said := all-tokens(query), 0
			if _, text, found := strings.Cut(log.take(), "at least "); found {
				fmt.Sscan(text, &said)
			}
			if said > missing || (said > 0) != (missing > 0) {
				t.Errorf("%s: %d of %d tokens are missing, and the log says %d", query, missing, all, said)
			}
			if length != 130 && said != missing { // no bucket holds lengths above and below it
				t.Errorf("%s: %d of %d tokens are missing, and the log says %d", query, missing, all, said)
			}
			mustFetch(t, client, query+"&world=2&rank=1&tail=once")
			if text := log.take(); strings.Contains(text, "at least") {
				t.Errorf("rank 1 logged: %s", text)
			}
		}
	}
}
