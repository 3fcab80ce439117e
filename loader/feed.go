package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/dsload/dsload/internal/arrowipc"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/serve/feed"
)

const (
	// reconnectFor is how long a stream that broke off is asked for again.
	reconnectFor = 5 * time.Second
	// firstWait is the pause after an attempt that gave nothing; each further one is twice as long.
	firstWait = 50 * time.Millisecond
	// maxAnswer bounds the answer that is an error.
	maxAnswer = 1 << 20
)

// errChanged means that a server has another dataset than before.
var errChanged = fault.New(fault.Corrupt, "the server has another dataset than when it was opened; open it again to "+
	"read that one")

// remote is a feed as a client sees it.
type remote struct {
	name   string // without a token, for errors
	base   *url.URL
	token  string
	client http.Client
	values url.Values // of query
	query  feed.Query
	seal   string
	narrow bool // the server can send batches with wire=narrow
}

// openFeed asks a server which dataset it has.
func openFeed(ctx context.Context, network, address string, values url.Values, query feed.Query) (*Loader, error) {
	f := &remote{name: "unix:" + address, base: &url.URL{Scheme: "http", Host: "dsload"}, values: values, query: query}
	transport := &http.Transport{DisableCompression: true, Proxy: http.ProxyFromEnvironment}
	if network == "unix" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	} else if err := f.parse(address); err != nil {
		return nil, err
	}
	f.client.Transport = transport
	answer, err := f.greet(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.name, err)
	}
	defer answer.Body.Close()
	if f.seal = answer.Header.Get(feed.SealHeader); f.seal == "" {
		return nil, fault.Kindf(fault.Unreachable, "open %s: what answers there is not a server of dsload", f.name)
	}
	f.narrow = answer.Header.Get(feed.WiresHeader) != ""
	f.fixPacking(answer.Header.Get(feed.DefaultsHeader))
	return &Loader{batches: f.batches(ctx, reconnectFor), close: func() error {
		transport.CloseIdleConnections()
		return nil
	}}, nil
}

// greet asks the server who it is, again where a busy one closes the connection before it has read the request.
func (f *remote) greet(ctx context.Context) (answer *http.Response, err error) {
	for until := time.Now().Add(reconnectFor); ; {
		answer, err = f.get(ctx, "/healthz", nil)
		wasClosed := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
		if !wasClosed || time.Now().After(until) {
			return answer, err
		}
		select {
		case <-time.After(firstWait):
		case <-ctx.Done():
		}
	}
}

// fixPacking asks for what the server does by itself with requests without pack: started again with another
// --pack, it would number the rows in another way.
func (f *remote) fixPacking(defaults string) {
	if f.values.Has("pack") {
		return
	}
	given, err := url.ParseQuery(defaults)
	if err == nil && given.Has("pack") {
		maps.Copy(given, f.values)
		f.values = given
	} else if !f.values.Has("max_length") { // without pack it is refused
		f.values.Set("pack", "none")
	}
}

// parse sets where the server is, and its token.
func (f *remote) parse(address string) error {
	base, err := url.Parse(address)
	if err != nil {
		return fault.Kindf(fault.Usage, "the address of the feed cannot be read; write https://HOST:PORT")
	}
	f.token, _ = base.User.Password()
	if base.User != nil && (base.User.Username() != "" || f.token == "") {
		return fault.Kindf(fault.Usage, "open %s: write the server's token as https://:TOKEN@%s", base.Redacted(), base.Host)
	}
	host := base.Hostname()
	if f.token != "" && base.Scheme == "http" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return fault.Kindf(fault.Usage, "open %s: a token is sent over https only; serve with --tls-cert and --tls-key",
			base.Redacted())
	}
	base.User, f.name, f.base = nil, base.Redacted(), base
	return nil
}

// get asks the server. An answer that is an error is returned as one.
func (f *remote) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	u := f.base.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if f.token != "" {
		request.Header.Set("Authorization", "Bearer "+f.token)
	}
	answer, err := f.client.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the rest has the whole address
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fault.Kindf(fault.Unreachable, "%w; start the server with dsload serve", err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	var said struct{ Error, Hint string }
	if json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&said) != nil || said.Error == "" {
		said.Error = "the server answers " + answer.Status
	}
	return nil, answered(&feed.RequestError{Status: answer.StatusCode, Reason: said.Error, Hint: said.Hint})
}

// batches returns the batches of the query, through as many streams as it takes.
func (f *remote) batches(ctx context.Context, patience time.Duration) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		at, wait := f.query.Start, firstWait
		until := time.Now().Add(patience)
		for {
			began := at
			err := f.stream(ctx, &at, yield)
			if err == nil {
				return
			}
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			if !isBroken(err) {
				if errors.Is(err, arrowipc.ErrCorrupt) {
					err = fault.Kindf(fault.Corrupt, "%w; something between here and dsload serve changes what it sends", err)
				}
				yield(nil, fmt.Errorf("read %s: %w", f.name, err))
				return
			}
			if at != began {
				until, wait = time.Now().Add(patience), firstWait
				continue
			}
			if time.Now().After(until) {
				yield(nil, fault.Kindf(fault.Unreachable, "read %s: the stream ended at row %d, before its end: %w; once the "+
					"server is back, a query with start=%d continues there", f.name, at, err, at))
				return
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			wait *= 2
		}
	}
}

// isBroken reports whether a stream may be continued after an error: the connection broke, or the server is busy
// or restarts.
func isBroken(err error) bool {
	if r, ok := errors.AsType[*feed.RequestError](err); ok {
		return r.Status == http.StatusServiceUnavailable
	}
	return !errors.Is(err, errChanged) && !errors.Is(err, arrowipc.ErrCorrupt)
}

// stream yields the batches from row *at of the order on, which it moves. It returns nil at the end, and when
// nobody wants more.
func (f *remote) stream(ctx context.Context, at *int64, yield func(*Batch, error) bool) error {
	query := maps.Clone(f.values)
	query.Set("start", strconv.FormatInt(*at, 10))
	if f.narrow {
		query.Set("wire", "narrow")
	}
	answer, err := f.get(ctx, "/v1/batches", query)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.Header.Get(feed.SealHeader) != f.seal {
		return errChanged
	}
	r, err := arrowipc.NewReader(answer.Body)
	if err != nil {
		return err
	}
	for {
		rows, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := received(r, rows, f.query)
		if err != nil {
			return err
		}
		if b.Next <= *at {
			return fmt.Errorf("%w: after row %d comes row %d", arrowipc.ErrCorrupt, *at, b.Next)
		}
		*at = b.Next
		if !yield(b, nil) {
			return nil
		}
	}
}
