package feed

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/dsload/dsload/internal/resident"
)

// clientStatus is a running stream in /v1/stats.
type clientStatus struct {
	ID         uint64  `json:"id"`
	From       string  `json:"from"`
	Query      string  `json:"query"`
	Seconds    float64 `json:"seconds"`
	Next       int64   `json:"next"` // the position after the last batch
	LeaseBytes int64   `json:"lease_bytes"`
	// WaitingSeconds is how long the server has been waiting for the client, 0 if it is not.
	WaitingSeconds float64 `json:"waiting_seconds"`
	totals
}

// stats is the answer of /v1/stats, which the dashboard shows.
type stats struct {
	UptimeSeconds float64        `json:"uptime_seconds"`
	Draining      bool           `json:"draining"`
	Streams       int            `json:"streams"`
	MemoryUsed    int64          `json:"memory_leased_bytes"`
	MemoryPeak    int64          `json:"memory_leased_peak_bytes"`
	MemoryCap     int64          `json:"memory_cap_bytes"`
	Resident      int64          `json:"resident_bytes"` // 0 if unknown
	Efficiency    float64        `json:"padding_efficiency"`
	Clients       []clientStatus `json:"clients"` // the longest running first, at most maxClientsShown
	totals
}

// maxClientsShown bounds the answer of /v1/stats.
const maxClientsShown = 256

// maxQueryShown is how much of a query /v1/stats shows, in bytes.
const maxQueryShown = 512

func (s *Server) stats() stats {
	now, total := time.Now(), s.metrics.total()
	out := stats{
		UptimeSeconds: now.Sub(s.started).Seconds(), Draining: s.draining.Load(), totals: total,
		Efficiency: total.efficiency(),
		MemoryUsed: s.opts.Ledger.Used(), MemoryPeak: s.opts.Ledger.Peak(), MemoryCap: s.opts.Ledger.Cap(),
		Resident: resident.Bytes(), Streams: s.numStreams(), Clients: []clientStatus{},
	}
	for _, st := range s.firstStreams() {
		c := clientStatus{ID: st.id, From: st.from, Query: st.raw[:min(len(st.raw), maxQueryShown)],
			Seconds: now.Sub(st.since).Seconds(), Next: st.stats.next.Load(), LeaseBytes: st.leased.Load()}
		c.add(&st.stats)
		if since := st.stats.blockedSince.Load(); since != 0 {
			c.WaitingSeconds = max(0, now.Sub(time.Unix(0, since)).Seconds())
		}
		out.Clients = append(out.Clients, c)
	}
	return out
}

func (s *Server) serveStats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.stats())
}

// serveHealth answers 200 only while new streams can be served and the data can be read.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		writeError(w, &RequestError{503, "the server is shutting down", "connect again when it is back"})
		return
	}
	if err := s.opts.Backend.Check(); err != nil {
		writeError(w, &RequestError{503, err.Error(), "`dsload verify` names what is damaged"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": "ok", "streams": s.numStreams()})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// manifestPiece is how much of a manifest a client must read within answerTimeout, in bytes.
const manifestPiece = 64 << 10

// serveDataset sends a manifest from memory that all clients share. It answers at most half as many
// clients at once as there are connections.
func (s *Server) serveDataset(w http.ResponseWriter, r *http.Request) {
	values, err := parameters(r.URL.RawQuery, []string{"name"})
	if err != nil {
		writeError(w, err)
		return
	}
	parts, err := s.opts.Backend.Dataset(values.Get("name"))
	if err != nil {
		writeError(w, err)
		return
	}
	timer := time.NewTimer(s.opts.AdmitWait)
	defer timer.Stop()
	select {
	case s.answering <- struct{}{}:
		defer func() { <-s.answering }()
	case <-timer.C:
		writeError(w, &RequestError{503, "too many clients are reading manifests slowly", "ask again later"})
		return
	case <-r.Context().Done():
		return
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	control := http.NewResponseController(w)
	for _, p := range parts {
		for len(p) > 0 {
			n := min(len(p), manifestPiece)
			if control.SetWriteDeadline(time.Now().Add(answerTimeout)) != nil {
				return
			}
			if _, err := w.Write(p[:n]); err != nil {
				return // the client is gone or reads nothing
			}
			p = p[n:]
		}
	}
}
