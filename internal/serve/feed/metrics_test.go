package feed

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantMetrics is all of /metrics after a stream and a refused one. What the machine decides is 0 here.
const wantMetrics = `# HELP dsload_feed_batches_total Batches sent.
# TYPE dsload_feed_batches_total counter
dsload_feed_batches_total 4
# HELP dsload_feed_rows_total Rows sent.
# TYPE dsload_feed_rows_total counter
dsload_feed_rows_total 100
# HELP dsload_feed_tokens_total Tokens sent, padding apart.
# TYPE dsload_feed_tokens_total counter
dsload_feed_tokens_total 1757
# HELP dsload_feed_padded_tokens_total Elements of input_ids sent, padding included.
# TYPE dsload_feed_padded_tokens_total counter
dsload_feed_padded_tokens_total 3496
# HELP dsload_feed_bytes_total Bytes of batches sent.
# TYPE dsload_feed_bytes_total counter
dsload_feed_bytes_total 27776
# HELP dsload_feed_requests_total Requests by path.
# TYPE dsload_feed_requests_total counter
dsload_feed_requests_total{path="/"} 0
dsload_feed_requests_total{path="/healthz"} 1
dsload_feed_requests_total{path="/metrics"} 0
dsload_feed_requests_total{path="/v1/batches"} 2
dsload_feed_requests_total{path="/v1/dataset"} 0
dsload_feed_requests_total{path="/v1/live"} 0
dsload_feed_requests_total{path="/v1/stats"} 0
dsload_feed_requests_total{path="other"} 2
# HELP dsload_feed_streams_ended_total Streams that ended, by how: complete, left (the client), timeout, shutdown, failed (data).
# TYPE dsload_feed_streams_ended_total counter
dsload_feed_streams_ended_total{how="complete"} 1
dsload_feed_streams_ended_total{how="failed"} 0
dsload_feed_streams_ended_total{how="left"} 0
dsload_feed_streams_ended_total{how="shutdown"} 0
dsload_feed_streams_ended_total{how="timeout"} 0
# HELP dsload_feed_streams_refused_total Requests for batches that were refused.
# TYPE dsload_feed_streams_refused_total counter
dsload_feed_streams_refused_total 1
# HELP dsload_feed_dataset_rows_total Rows sent, before they are packed, by dataset.
# TYPE dsload_feed_dataset_rows_total counter
dsload_feed_dataset_rows_total{dataset="fake",split="train"} 100
# HELP dsload_feed_dataset_tokens_total Tokens sent, by dataset.
# TYPE dsload_feed_dataset_tokens_total counter
dsload_feed_dataset_tokens_total{dataset="fake",split="train"} 1757
# HELP dsload_feed_dataset_epochs Rows sent for each row that there is, by dataset.
# TYPE dsload_feed_dataset_epochs gauge
dsload_feed_dataset_epochs{dataset="fake",split="train"} 1
# HELP dsload_feed_source_rows_total Rows sent, before they are packed, by source.
# TYPE dsload_feed_source_rows_total counter
dsload_feed_source_rows_total{dataset="fake",split="train",source="a \"b\".txt"} 34
dsload_feed_source_rows_total{dataset="fake",split="train",source="c.txt"} 66
# HELP dsload_feed_source_tokens_total Tokens sent, by source.
# TYPE dsload_feed_source_tokens_total counter
dsload_feed_source_tokens_total{dataset="fake",split="train",source="a \"b\".txt"} 595
dsload_feed_source_tokens_total{dataset="fake",split="train",source="c.txt"} 1162
# HELP dsload_feed_source_epochs Rows sent for each row that there is, by source.
# TYPE dsload_feed_source_epochs gauge
dsload_feed_source_epochs{dataset="fake",split="train",source="a \"b\".txt"} 1.0303030303030303
dsload_feed_source_epochs{dataset="fake",split="train",source="c.txt"} 0.9850746268656716
# HELP dsload_feed_dataset_weight Share of rows that the latest stream asks for.
# TYPE dsload_feed_dataset_weight gauge
dsload_feed_dataset_weight{dataset="fake",split="train"} 1
# HELP dsload_feed_streams Streams that are running.
# TYPE dsload_feed_streams gauge
dsload_feed_streams 0
# HELP dsload_feed_padding_efficiency Part of the padded elements that are tokens, over all streams.
# TYPE dsload_feed_padding_efficiency gauge
dsload_feed_padding_efficiency 0.5025743707093822
# HELP dsload_feed_memory_leased_bytes Bytes reserved and leased under the memory cap.
# TYPE dsload_feed_memory_leased_bytes gauge
dsload_feed_memory_leased_bytes 0
# HELP dsload_feed_memory_cap_bytes The memory cap.
# TYPE dsload_feed_memory_cap_bytes gauge
dsload_feed_memory_cap_bytes 33554432
# HELP go_goroutines Goroutines that exist.
# TYPE go_goroutines gauge
go_goroutines 0
# HELP process_cpu_seconds_total User and system CPU time, in seconds.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 0
# HELP process_resident_memory_bytes Resident memory, in bytes.
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 0
# HELP process_open_fds Open file descriptors.
# TYPE process_open_fds gauge
process_open_fds 0
# HELP process_start_time_seconds When the server started, in seconds since 1970.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 0
`

func TestMetrics(t *testing.T) {
	_, client, _ := start(t, Options{Backend: &fakeBackend{rows: 100}})
	if _, err := readAll(get(t, client, "").Body); err != nil {
		t.Fatal(err)
	}
	get(t, client, "batch_size=0")
	for _, path := range []string{"/healthz", "/nothing", "/nothing/else"} {
		resp, err := client.Get("http://dsload" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	var text string
	for !strings.Contains(text, "dsload_feed_streams 0\n") { // the stream's end is counted after its last byte
		resp, err := client.Get("http://dsload/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if kind := resp.Header.Get("Content-Type"); err != nil || kind != "text/plain; version=0.0.4; charset=utf-8" {
			t.Fatalf("%v, Content-Type %q", err, kind)
		}
		text = string(body)
	}
	machine := regexp.MustCompile(`(?m)^(go_\w+|process_\w+|\w+_leased_bytes|dsload_feed_requests_total\{path="/metrics"\}) \d*\.?\d+(e\+\d+)?$`)
	if diff := cmp.Diff(wantMetrics, machine.ReplaceAllString(text, "$1 0")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
