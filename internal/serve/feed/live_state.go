package feed

import "time"

const (
	// stalledAfter is the time after which a trainer that takes nothing counts as stalled.
	stalledAfter = 15 * time.Second
	// busyShare is the share of time that data must wait for a trainer for it to count as busy.
	busyShare = 0.5
)

// liveState is what the page shows apart from its charts.
type liveState struct {
	Uptime     float64       `json:"uptime"`
	Draining   bool          `json:"draining,omitempty"`
	Streams    int           `json:"streams"`
	MemoryUsed int64         `json:"memory_leased"`
	MemoryCap  int64         `json:"memory_cap"`
	Batches    int64         `json:"batches"`
	Rows       int64         `json:"rows"`
	Tokens     int64         `json:"tokens"`
	Padded     int64         `json:"padded"`
	Datasets   []About       `json:"datasets"`
	Shares     []servedShare `json:"shares"`
	Lengths    [][3]int64    `json:"lengths"`
	Served     [][3]int64    `json:"served"`
	Lanes      []string      `json:"lanes"`
	Clients    []liveClient  `json:"clients"`
}

// liveClient is a line of the table of trainers.
type liveClient struct {
	ID         uint64   `json:"id"`
	Rank       int      `json:"rank"`
	World      int      `json:"world"`
	From       string   `json:"from,omitempty"`
	Query      string   `json:"query"`
	Next       int64    `json:"next"`
	Epoch      *int64   `json:"epoch"`
	Epochs     int64    `json:"epochs,omitempty"`
	Share      *float64 `json:"share"` // the part of the epoch that was read
	RowsRate   *float64 `json:"rows_s"`
	TokensRate *float64 `json:"tokens_s"`
	Efficiency *float64 `json:"efficiency"`
	Lane       int      `json:"lane"`    // -1 if it has none of its own
	State      string   `json:"state"`   // begins, waits, busy, stalled
	Waiting    float64  `json:"waiting"` // seconds for which it has taken nothing
}

// state implements page.Figures.State.
func (l *live) state(now time.Time) any {
	s := l.server
	total := s.metrics.total()
	out := liveState{
		Uptime: now.Sub(s.started).Seconds(), Draining: s.draining.Load(), Streams: s.numStreams(),
		MemoryUsed: s.opts.Ledger.Used(), MemoryCap: s.opts.Ledger.Cap(), Batches: total.Batches, Rows: total.Rows,
		Tokens: total.Tokens, Padded: total.Padded, Datasets: l.about, Shares: l.served(), Lengths: l.bars, Served: l.servedBars(),
		Clients: []liveClient{},
	}
	for i := range out.Shares { // the largest sources
		s := &out.Shares[i]
		s.Sources = s.Sources[:min(len(s.Sources), max(2, maxSharesShown/len(out.Shares)))]
	}
	for i := range l.lanes {
		out.Lanes = append(out.Lanes, l.lanes[i].name)
	}
	streams := s.firstStreams()
	others := ""
	if len(streams) > numLanes {
		others = "others"
	}
	out.Lanes = append(out.Lanes, others)
	for _, st := range streams {
		out.Clients = append(out.Clients, l.client(st, now))
	}
	return out
}

func (l *live) client(st *stream, now time.Time) liveClient {
	c := liveClient{ID: st.id, Rank: st.query.Rank, World: st.query.World, From: st.from,
		Query: st.raw[:min(len(st.raw), maxQueryShown)], Next: st.stats.next.Load(), Epochs: st.query.Epochs,
		Lane: -1, State: "begins"}
	if st.stats.batches.Load() == 0 {
		c.Next = st.query.Start
	}
	if st.epoch > 0 {
		epoch, share := c.Next/st.epoch, float64(c.Next%st.epoch)/float64(st.epoch)
		if share == 0 && c.Next > st.query.Start { // the last row of an epoch belongs to it
			epoch, share = epoch-1, 1
		}
		c.Epoch, c.Share = &epoch, &share
	}
	if since := st.stats.blockedSince.Load(); since != 0 {
		c.Waiting = max(0, now.Sub(time.Unix(0, since)).Seconds())
	}
	t := l.tracks[st.id]
	if t == nil {
		return c
	}
	c.Lane = t.lane
	r := t.rates()
	c.RowsRate, c.TokensRate, c.Efficiency = known(r.rows), known(r.tokens), known(r.padding)
	switch {
	case c.Waiting > stalledAfter.Seconds():
		c.State = "stalled"
	case r.blocked >= busyShare:
		c.State = "busy"
	case r.blocked == r.blocked:
		c.State = "waits"
	}
	return c
}

// maxSharesShown is how many sources the page shows.
const maxSharesShown = 24

// servedShare is what was sent of a dataset's split, or of a source of it.
type servedShare struct {
	Name    string        `json:"name"` // "" for sources that cannot be told apart
	Split   string        `json:"split"`
	Asked   float64       `json:"asked"` // the share of rows that the latest stream asks for; 0 if none did
	Rows    int64         `json:"rows"`
	Tokens  int64         `json:"tokens"`
	Epochs  float64       `json:"epochs"` // rows sent for each row that there is
	Sources []servedShare `json:"sources,omitempty"`
}

// served returns what was sent of each split, in the order of datasets.
func (l *live) served() (out []servedShare) {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	for i := range l.about {
		for k := range l.about[i].Splits {
			split := &l.about[i].Splits[k]
			d := servedShare{Name: l.about[i].Name, Split: split.Name, Asked: l.server.asked[split.Name][l.about[i].Name]}
			for _, c := range split.Sources {
				s := servedShare{Name: c.Source, Split: split.Name, Rows: c.Rows.Load(), Tokens: c.Tokens.Load()}
				s.Epochs = float64(s.Rows) / float64(max(1, c.Size))
				d.Rows, d.Tokens, d.Sources = d.Rows+s.Rows, d.Tokens+s.Tokens, append(d.Sources, s)
			}
			d.Epochs = float64(d.Rows) / float64(max(1, split.Rows))
			out = append(out, d)
		}
	}
	return out
}

func known(x float64) *float64 {
	if x != x {
		return nil
	}
	return &x
}
