package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The latest samples are kept as they came, older ones as means; unknown values stay unknown, and
// memory stays what it was.
func TestHistoryKeepsTwoTiers(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for _, n := range []int{0, 1, 9, 10, 599, 600, 601, 615, 5000, 20_000} {
		h := newHistory(2)
		for i := range n {
			h.Add(start.Add(time.Duration(i)*time.Second), []float32{float32(i), float32(math.NaN())})
		}
		var times []float64
		var firsts []float32
		h.each(func(at float64, v []float32) {
			times, firsts = append(times, at-float64(start.Unix())), append(firsts, v[0])
			if v[1] == v[1] {
				t.Fatalf("%d samples: an unknown value became %v", n, v[1])
			}
		})
		if !slices.IsSorted(times) {
			t.Fatalf("%d samples: times do not rise: %v", n, times)
		}
		fine := min(n, finePoints)
		if older := len(times) - fine; older > coarsePoints || older < min((n-fine)/coarse-1, coarsePoints-1) {
			t.Errorf("%d samples: %d points besides the latest %d", n, older, fine)
		}
		for i, at := range times {
			want := at // the figure is its own time, and so is a mean of them
			if math.Abs(float64(firsts[i])-want) > 0.01*max(1, want/1000) {
				t.Fatalf("%d samples: %v at %v", n, firsts[i], at)
			}
		}
	}
}

func TestForgetMakesAFigureUnknown(t *testing.T) {
	h := newHistory(2)
	for i := range 1000 {
		h.Add(time.Unix(int64(i), 0), []float32{1, 2})
	}
	h.forget(1)
	h.each(func(_ float64, v []float32) {
		if v[0] != 1 || v[1] == v[1] {
			t.Fatalf("point %v", v)
		}
	})
}

func TestPointsAreJSON(t *testing.T) {
	nan := float32(math.NaN())
	got := string(appendPoint(nil, 12.34, []float32{0, 1.5, nan, float32(math.Inf(1)), 1e9, 123456}))
	if want := `[12.3,0,1.5,null,null,1e+09,1.2346e+05]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var back []any
	if err := json.Unmarshal([]byte(got), &back); err != nil || len(back) != 7 {
		t.Errorf("%v: %v", back, err)
	}
}

// fixture serves a page whose figures count samples.
type fixture struct {
	live   *Live
	server *Server
	url    string
}

func serveFixture(t *testing.T, conns int) *fixture {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{url: "http://" + l.Addr().String()}
	n := float32(0)
	f.live = NewLive(Figures{Columns: 1,
		Sample: func(_ time.Time, v []float32, _ func(int)) { n++; v[0] = n },
		State:  func(time.Time) any { return map[string]string{"name": "</script><img src=x>"} }})
	f.server = NewServer(l, "build", f.live, conns)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.live.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		http.DefaultClient.CloseIdleConnections()
		ending, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		f.live.End(ending)
		if err := f.server.Close(ending); err != nil {
			t.Error(err)
		}
	})
	return f
}

func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// Each page asks for files that are there, all from its own server, and its policy allows nothing else.
func TestPagesAreWholeAndClosed(t *testing.T) {
	for _, name := range []string{"build", "serve"} {
		rec := httptest.NewRecorder()
		Serve(rec, name)
		policy := rec.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'",
			"frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy %q lacks %s", name, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %q", name, policy)
		}
		page := rec.Body.String()
		if bad := regexp.MustCompile(`(?i)<style|style=|<script>|\son\w+=|https?:|//`).FindString(page); bad != "" {
			t.Errorf("%s: the page has %q", name, bad)
		}
		asked := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
		if len(asked) < 5 {
			t.Errorf("%s asks for %d files", name, len(asked))
		}
		for _, m := range asked {
			file := httptest.NewRecorder()
			if !ServeFile(file, httptest.NewRequest(http.MethodGet, "/"+m[1], nil)) || file.Body.Len() == 0 {
				t.Errorf("%s: there is no %s", name, m[1])
			}
			if kind := file.Header().Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "text/html") {
				t.Errorf("%s: %s is %q", name, m[1], kind)
			}
		}
	}
	for _, path := range []string{"/page/", "/page/build.html", "/page/../doc.go", "/page/uplot/LICENSE",
		"/page/nothing.js", "/page/static/live.js", "/other/live.js"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		if ServeFile(httptest.NewRecorder(), r) {
			t.Errorf("%s is served", path)
		}
	}
	if license, err := static.ReadFile("static/uplot/LICENSE"); err != nil ||
		!strings.Contains(string(license), "MIT") {
		t.Errorf("the chart library's licence: %v", err)
	}
}

func TestServerAnswersItsOwnMachineAlone(t *testing.T) {
	f := serveFixture(t, 8)
	_, port, _ := net.SplitHostPort(f.server.Addr().String())
	for _, c := range []struct {
		path   string
		header []string
		want   int
	}{
		{"/", nil, 200}, {"/page/live.js", nil, 200}, {"/page/nothing.js", nil, 404}, {"/nothing", nil, 404},
		{"/", []string{"Host", "localhost:" + port}, 200},
		{"/", []string{"Host", "evil.example:" + port}, 421},
		{"/v1/live", []string{"Host", "evil.example"}, 421},
		{"/", []string{"Origin", "http://evil.example"}, 403},
		{"/v1/live", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"/v1/live", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
	} {
		if resp, body := get(t, f.url+c.path, c.header...); resp.StatusCode != c.want {
			t.Errorf("%s %v: %d, want %d: %s", c.path, c.header, resp.StatusCode, c.want, body)
		}
	}
	resp, err := http.Post(f.url+"/", "text/plain", strings.NewReader("x"))
	if err != nil || resp.StatusCode != 413 {
		t.Errorf("a body: %v %v", resp, err)
	}
	resp.Body.Close()
}

// events reads server-sent events until f returns false.
func events(t *testing.T, body io.Reader, f func(name, data string) bool) {
	t.Helper()
	name := ""
	for s := bufio.NewScanner(body); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "event: "); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(s.Text(), "data: "); ok && !f(name, v) {
			return
		}
	}
}

func open(t *testing.T, f *fixture) *http.Response {
	t.Helper()
	resp, err := http.Get(f.url + "/v1/live")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("%s: %s", resp.Status, kind)
	}
	return resp
}

// A viewer gets the past, then the state at once.
func TestViewersGetPastAndState(t *testing.T) {
	f := serveFixture(t, 8)
	resp := open(t, f)
	var names []string
	events(t, resp.Body, func(name, data string) bool {
		names = append(names, name)
		if strings.Contains(data, "<") {
			t.Errorf("%s: %s", name, data)
		}
		return name != "now"
	})
	if !slices.Equal(names, []string{"begin", "past", "now"}) {
		t.Errorf("events %q", names)
	}
}

func TestEndReachesThoseWhoLook(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	live := NewLive(Figures{Columns: 1, Sample: func(time.Time, []float32, func(int)) {},
		State: func(time.Time) any { return "over" }})
	server := NewServer(l, "build", live, 4)
	resp, err := http.Get("http://" + l.Addr().String() + "/v1/live")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go live.End(ctx)
	last := ""
	events(t, resp.Body, func(name, data string) bool { last = name + data; return true })
	if !strings.HasPrefix(last, "end") || !strings.Contains(last, `"state":"over"`) {
		t.Errorf("the last event is %q", last)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := server.Close(ctx); err != nil {
		t.Error(err)
	}
}

// Nobody waits for a viewer that reads nothing, and the number of viewers is limited.
func TestSlowAndManyViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states atomic.Int64
		live := NewLive(Figures{Columns: 1, Sample: func(time.Time, []float32, func(int)) {},
			State: func(time.Time) any { states.Add(1); return nil }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			live.Run(ctx)
			close(done)
		}()
		time.Sleep(10 * time.Second)
		if n := states.Load(); n != 0 {
			t.Errorf("%d states were made while nobody looked", n)
		}
		v, leave, err := live.join()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100*time.Second + time.Millisecond)
		if n := states.Load(); n < 100 || len(v) != backlog {
			t.Errorf("%d states, %d events wait", n, len(v))
		}
		leave()
		var leaves []func()
		for range maxViewers {
			_, leave, err := live.join()
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		if _, _, err := live.join(); !errors.Is(err, ErrTooManyViewers) {
			t.Errorf("one more: %v", err)
		}
		for _, leave := range leaves {
			leave()
		}
		cancel()
		<-done
	})
}

// More connections than there are places wait, and are served when one leaves.
func TestConnectionsAreLimited(t *testing.T) {
	f := serveFixture(t, 1)
	first := open(t, f)
	answered := make(chan int, 1)
	go func() {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := c.Get(f.url + "/")
		if err != nil {
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	select {
	case got := <-answered:
		t.Fatalf("answered %d although the only place is taken", got)
	case <-time.After(50 * time.Millisecond):
	}
	first.Body.Close()
	if got := <-answered; got != 200 {
		t.Errorf("answered %d", got)
	}
}

func TestHistoryBytes(t *testing.T) {
	if got, want := HistoryBytes(13), int64(1260*(8+13*4)+16*13); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}
