package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"
)

const (
	// interval is the time between samples.
	interval = time.Second
	// maxViewers is the maximum number of pages that are open at once.
	maxViewers = 32
	// backlog is how many events may wait for a viewer before it misses some.
	backlog = 4
	// sendTimeout ends a viewer that reads nothing for this long.
	sendTimeout = 10 * time.Second
	// pastPoints is how many points of the history go into one event.
	pastPoints = 64
	// ViewerBytes is the memory of a viewer besides its connection. The events that wait for it are
	// shared, except those of the history.
	ViewerBytes = 24 << 10
)

// ErrTooManyViewers means that maxViewers pages are open.
var ErrTooManyViewers = errors.New("too many pages are open")

// Figures is what a Live shows. Its functions are called from one goroutine.
type Figures struct {
	// Columns is the number of figures of a sample.
	Columns int
	// Sample puts the figures into values, which are NaN at first. It may call forget to drop the
	// past of a column.
	Sample func(now time.Time, values []float32, forget func(column int))
	// State returns everything else that a page shows. It is called only while there are viewers.
	State func(now time.Time) any
}

// Live samples figures and sends them to its viewers. It is safe for concurrent use, except Run.
type Live struct {
	figures Figures
	wake    chan struct{} // a viewer has come
	over    chan struct{} // closed by Stop

	mu      sync.Mutex
	history *history
	viewers map[chan []byte]struct{} // the events that wait for each
	last    []byte                   // the event for all later viewers, once the work is done
	stopped bool
	sending sync.WaitGroup // viewers that are being served
}

// NewLive returns a Live without viewers. Run samples for it.
func NewLive(f Figures) *Live {
	return &Live{figures: f, wake: make(chan struct{}, 1), over: make(chan struct{}), history: newHistory(f.Columns),
		viewers: map[chan []byte]struct{}{}}
}

// Run samples once a second until the context ends or Stop is called.
func (l *Live) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	values := make([]float32, l.figures.Columns)
	l.sample(time.Now(), values)
	for {
		select {
		case now := <-tick.C:
			l.sample(now, values)
		case <-l.wake:
			l.broadcast(event("now", l.state(time.Now(), nil)))
		case <-ctx.Done():
			return
		case <-l.over:
			return
		}
	}
}

func (l *Live) sample(now time.Time, values []float32) {
	for i := range values {
		values[i] = float32(math.NaN())
	}
	l.figures.Sample(now, values, func(column int) {
		l.mu.Lock()
		l.history.forget(column)
		l.mu.Unlock()
	})
	l.mu.Lock()
	l.history.Add(now, values)
	watched := len(l.viewers) > 0
	l.mu.Unlock()
	if watched {
		l.broadcast(event("now", l.state(now, appendPoint(nil, seconds(now), values))))
	}
}

// state returns the data of an event: the page's state and a new point, if any.
func (l *Live) state(now time.Time, point []byte) []byte {
	data, _ := json.Marshal(struct { // our states always marshal
		Time  float64         `json:"time"`
		Point json.RawMessage `json:"point,omitempty"`
		State any             `json:"state"`
	}{seconds(now), point, l.figures.State(now)})
	return data
}

// event returns a server-sent event. JSON contains no line feeds.
func event(name string, data []byte) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

func (l *Live) broadcast(e []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for events := range l.viewers {
		select {
		case events <- e:
		default: // it misses this event; the next one has everything but the point
		}
	}
}

// End sends all viewers, including later ones, a last event with the state, and waits until current
// viewers have it or ctx ends. Run must have returned.
func (l *Live) End(ctx context.Context) {
	e := event("end", l.state(time.Now(), nil))
	l.mu.Lock()
	l.last = e
	l.mu.Unlock()
	l.Stop()
	sent := make(chan struct{})
	go func() {
		l.sending.Wait()
		close(sent)
	}()
	select {
	case <-sent:
	case <-ctx.Done():
	}
}

// Stop ends all viewers. A second call does nothing.
func (l *Live) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.stopped = true
		close(l.over)
	}
}

// join adds a viewer. The returned function removes it.
func (l *Live) join() (events chan []byte, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.viewers) >= maxViewers {
		return nil, nil, ErrTooManyViewers
	}
	events = make(chan []byte, backlog)
	l.viewers[events] = struct{}{}
	l.sending.Add(1)
	return events, func() {
		l.mu.Lock()
		delete(l.viewers, events)
		l.mu.Unlock()
		l.sending.Done()
	}, nil
}

// ServeEvents sends the history and then every sample, until the viewer leaves or Stop is called.
// If there are too many viewers, it sends nothing and returns ErrTooManyViewers.
func (l *Live) ServeEvents(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // otherwise a proxy may delay events
	if r.Method == http.MethodHead {
		return nil
	}
	events, leave, err := l.join()
	if err != nil {
		return err
	}
	defer leave()
	out := &sender{w, http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // nothing more is read; with a deadline the viewer would seem to leave
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if err := l.sendPast(r.Context(), out); err != nil {
		return nil // the viewer is gone
	}
	for {
		select {
		case e := <-events:
			if out.send(e) != nil {
				return nil
			}
		case <-l.over:
			l.mu.Lock()
			last := l.last
			l.mu.Unlock()
			if last != nil {
				_ = out.send(last) // the viewer may be gone
			}
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// sendPast sends the history in pieces, so that no viewer makes a copy of it.
func (l *Live) sendPast(ctx context.Context, out *sender) error {
	if err := out.send([]byte("retry: 1000\nevent: begin\ndata: {}\n\n")); err != nil {
		return err
	}
	for sent := math.Inf(-1); ctx.Err() == nil; {
		points, n := []byte{'['}, 0
		l.mu.Lock()
		l.history.each(func(t float64, values []float32) {
			if t <= sent || n == pastPoints {
				return
			}
			if n++; n > 1 {
				points = append(points, ',')
			}
			points = appendPoint(points, t, values)
			sent = t
		})
		l.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := out.send(event("past", append(points, ']'))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sender writes events, each within sendTimeout.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *sender) send(e []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(e); err != nil {
		return err
	}
	return s.control.Flush()
}
