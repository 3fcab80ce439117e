package feed

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/budget"
)

// follow reads the states of a server's page until f returns true.
func follow(t *testing.T, c *http.Client, f func(liveState) bool) {
	t.Helper()
	resp, err := c.Get("http://dsload/v1/live")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	name := ""
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = v
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || name != "now" {
			continue
		}
		var event struct{ State liveState }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatal(err)
		}
		if f(event.State) {
			return
		}
	}
	t.Fatalf("the events end: %v", lines.Err())
}

// The page shows who reads, where, and who waits for whom, and forgets a client that left.
func TestLiveShowsClients(t *testing.T) {
	t.Parallel() // most of it is waiting
	_, client, _ := start(t, Options{Backend: &fakeBackend{rows: 100}})
	ctxDone := get(t, client, "batch_size=2&world=4&rank=3&epochs=0&start=250&seed=1")
	var seen liveClient
	follow(t, client, func(s liveState) bool {
		if len(s.Clients) != 1 || s.Streams != 1 {
			t.Fatalf("%d clients, %d streams", len(s.Clients), s.Streams)
		}
		seen = s.Clients[0]
		if len(s.Datasets) != 1 || s.Datasets[0].Name != "fake" || s.Datasets[0].Splits[0].Rows != 100 ||
			len(s.Lengths) != 38 {
			t.Fatalf("datasets %+v, %d bars", s.Datasets, len(s.Lengths))
		}
		return seen.State == "busy" // its client reads nothing, so data wait for it
	})
	if seen.Rank != 3 || seen.World != 4 || seen.Epoch == nil || *seen.Epoch != seen.Next/100 && *seen.Share != 1 ||
		seen.Next <= 250 || seen.Lane != 0 {
		t.Errorf("client %+v", seen)
	}
	ctxDone.Body.Close()
	follow(t, client, func(s liveState) bool {
		if len(s.Clients) > 0 {
			return false
		}
		sent := int64(0)
		for _, b := range s.Served {
			sent += b[2]
		}
		if sent != s.Batches || sent == 0 {
			t.Errorf("%d batches by their lengths, %d in all", sent, s.Batches)
		}
		return true
	})
}

// Pages lease what they hold, and leave the pool of connections, so that requests still find a place.
func TestLivePagesTakeNoRequestsPlace(t *testing.T) {
	ledger := budget.New(3 << 20)
	s, client, path := start(t, Options{Backend: &fakeBackend{rows: 100}, Ledger: ledger})
	var pages []*http.Response
	for {
		resp, err := unixClient(path).Get("http://dsload/v1/live")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 {
			if resp.StatusCode != 503 {
				t.Errorf("%s", resp.Status)
			}
			resp.Body.Close()
			break
		}
		pages = append(pages, resp)
	}
	if len(pages) <= s.conns.size && len(pages) < 20 {
		t.Errorf("%d pages, %d places", len(pages), s.conns.size)
	}
	resp, err := client.Get("http://dsload/healthz")
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("%v %v", resp, err)
	}
	resp.Body.Close()
	for _, p := range pages {
		p.Body.Close()
	}
}

func TestLanes(t *testing.T) {
	l := &live{}
	now := time.Unix(1000, 0)
	var forgotten []int
	lane := func(name string, at time.Duration) int {
		i := l.laneFor(name, now.Add(at), func(c int) { forgotten = append(forgotten, c-figureLanes) })
		if i >= 0 {
			l.lanes[i].last = now.Add(at)
		}
		return i
	}
	var got []int
	for _, name := range []string{"a", "b", "a", "c", "d", "e", "f", "b"} {
		got = append(got, lane(name, 0))
	}
	if want := []int{0, 1, 0, 2, 3, 4, -1, 1}; !slices.Equal(got, want) {
		t.Errorf("lanes %v, want %v", got, want)
	}
	for _, name := range []string{"a", "b", "d", "e"} {
		lane(name, laneKept)
	}
	if i := lane("f", laneKept+time.Second); i != 2 || !slices.Equal(forgotten, []int{2}) {
		t.Errorf("f has lane %d, %v were forgotten", i, forgotten)
	}
}

// The classes of batch lengths are contiguous, two an octave.
func TestLengthClasses(t *testing.T) {
	for n := range 5000 {
		c := lengthClass(n)
		if low, next := classStart(c), classStart(c+1); int64(n) < low || int64(n) >= next {
			t.Fatalf("%d is in class %d, from %d to %d", n, c, low, next)
		}
	}
	if c := lengthClass(1 << 28); c >= lengthClasses-1 || classStart(c) != 1<<28 {
		t.Errorf("the longest is in class %d from %d", c, classStart(c))
	}
}

// Bars hold every row, however the dataset's buckets lie.
func TestLengthBarsHoldEveryRow(t *testing.T) {
	for _, lengths := range [][][3]int64{
		{{1, 1, 5}}, {{1, 1, 5}, {2, 2, 7}, {511, 511, 1}}, {{100, 100, 3}, {4096, 4159, 640}, {8192, 8319, 77}},
	} {
		longest, rows := lengths[len(lengths)-1][1], int64(0)
		for _, b := range lengths {
			rows += b[2]
		}
		bars := lengthBars([]About{{Splits: []AboutSplit{{Longest: longest, Lengths: lengths}}}, {}})
		got := int64(0)
		for i, b := range bars {
			got += b[2]
			if i > 0 && b[0] != bars[i-1][1]+1 {
				t.Errorf("bar %v follows %v", b, bars[i-1])
			}
		}
		if len(bars) > maxBars+1 || got < rows-int64(len(bars)) || got > rows+int64(len(bars)) {
			t.Errorf("%v: %d rows in %d bars, want %d", lengths, got, len(bars), rows)
		}
	}
	if bars := lengthBars(nil); len(bars) != 1 || bars[0][2] != 0 {
		t.Errorf("no dataset: %v", bars)
	}
}
