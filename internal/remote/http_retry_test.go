package remote

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"Retry-After", "0.5", time.Second / 2}, {"Retry-After", "-7", 0},
		{"Retry-After", "soon", 0}, {"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute},
		{"Retry-After", "Fri, 02 Jan 2025 03:05:05 GMT", 0}, {"Ratelimit", `"api";r=0;t=55`, 55 * time.Second},
		{"Ratelimit", `"api";r=3;t=55`, 0}, {"Ratelimit", "nonsense", 0}, {"X", "7", 0},
	} {
		if got := retryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, c.value, got, c.want)
		}
	}
}

func TestPause(t *testing.T) {
	p := newPolicy()
	for n := range 40 {
		d := p.pause(n, 0)
		if low, high := min(p.longest, p.first<<min(n, 16))/2, min(p.longest, p.first<<min(n, 16)); d < low ||
			d > high {
			t.Errorf("pause %d is %s, not from %s to %s", n, d, low, high)
		}
	}
	if d := p.pause(0, time.Hour); d != time.Hour {
		t.Errorf("asked for an hour: %s", d)
	}
}

func TestContentRange(t *testing.T) {
	for text, want := range map[string][2]int64{"bytes 5-9/20": {5, 20}, "bytes 0-0/*": {0, -1},
		"bytes */20": {0, 20}, " bytes=5-9/20": {5, 20}} {
		if start, size, ok := contentRange(text); !ok || start != want[0] || size != want[1] {
			t.Errorf("%q: %d, %d, %v", text, start, size, ok)
		}
	}
	for _, text := range []string{"", "bytes", "bytes 5-9", "bytes x-9/20", "bytes 5-9/x", "bytes */*", "rows 5-9/20",
		"bytes 5-9/-1"} {
		if _, _, ok := contentRange(text); ok {
			t.Errorf("%q was read", text)
		}
	}
}
