// Package notify sends messages about a run to services: Discord, Slack, ntfy, or any that takes
// JSON.
//
// The address of a service is a secret: whoever has it can write there. It comes from the command
// line, an environment variable or a file, and appears in no error and no log. A separate goroutine
// sends messages and retries a few times. Messages never fail the run and delay it only while Close
// waits.
package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Message is a message about a run.
type Message struct {
	Event string // done, failed, interrupted or resumed
	Title string // a few words
	Text  string // a sentence or two
	// Facts is for programs; its values are strings, numbers and booleans.
	Facts map[string]any
}

const (
	// attempts is the maximum number of attempts to send a message.
	attempts = 4
	// attemptTimeout limits an attempt.
	attemptTimeout = 5 * time.Second
	// maxWaiting is how many messages may wait for one service.
	maxWaiting = 8
	// maxURLBytes limits a file or variable with an address.
	maxURLBytes = 8 << 10
	// Bytes is the memory of a Notifier: connections, root certificates, messages.
	Bytes = 8 << 20
)

// firstPause is the time before the second attempt; each later one is twice as long. Tests shorten it.
var firstPause = 400 * time.Millisecond

// Notifier sends messages to one or more services. A nil Notifier sends none. It is safe for
// concurrent use.
type Notifier struct {
	services []*service
	warn     func(string)
	client   *http.Client
	ctx      context.Context
	cancel   context.CancelFunc
	sending  sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// service is one recipient of messages.
type service struct {
	kind    string // one of kinds
	address *url.URL
	waiting chan Message
}

// UsageError means that an address is invalid.
type UsageError struct{ Reason string }

func (e *UsageError) Error() string { return e.Reason }

// New returns a Notifier for addresses. Each is a URL, or @FILE or env:NAME for a URL in a file or
// an environment variable. A URL may begin with "discord+", "slack+", "ntfy+" or "json+" if its
// host does not show the service. warn is called with a line about each message that could not be
// delivered. Without addresses New returns nil.
func New(addresses []string, warn func(string)) (*Notifier, error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	n := &Notifier{warn: warn}
	for _, a := range addresses {
		s, err := parse(a)
		if err != nil {
			return nil, err
		}
		n.services = append(n.services, s)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	transport.ForceAttemptHTTP2 = false
	n.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the secret is for one host
	}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for _, s := range n.services {
		n.sending.Go(func() {
			for m := range s.waiting { // one after another
				if err := n.deliver(s, m); err != nil {
					n.failed(s, m, err)
				}
			}
		})
	}
	return n, nil
}

// failed warns that a service did not get a message.
func (n *Notifier) failed(s *service, m Message, why error) {
	n.warn(fmt.Sprintf("notify: %s was not notified that the build is %s: %v", kinds[s.kind].name, m.Event, why))
}

// parse reads an address, without repeating it in an error.
func parse(a string) (*service, error) {
	value := a
	switch {
	case strings.HasPrefix(a, "@"):
		f, err := os.Open(a[1:])
		var data []byte
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(f, maxURLBytes+1))
			f.Close()
		}
		if err != nil {
			return nil, &UsageError{fmt.Sprintf("read the address in %s: %v", a[1:], err)}
		}
		value = string(data)
	case strings.HasPrefix(a, "env:"):
		name := a[len("env:"):]
		if value = os.Getenv(name); value == "" {
			return nil, &UsageError{fmt.Sprintf("the environment variable %s is not set", name)}
		}
	}
	value = strings.TrimSpace(value)
	s := &service{waiting: make(chan Message, maxWaiting)}
	for kind := range kinds {
		if rest, ok := strings.CutPrefix(value, kind+"+"); ok {
			s.kind, value = kind, rest
		}
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(value) > maxURLBytes {
		return nil, &UsageError{"want an address that begins with https:// or http://, " +
			"or @FILE or env:NAME that holds one; it is not repeated here, since it is a secret"}
	}
	u.Fragment = ""
	s.address = u
	if s.kind == "" {
		s.kind = kindOf(u)
	}
	return s, nil
}

// Send queues a message for every service. After Close it does nothing.
func (n *Notifier) Send(m Message) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for _, s := range n.services {
		select {
		case s.waiting <- m:
		default:
			n.failed(s, m, errors.New("it takes messages too slowly"))
		}
	}
}

// Close waits, at most for wait, until every message is sent or given up.
func (n *Notifier) Close(wait time.Duration) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.closed = true
	for _, s := range n.services {
		close(s.waiting)
	}
	n.mu.Unlock()
	timer := time.AfterFunc(wait, n.cancel)
	n.sending.Wait()
	timer.Stop()
	n.cancel()
	n.client.CloseIdleConnections()
}

// deliver sends a message until the service takes it. The error says why it did not.
func (n *Notifier) deliver(s *service, m Message) error {
	to, body, err := kinds[s.kind].request(s.address, m)
	if err != nil {
		return err
	}
	pause, before := firstPause, error(nil)
	for k := 1; ; k++ {
		again, retryAfter, err := n.attempt(to, body)
		if err != nil && before != nil && n.ctx.Err() != nil {
			return before // Close cut this attempt short: the one before it says what is wrong
		}
		if err == nil || !again || k == attempts {
			return err
		}
		before = err
		timer := time.NewTimer(max(pause, retryAfter))
		select {
		case <-timer.C:
		case <-n.ctx.Done():
			timer.Stop()
			return err
		}
		pause *= 2
	}
}

// attempt sends a message once. again reports whether another attempt may succeed.
func (n *Notifier) attempt(to *url.URL, body []byte) (again bool, retryAfter time.Duration, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, attemptTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("its address is invalid")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "dsload")
	resp, err := n.client.Do(r)
	if err != nil {
		return true, 0, reason(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return false, 0, nil
	case code == http.StatusTooManyRequests || code >= 500:
		if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && s > 0 {
			retryAfter = time.Duration(min(s, 3600) * float64(time.Second))
		}
		return true, retryAfter, fmt.Errorf("it answered %d", code)
	default:
		return false, 0, fmt.Errorf("it answered %d; check the address", code)
	}
}
