package remote

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// policy sets how often a request is repeated, and after which pauses.
type policy struct {
	first, longest time.Duration // pauses double from one to the other
	attempts       int           // without any progress between them
	unknown        int           // attempts at a host that has never answered
	maxWait        time.Duration // the longest pause that a server may ask for
	idle           time.Duration // the time without a byte after which a connection is given up
}

// FirstPause is the pause before a request is repeated for the first time. Tests of other packages,
// which break connections by the hundred, shorten it before they begin.
var FirstPause = 500 * time.Millisecond

// newPolicy returns the policy of a Store. It waits about three minutes for a host that has answered
// before, and two seconds for one that never has: a user with a mistyped name or no network should
// learn so at once.
func newPolicy() policy {
	return policy{first: FirstPause, longest: 30 * time.Second, attempts: 10, unknown: 3,
		maxWait: 15 * time.Minute, idle: 30 * time.Second}
}

// pause returns how long to wait after the n-th failure in a row, counted from 0. Jitter keeps many
// clients apart.
func (p *policy) pause(n int, asked time.Duration) time.Duration {
	d := p.longest
	if n < 16 {
		d = min(p.longest, p.first<<n)
	}
	d = d/2 + rand.N(d/2+1)
	return max(d, asked)
}

// retryAfter returns how long a server wants to be left alone, given in seconds or as a date. From
// the Hub's own header, ratelimit: "…";r=0;t=SECONDS, it takes the time if no requests remain.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if text := h.Get("Retry-After"); text != "" {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return time.Duration(max(0, min(n, 1e6)) * float64(time.Second))
		}
		if at, err := http.ParseTime(text); err == nil {
			return max(0, at.Sub(now))
		}
	}
	remaining, reset := int64(-1), int64(-1)
	for field := range strings.SplitSeq(h.Get("Ratelimit"), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == "r":
			remaining = n
		case name == "t":
			reset = n
		}
	}
	if remaining == 0 && reset > 0 {
		return time.Duration(min(reset, 1e6)) * time.Second
	}
	return 0
}

// attempts counts consecutive failures of a request, or of a file while no byte arrives.
type attempts struct {
	store  *Store
	host   string
	failed int
}

// again waits before the next attempt. It returns an error if another attempt cannot help or enough
// were made.
func (a *attempts) again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || !e.retry {
		return err
	}
	p := &a.store.policy
	a.failed++
	most := p.attempts
	if e.Status == 0 && !a.store.hasAnswered(a.host) {
		most = p.unknown
	}
	if a.failed >= most {
		last := *e
		if a.failed > 1 {
			last.Text += ", " + strconv.Itoa(a.failed) + " times in a row"
		}
		last.Hint = cmp.Or(last.Hint, "run the same command again later")
		return &last
	}
	if e.wait > p.maxWait {
		stop := *e
		stop.Text += ", and asks to wait " + e.wait.Round(time.Second).String()
		stop.Hint = "run the same command again then"
		return &stop
	}
	d := p.pause(a.failed-1, e.wait)
	if e.wait >= 10*time.Second {
		a.store.notice("%s; waiting %s as it asks", e.Text, e.wait.Round(time.Second))
	}
	return sleep(ctx, d)
}

// retry calls do until it no longer fails for a passing reason, as explain sees it.
func (s *Store) retry(ctx context.Context, host string, do func() error, explain func(error) error) error {
	tries := attempts{store: s, host: host}
	for {
		err := do()
		if err == nil {
			return nil
		}
		if err := tries.again(ctx, explain(err)); err != nil {
			return err
		}
	}
}

// sleep waits, or returns context.Canceled when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Canceled
	}
}
