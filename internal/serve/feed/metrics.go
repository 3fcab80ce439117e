package feed

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/resident"
)

// metrics is what /metrics shows. A stream counts for itself while it runs, so that the hot path
// touches no shared cache line; retired holds the counts of ended streams.
type metrics struct {
	server   *Server
	requests labelled // one for each path
	ended    labelled // streams, by how they ended
	refused  atomic.Int64
	retired  totals // streams that ended; guarded by Server.mu
}

// labelled has a counter for each value of a label. The values are fixed.
type labelled map[string]*atomic.Int64

func newLabelled(values ...string) labelled {
	l := labelled{}
	for _, v := range values {
		l[v] = new(atomic.Int64)
	}
	return l
}

// otherPaths is the label of all paths that nothing is served at.
const otherPaths = "other"

// totals are counters over streams.
type totals struct {
	Batches int64 `json:"batches"`
	Rows    int64 `json:"rows"`
	Tokens  int64 `json:"tokens"`        // before padding
	Padded  int64 `json:"padded_tokens"` // elements of input_ids
	Bytes   int64 `json:"bytes"`
}

func (t *totals) add(s *streamStats) {
	t.Batches += s.batches.Load()
	t.Rows += s.rows.Load()
	t.Tokens += s.tokens.Load()
	t.Padded += s.padded.Load()
	t.Bytes += s.bytes.Load()
}

// efficiency returns the share of padded elements that are tokens, 1 before the first batch.
func (t totals) efficiency() float64 {
	if t.Padded == 0 {
		return 1
	}
	return float64(t.Tokens) / float64(t.Padded)
}

func newMetrics(s *Server) *metrics {
	return &metrics{
		server: s,
		requests: newLabelled("/", "/v1/batches", "/v1/dataset", "/v1/stats", "/v1/live", "/healthz", "/metrics",
			otherPaths),
		ended: newLabelled("complete", "left", "timeout", "shutdown", "failed"),
	}
}

func (m *metrics) countRequest(path string) {
	cmp.Or(m.requests[path], m.requests[otherPaths]).Add(1)
}

// total returns the counts of all streams, ended and running.
func (m *metrics) total() totals {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	t := m.retired
	for _, st := range m.server.streams {
		t.add(&st.stats)
	}
	return t
}

func (s *Server) numStreams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// ServeHTTP answers in version 0.0.4 of Prometheus' text format.
func (m *metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.writeFeed(w)
	writeProcess(w)
	writeMetric(w, "process_start_time_seconds", "gauge", "When the server started, in seconds since 1970.",
		float64(m.server.started.UnixMilli())/1000)
}

func (m *metrics) writeFeed(w io.Writer) {
	counter := func(name, help string, value int64) { writeMetric(w, "dsload_feed_"+name, "counter", help, value) }
	gauge := func(name, help string, value any) { writeMetric(w, "dsload_feed_"+name, "gauge", help, value) }
	byLabel := func(name, help, label string, counts labelled) {
		writeHead(w, "dsload_feed_"+name, "counter", help)
		for _, value := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(w, "dsload_feed_%s{%s=%q} %d\n", name, label, value, counts[value].Load())
		}
	}
	s, total := m.server, m.total()
	counter("batches_total", "Batches sent.", total.Batches)
	counter("rows_total", "Rows sent.", total.Rows)
	counter("tokens_total", "Tokens sent, padding apart.", total.Tokens)
	counter("padded_tokens_total", "Elements of input_ids sent, padding included.", total.Padded)
	counter("bytes_total", "Bytes of batches sent.", total.Bytes)
	byLabel("requests_total", "Requests by path.", "path", m.requests)
	byLabel("streams_ended_total",
		"Streams that ended, by how: complete, left (the client), timeout, shutdown, failed (data).", "how", m.ended)
	counter("streams_refused_total", "Requests for batches that were refused.", m.refused.Load())
	m.writeSources(w)
	gauge("streams", "Streams that are running.", s.numStreams())
	gauge("padding_efficiency", "Part of the padded elements that are tokens, over all streams.", total.efficiency())
	gauge("memory_leased_bytes", "Bytes reserved and leased under the memory cap.", s.opts.Ledger.Used())
	gauge("memory_cap_bytes", "The memory cap.", s.opts.Ledger.Cap())
}

// writeSources writes what was sent by dataset and by source, and what the latest streams asked for.
func (m *metrics) writeSources(w io.Writer) {
	datasets := m.server.live.served()
	each := func(name, kind, help, of string, value func(*servedShare) any) {
		writeHead(w, "dsload_feed_"+of+"_"+name, kind, help)
		for i := range datasets {
			d := &datasets[i]
			if of == "dataset" {
				fmt.Fprintf(w, "dsload_feed_dataset_%s{dataset=\"%s\",split=\"%s\"} %v\n", name, labelText.Replace(d.Name), d.Split,
					value(d))
				continue
			}
			for k := range d.Sources {
				if s := &d.Sources[k]; s.Name != "" {
					fmt.Fprintf(w, "dsload_feed_source_%s{dataset=\"%s\",split=\"%s\",source=\"%s\"} %v\n", name,
						labelText.Replace(d.Name), d.Split, labelText.Replace(s.Name), value(s))
				}
			}
		}
	}
	for _, of := range []string{"dataset", "source"} {
		each("rows_total", "counter", "Rows sent, before they are packed, by "+of+".", of, func(s *servedShare) any { return s.Rows })
		each("tokens_total", "counter", "Tokens sent, by "+of+".", of, func(s *servedShare) any { return s.Tokens })
		each("epochs", "gauge", "Rows sent for each row that there is, by "+of+".", of, func(s *servedShare) any { return s.Epochs })
	}
	each("weight", "gauge", "Share of rows that the latest stream asks for.", "dataset", func(s *servedShare) any { return s.Asked })
}

// labelText escapes the value of a label.
var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// writeProcess writes what dashboards of processes ask for, under the names that Prometheus' own clients use.
func writeProcess(w io.Writer) {
	writeMetric(w, "go_goroutines", "gauge", "Goroutines that exist.", runtime.NumGoroutine())
	writeMetric(w, "process_cpu_seconds_total", "counter", "User and system CPU time, in seconds.",
		cputime.Process().Seconds())
	writeMetric(w, "process_resident_memory_bytes", "gauge", "Resident memory, in bytes.", resident.Bytes())
	if files, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux has it
		writeMetric(w, "process_open_fds", "gauge", "Open file descriptors.", len(files))
	}
}

func writeHead(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func writeMetric(w io.Writer, name, kind, help string, value any) {
	writeHead(w, name, kind, help)
	fmt.Fprintln(w, name, value)
}
