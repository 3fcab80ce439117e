package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dsload/dsload/shard"
)

// metricsOf returns what a server's metrics say.
func metricsOf(t *testing.T, client *http.Client) string {
	t.Helper()
	resp, err := client.Get("http://dsload/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestSourcesOfRows: the columns say which dataset and source a row came from, and the metrics count what was sent,
// packed or not.
func TestSourcesOfRows(t *testing.T) {
	schema := shard.Schema{VocabSize: 500}
	a, b := randomRows(300, schema, 2), randomRows(100, schema, 3)
	dirs := []string{"left=" + a.write(t, t.TempDir(), schema, 8<<10, "a0", "a1", "a2"),
		"right=" + b.write(t, t.TempDir(), schema, 8<<10, "b0", "b\"1\"")}
	client := serveDir(t, dirs...)
	rows, tokens := [5]int64{}, [5]int64{}
	for _, batch := range mustFetch(t, client, "mix=left=1,right=3&sources=yes&batch_size=16&epochs=2&seed=4") {
		for i, source := range batch.source {
			want := [2]int32{int32(batch.example[i] / 100), 3 + int32(batch.example[i]/50)}[batch.dataset[i]]
			if source != want {
				t.Fatalf("example %d of dataset %d: source %d, want %d", batch.example[i], batch.dataset[i], source, want)
			}
			rows[source]++
			tokens[source] += int64(batch.length[i])
		}
	}
	text := metricsOf(t, client)
	for i, labels := range []string{`dataset="left",split="train",source="a0"`, `dataset="left",split="train",source="a1"`,
		`dataset="left",split="train",source="a2"`, `dataset="right",split="train",source="b0"`,
		`dataset="right",split="train",source="b\"1\""`} {
		for _, want := range []string{fmt.Sprintf("source_rows_total{%s} %d\n", labels, rows[i]),
			fmt.Sprintf("source_tokens_total{%s} %d\n", labels, tokens[i])} {
			if !strings.Contains(text, want) {
				t.Errorf("the metrics lack %s", want)
			}
		}
	}
	for _, want := range []string{`dataset_weight{dataset="left",split="train"} 0.25`, `dataset_weight{dataset="right",split="train"} 0.75`,
		fmt.Sprintf(`dataset_epochs{dataset="right",split="train"} %v`, float64(rows[3]+rows[4])/100)} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	packed := serveDir(t, dirs[0])
	mustFetch(t, packed, "pack=bfd_split&max_length=16&batch_size=4") // cuts rows
	if text := metricsOf(t, packed); !strings.Contains(text, `source_rows_total{dataset="left",split="train",source="a1"} 100`+"\n") ||
		!strings.Contains(text, `source_epochs{dataset="left",split="train",source="a2"} 1`+"\n") {
		t.Errorf("packed rows:\n%s", text)
	}
}

// TestSourcesAreNotGuessed: rows without a source of their own are refused; the labels of metrics are bounded.
func TestSourcesAreNotGuessed(t *testing.T) {
	schema := shard.Schema{VocabSize: 500}
	many := make([]string, 2*mostCounted)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	rows := randomRows(4*mostCounted, schema, 5)
	packed := schema
	packed.Segments = true
	for name, c := range map[string]struct {
		client      *http.Client
		query, want string
	}{
		"unrecorded":      {serveDir(t, rows.write(t, t.TempDir(), schema, 64<<10)), "", "does not record"},
		"packed":          {serveDir(t, rows.write(t, t.TempDir(), schema, 64<<10, "a", "b")), "&pack=bfd", "hold documents of several"},
		"packed by build": {serveDir(t, randomRows(20, packed, 1).write(t, t.TempDir(), packed, 64<<10)), "", "packed its rows"},
	} {
		if _, err := fetch(c.client, "sources=yes"+c.query); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := serveDir(t, rows.write(t, t.TempDir(), schema, 64<<10, many...))
	mustFetch(t, client, "")
	text := metricsOf(t, client)
	if n := strings.Count(text, "source_rows_total{"); n != mostCounted+1 ||
		!strings.Contains(text, fmt.Sprintf(`source="%d others"} %d`, mostCounted, 2*mostCounted)+"\n") {
		t.Errorf("%d sources are counted one by one", n)
	}
}
