package feed

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics is what /metrics shows. A stream counts for itself while it runs, so that the hot path
// touches no shared cache line; totals hold the counts of ended streams.
type metrics struct {
	server   *Server
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	ended    *prometheus.CounterVec
	refused  prometheus.Counter
	retired  totals // of streams that ended; guarded by Server.mu
}

// totals are counters over streams.
type totals struct {
	Batches int64 `json:"batches"`
	Rows    int64 `json:"rows"`
	Tokens  int64 `json:"tokens"`        // before padding
	Padded  int64 `json:"padded_tokens"` // elements of input_ids
	Bytes   int64 `json:"bytes"`
}

func (t *totals) add(s *streamStats) {
	for _, c := range []struct {
		to   *int64
		from *atomic.Int64
	}{{&t.Batches, &s.batches}, {&t.Rows, &s.rows}, {&t.Tokens, &s.tokens}, {&t.Padded, &s.padded},
		{&t.Bytes, &s.bytes}} {
		*c.to += c.from.Load()
	}
}

// efficiency returns the share of padded elements that are tokens, 1 before the first batch.
func (t totals) efficiency() float64 {
	if t.Padded == 0 {
		return 1
	}
	return float64(t.Tokens) / float64(t.Padded)
}

func newMetrics(s *Server) *metrics {
	m := &metrics{server: s, registry: prometheus.NewRegistry()}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dsload_feed_requests_total",
		Help: "Requests by path."}, []string{"path"})
	m.ended = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dsload_feed_streams_ended_total",
		Help: "Streams that ended, by how: complete, left (the client), timeout, shutdown, failed (data).",
	}, []string{"how"})
	m.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "dsload_feed_streams_refused_total",
		Help: "Requests for batches that were refused."})
	for _, how := range []string{"complete", "left", "timeout", "shutdown", "failed"} {
		m.ended.WithLabelValues(how)
	}
	counter := func(name, help string, get func(totals) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dsload_feed_" + name + "_total", Help: help},
			func() float64 { return float64(get(m.total())) })
	}
	gauge := func(name, help string, get func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dsload_feed_" + name, Help: help}, get)
	}
	m.registry.MustRegister(
		m.requests, m.ended, m.refused,
		counter("batches", "Batches sent.", func(t totals) int64 { return t.Batches }),
		counter("rows", "Rows sent.", func(t totals) int64 { return t.Rows }),
		counter("tokens", "Tokens sent, padding apart.", func(t totals) int64 { return t.Tokens }),
		counter("padded_tokens", "Elements of input_ids sent, padding included.",
			func(t totals) int64 { return t.Padded }),
		counter("bytes", "Bytes of batches sent.", func(t totals) int64 { return t.Bytes }),
		gauge("streams", "Streams that are running.", func() float64 { return float64(s.numStreams()) }),
		gauge("padding_efficiency", "Part of the padded elements that are tokens, over all streams.",
			func() float64 { return m.total().efficiency() }),
		gauge("memory_leased_bytes", "Bytes reserved and leased under the memory cap.",
			func() float64 { return float64(s.opts.Ledger.Used()) }),
		gauge("memory_cap_bytes", "The memory cap.", func() float64 { return float64(s.opts.Ledger.Cap()) }),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(),
	)
	return m
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

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// pathLabel returns the label of a path; unknown paths share the label "other".
func pathLabel(path string) string {
	switch path {
	case "/", "/v1/batches", "/v1/dataset", "/v1/stats", "/v1/live", "/healthz", "/metrics":
		return path
	}
	return "other"
}
