package feed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/page"
	"github.com/dsload/dsload/loader/internal/budget"
	"github.com/dsload/dsload/loader/internal/resident"
)

// The figures that the page draws over time. The lanes come last: tokens per second of single
// trainers, and of all others together.
const (
	figureTokens = iota
	figureRows
	figurePadding
	figureResident
	figureLeased
	figureStarved
	figureBusy
	figureLanes
	numLanes   = 5 // without the lane of all others
	numFigures = figureLanes + numLanes + 1
)

const (
	// rateSamples is the number of samples, a second apart, over which rates are averaged.
	rateSamples = 5
	// stalledAfter is the time after which a trainer that takes nothing counts as stalled.
	stalledAfter = 15 * time.Second
	// busyShare is the share of time that data must wait for a trainer for it to count as busy.
	busyShare = 0.5
	// laneKept is how long the lane of a trainer is kept after it left.
	laneKept = time.Minute
	// trackBytes is the memory of a stream's track and its part of the page's state. Each stream
	// leases it.
	trackBytes = 1 << 10
	// liveViewerBytes is what an open page leases: its connection leaves the pool of connections
	// that are not streams.
	liveViewerBytes = connBytes + page.ViewerBytes
	// mostBars is the maximum number of bars of a histogram.
	mostBars = 48
)

// live is the page of a server: its samples and its viewers.
type live struct {
	server *Server
	page   *page.Live
	about  []About
	bars   [][3]int64 // lengths of rows, of all datasets' first splits

	begin  sync.Once
	cancel context.CancelFunc
	done   chan struct{}

	retired lengthTotals // of streams that ended; guarded by Server.mu

	// The sampler's own.
	totals rateWindow
	tracks map[uint64]*track
	lanes  [numLanes]lane
}

// PageMemory returns what the live page of a server holds at any time. Options.Ledger has it
// reserved.
func PageMemory() budget.Part {
	return budget.Part{Name: "live page", Bytes: page.HistoryBytes(numFigures), Why: "figures of the last two hours"}
}

// newLive reserves the memory of the page in the server's ledger.
func newLive(s *Server) *live {
	l := &live{server: s, about: s.opts.Backend.About(), tracks: map[uint64]*track{}, done: make(chan struct{})}
	l.bars = lengthBars(l.about)
	for i := range l.about {
		for k := range l.about[i].Splits {
			l.about[i].Splits[k].Lengths = nil // only the bars are shown
		}
	}
	l.page = page.NewLive(page.Figures{Columns: numFigures, Sample: l.sample, State: l.state})
	return l
}

// start begins sampling. A second call does nothing.
func (l *live) start() {
	l.begin.Do(func() {
		var ctx context.Context
		ctx, l.cancel = context.WithCancel(context.Background())
		go func() {
			defer close(l.done)
			l.page.Run(ctx)
		}()
	})
}

// stop ends sampling and all viewers.
func (l *live) stop() {
	l.page.Stop()
	started := true
	l.begin.Do(func() { started = false })
	if started {
		l.cancel()
		<-l.done
	}
}

// snapshot holds a stream's counts at one moment.
type snapshot struct {
	at                          time.Time
	rows, tokens, padded, bytes int64
	blocked                     time.Duration
}

// rateWindow holds the latest snapshots.
type rateWindow struct {
	snaps [rateSamples + 1]snapshot
	n     int
}

func (w *rateWindow) add(s snapshot) {
	w.snaps[w.n%len(w.snaps)] = s
	w.n++
}

// span returns the oldest and the latest snapshot; ok is false if there are fewer than two.
func (w *rateWindow) span() (from, to snapshot, ok bool) {
	if w.n < 2 {
		return from, to, false
	}
	from = w.snaps[max(0, w.n-len(w.snaps))%len(w.snaps)]
	to = w.snaps[(w.n-1)%len(w.snaps)]
	return from, to, to.at.After(from.at)
}

// clientRates are averages over the last seconds, NaN if nothing is known yet.
type clientRates struct{ rows, tokens, padding, blocked float64 }

func (w *rateWindow) rates() clientRates {
	from, to, ok := w.span()
	if !ok {
		nan := math.NaN()
		return clientRates{nan, nan, nan, nan}
	}
	seconds := to.at.Sub(from.at).Seconds()
	r := clientRates{rows: float64(to.rows-from.rows) / seconds, tokens: float64(to.tokens-from.tokens) / seconds,
		padding: math.NaN(), blocked: min(1, (to.blocked-from.blocked).Seconds()/seconds)}
	if padded := to.padded - from.padded; padded > 0 {
		r.padding = float64(to.tokens-from.tokens) / float64(padded)
	}
	return r
}

// track is the sampler's state for a stream.
type track struct {
	rateWindow
	lane int
	seen bool
}

// lane is one trainer's line in the chart: that of a stream and of the stream that follows it after
// a reconnect.
type lane struct {
	name string
	last time.Time // when it was last in use
}

func laneName(st *stream) string {
	if st.query.World > 1 {
		return fmt.Sprintf("rank %d", st.query.Rank)
	}
	return fmt.Sprintf("client %d", st.id)
}

// sample implements page.Figures.Sample.
func (l *live) sample(now time.Time, values []float32, forget func(int)) {
	s := l.server
	total := s.metrics.total()
	l.totals.add(snapshot{at: now, rows: total.Rows, tokens: total.Tokens, padded: total.Padded, bytes: total.Bytes})
	all := l.totals.rates()
	values[figureTokens], values[figureRows] = float32(all.tokens), float32(all.rows)
	values[figurePadding] = float32(all.padding)
	if held := resident.Bytes(); held > 0 {
		values[figureResident] = float32(held)
	}
	values[figureLeased] = float32(s.opts.Ledger.Used())

	streams := s.firstStreams()
	for _, t := range l.tracks {
		t.seen = false
	}
	var busy, count, others float64
	var lanes [numLanes]float64
	for _, st := range streams {
		t := l.track(st, now, forget)
		t.add(snapshot{at: now, rows: st.stats.rows.Load(), tokens: st.stats.tokens.Load(),
			padded: st.stats.padded.Load(), bytes: st.stats.bytes.Load(), blocked: st.blockedTime(now)})
		r := t.rates()
		if r.rows != r.rows {
			continue
		}
		busy += r.blocked
		count++
		if t.lane >= 0 {
			lanes[t.lane] += r.tokens
		} else {
			others += r.tokens
		}
	}
	for id, t := range l.tracks {
		if !t.seen {
			delete(l.tracks, id)
		}
	}
	if count > 0 {
		values[figureBusy], values[figureStarved] = float32(busy/count), float32(1-busy/count)
	}
	for i := range lanes {
		if l.lanes[i].name != "" {
			values[figureLanes+i] = float32(lanes[i])
		}
	}
	if len(streams) > numLanes {
		values[figureLanes+numLanes] = float32(others)
	}
}

// blockedTime returns how long the stream's data have waited for its client, the current write
// included.
func (s *stream) blockedTime(now time.Time) time.Duration {
	blocked := time.Duration(s.stats.blocked.Load())
	if since := s.stats.blockedSince.Load(); since != 0 {
		if took := now.Sub(time.Unix(0, since)); took > leastBlocked {
			blocked += took
		}
	}
	return blocked
}

// firstStreams returns the streams that the page shows: the longest running.
func (s *Server) firstStreams() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b *stream) int { return cmp.Compare(a.id, b.id) })
	return out[:min(len(out), maxClientsShown)]
}

// track returns the track of a stream. A new one gets a lane.
func (l *live) track(st *stream, now time.Time, forget func(int)) *track {
	t := l.tracks[st.id]
	if t == nil {
		t = &track{lane: l.laneFor(laneName(st), now, forget)}
		l.tracks[st.id] = t
	}
	t.seen = true
	if t.lane >= 0 {
		l.lanes[t.lane].last = now
	}
	return t
}

// laneFor returns the lane of that name, else a free one, else -1.
func (l *live) laneFor(name string, now time.Time, forget func(int)) int {
	free := -1
	for i := range l.lanes {
		if l.lanes[i].name == name {
			return i
		}
		if free < 0 && (l.lanes[i].name == "" || now.Sub(l.lanes[i].last) > laneKept) {
			free = i
		}
	}
	if free >= 0 {
		if l.lanes[free].name != "" {
			forget(figureLanes + free)
		}
		l.lanes[free] = lane{name, now}
	}
	return free
}

// liveState is what the page shows apart from its charts.
type liveState struct {
	Uptime     float64      `json:"uptime"`
	Draining   bool         `json:"draining,omitempty"`
	Streams    int          `json:"streams"`
	MemoryUsed int64        `json:"memory_leased"`
	MemoryCap  int64        `json:"memory_cap"`
	Batches    int64        `json:"batches"`
	Rows       int64        `json:"rows"`
	Tokens     int64        `json:"tokens"`
	Padded     int64        `json:"padded"`
	Datasets   []About      `json:"datasets"`
	Lengths    [][3]int64   `json:"lengths"`
	Served     [][3]int64   `json:"served"`
	Lanes      []string     `json:"lanes"`
	Clients    []liveClient `json:"clients"`
}

type liveClient struct {
	ID         uint64   `json:"id"`
	Rank       int      `json:"rank"`
	World      int      `json:"world"`
	From       string   `json:"from,omitempty"`
	Query      string   `json:"query"`
	Next       int64    `json:"next"`
	Epoch      *int64   `json:"epoch"`
	Epochs     int64    `json:"epochs,omitempty"`
	Share      *float64 `json:"share"` // of the epoch
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
		Tokens: total.Tokens, Padded: total.Padded, Datasets: l.about, Lengths: l.bars, Served: l.servedBars(),
		Clients: []liveClient{},
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

// known returns nil for NaN.
func known(x float64) *float64 {
	if x != x {
		return nil
	}
	return &x
}

// lengthClasses is the number of classes of lengths, two per octave.
const lengthClasses = 2 * 32

// lengthCounts counts batches by the class of their length.
type lengthCounts [lengthClasses]atomic.Uint32

// lengthTotals counts the batches of ended streams.
type lengthTotals [lengthClasses]int64

// lengthClass returns the class of a length: 0 for 0 and 1, one more at each power of two and
// halfway to the next.
func lengthClass(n int) int {
	if n < 2 {
		return 0
	}
	octave := bits.Len(uint(n)) - 1
	return min(2*octave-1+n>>(octave-1)&1, lengthClasses-1)
}

// classStart returns the least length of a class.
func classStart(class int) int64 {
	if class == 0 {
		return 0
	}
	octave := (class + 1) / 2
	return int64(2+(class+1)%2) << (octave - 1)
}

func (c *lengthCounts) add(length int) { c[lengthClass(length)].Add(1) }

func (c *lengthCounts) addTo(t *lengthTotals) {
	for i := range c {
		t[i] += int64(c[i].Load())
	}
}

// servedBars returns the batches sent so far by length, from the first class that has any to the
// last.
func (l *live) servedBars() [][3]int64 {
	s := l.server
	s.mu.Lock()
	total := l.retired
	for _, st := range s.streams {
		st.stats.lengths.addTo(&total)
	}
	s.mu.Unlock()
	out := [][3]int64{}
	for i, n := range total {
		if n > 0 || len(out) > 0 {
			out = append(out, [3]int64{classStart(i), classStart(i+1) - 1, n})
		}
	}
	for len(out) > 0 && out[len(out)-1][2] == 0 {
		out = out[:len(out)-1]
	}
	return out
}

// lengthBars merges the histograms of each dataset's first split into bars of equal width.
func lengthBars(about []About) [][3]int64 {
	var longest int64
	for _, a := range about {
		if len(a.Splits) > 0 {
			longest = max(longest, a.Splits[0].Longest)
		}
	}
	width := niceWidth(longest + 1)
	counts := make([]float64, longest/width+1)
	for _, a := range about {
		if len(a.Splits) == 0 {
			continue
		}
		for _, b := range a.Splits[0].Lengths {
			low, high := min(b[0], longest), min(b[1], longest)
			for at := low; at <= high; at = (at/width + 1) * width { // a wide bucket reaches into several bars
				part := min(high, (at/width+1)*width-1) - at + 1
				counts[at/width] += float64(b[2]) * float64(part) / float64(high-low+1)
			}
		}
	}
	out := make([][3]int64, 0, len(counts))
	for i, n := range counts {
		out = append(out, [3]int64{int64(i) * width, int64(i+1)*width - 1, int64(n + 0.5)})
	}
	return out
}

// niceWidth returns the least of 1, 2, 5, 10, … with which n lengths make at most mostBars bars.
func niceWidth(n int64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if k*step*mostBars >= n {
				return k * step
			}
		}
	}
}

func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) { page.Serve(w, "serve") }

func (s *Server) servePageFile(w http.ResponseWriter, r *http.Request) {
	if !page.ServeFile(w, r) {
		serveUnknown(w, r)
	}
}

// serveLive sends events to a page. Like a stream, it leases what it holds and leaves the
// connection pool, so that open pages do not keep requests out.
func (s *Server) serveLive(w http.ResponseWriter, r *http.Request) {
	lease, ok := s.opts.Ledger.TryAcquire(liveViewerBytes)
	if !ok {
		writeError(w, &RequestError{503, "the running streams take all memory",
			"open the page again later, or serve with a larger memory cap"})
		return
	}
	defer lease.Release()
	if c := connOf(r); c != nil && r.Method != http.MethodHead {
		s.conns.leave(c)
	}
	w.Header().Set("Connection", "close") // it has no slot to return to
	if err := s.live.page.ServeEvents(w, r); err != nil {
		writeError(w, &RequestError{503, err.Error(), "close one of them"})
	}
}
