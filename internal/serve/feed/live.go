package feed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/page"
	"github.com/dsload/dsload/internal/resident"
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
	// laneKept is how long the lane of a trainer is kept after it left.
	laneKept = time.Minute
	// trackBytes is the memory of a stream's track and its part of the page's state. Each stream
	// leases it.
	trackBytes = 1 << 10
	// liveViewerBytes is what an open page leases: its connection leaves the pool of connections
	// that are not streams.
	liveViewerBytes = connBytes + page.ViewerBytes
)

// live is the page of a server: its samples and its viewers.
type live struct {
	server *Server
	page   *page.Live
	about  []About
	bars   [][3]int64 // lengths of rows, of all datasets' first splits

	begin   sync.Once
	running sync.WaitGroup

	retired lengthTotals // streams that ended; guarded by Server.mu

	// The sampler's own.
	totals rateWindow
	tracks map[uint64]*track
	lanes  [numLanes]lane
}

// PageMemory returns what the live page of a server holds at any time. Options.Ledger has it
// reserved.
func PageMemory() budget.Share {
	return budget.Share{Name: "live page", Bytes: page.HistoryBytes(numFigures), Why: "figures of the last two hours"}
}

// newLive reserves the memory of the page in the server's ledger.
func newLive(s *Server) *live {
	l := &live{server: s, about: s.opts.Backend.About(), tracks: map[uint64]*track{}}
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
	l.begin.Do(func() { l.running.Go(func() { l.page.Run(context.Background()) }) })
}

// stop ends sampling and all viewers.
func (l *live) stop() {
	l.page.Stop()
	l.begin.Do(func() {}) // it does not start any more
	l.running.Wait()
}

// snapshot holds a stream's counts at one moment.
type snapshot struct {
	at                   time.Time
	rows, tokens, padded int64
	blocked              time.Duration
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
	l.totals.add(snapshot{at: now, rows: total.Rows, tokens: total.Tokens, padded: total.Padded})
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
			padded: st.stats.padded.Load(), blocked: st.blockedTime(now)})
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

// firstStreams returns the streams that are shown: the longest running.
func (s *Server) firstStreams() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.SortedFunc(maps.Values(s.streams), func(a, b *stream) int { return cmp.Compare(a.id, b.id) })
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
