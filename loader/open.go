package loader

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
)

// A Loader reads the batches of a dataset, from its folder or from a feed. It is safe for concurrent use.
type Loader struct {
	batches iter.Seq2[*Batch, error]
	close   func() error
}

// errClosed is why the batches of a closed loader end.
var errClosed = fault.New(fault.Usage, "the loader is closed; open another one")

// Open opens a dataset: a folder, which is read in this process, or a feed that dsload serve, or Serve, makes of
// one: the path of its socket, unix:PATH, unix://PATH, or an address such as https://HOST:PORT, in which
// https://:TOKEN@HOST:PORT has the token of the server. Both give the same batches.
//
// query has the parameters of the feed as a URL has them, such as "batch_size=4&epochs=1&shuffle=none"; the
// command "dsload help batches" and docs/feed.md describe them. An unknown one is an error. dtype changes no batch:
// elements are int64.
//
// When ctx ends, or the loader is closed, no further batch comes, but its error.
func Open(ctx context.Context, dataset, query string) (*Loader, error) {
	values, err := url.ParseQuery(query)
	if err == nil && values.Has("wire") {
		return nil, fault.Kindf(fault.Usage, "query: wire: a loader gets every column; leave it out")
	}
	q, err := feed.ParseQuery(query)
	if err != nil {
		return nil, refused(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var l *Loader
	if network, address, isFeed := addressOf(dataset); isFeed {
		l, err = openFeed(ctx, network, address, values, q)
	} else {
		l, err = openFolder(ctx, dataset, q)
	}
	if err != nil {
		cancel(nil)
		return nil, withKind(err)
	}
	opened, batches := l.close, l.batches
	l.close = func() error {
		cancel(errClosed)
		return opened()
	}
	l.batches = func(yield func(*Batch, error) bool) {
		for b, err := range batches {
			if err == nil && ctx.Err() != nil { // a connection closes later, and has batches until then
				b, err = nil, context.Cause(ctx)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
	return l, nil
}

// Batches returns the batches that the query asks for, from its start: each range over it begins anew. An error
// is the last value. The stream of a feed that breaks off is continued where it did, for a few seconds and only
// if the server then has the same dataset; else it ends with an error, never as if there were no more rows.
func (l *Loader) Batches() iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for b, err := range l.batches {
			if err != nil {
				err = withKind(err)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Close ends all batches, and closes the dataset.
func (l *Loader) Close() error { return l.close() }

// addressOf returns the network and the address of a feed.
func addressOf(dataset string) (network, address string, isFeed bool) {
	if path, ok := strings.CutPrefix(dataset, "unix:"); ok {
		return "unix", strings.TrimPrefix(path, "//"), true
	}
	if strings.HasPrefix(dataset, "http://") || strings.HasPrefix(dataset, "https://") {
		return "tcp", dataset, true
	}
	info, err := os.Stat(dataset)
	return "unix", dataset, err == nil && info.Mode().Type() == os.ModeSocket
}

// openFolder opens a folder that is read in this process.
func openFolder(ctx context.Context, dir string, q feed.Query) (*Loader, error) {
	if scheme, _, found := strings.Cut(dir, "://"); found {
		return nil, fault.Kindf(fault.Usage, "open %s: addresses of kind %s:// are not read here; dsload serve reads them, "+
			"and this program its socket", dir, scheme)
	}
	reader, err := serve.Open(serve.Options{Datasets: []string{dir}})
	if err != nil {
		return nil, err
	}
	opening, err := reader.Open(q) // for its errors
	if err != nil {
		reader.Close()
		return nil, refused(err)
	}
	opening.Stream.Close()
	return &Loader{close: reader.Close, batches: func(yield func(*Batch, error) bool) {
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		opening, err := reader.Open(q)
		if err != nil {
			yield(nil, refused(err))
			return
		}
		defer opening.Stream.Close()
		b := collate.New(opening.Collate)
		for {
			b.Reset()
			err := opening.Stream.Next(ctx, b)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, refused(err))
				return
			}
			if !yield(collated(b, opening), nil) {
				return
			}
		}
	}}, nil
}

// refused gives an error of a request its kind and its hint.
func refused(err error) error {
	if r, ok := errors.AsType[*feed.RequestError](err); ok {
		return answered(r)
	}
	return err
}

// answered returns the error for the answer of a server.
func answered(r *feed.RequestError) error {
	kind := fault.Unreachable
	switch {
	case r.Status == http.StatusConflict, r.Status == http.StatusInternalServerError:
		kind = fault.Corrupt
	case r.Status == http.StatusRequestEntityTooLarge:
		kind = fault.Limit
	case r.Status < http.StatusInternalServerError:
		kind = fault.Usage
	}
	if r.Hint == "" {
		return fault.Kindf(kind, "%w", r)
	}
	return fault.Kindf(kind, "%w; %s", r, r.Hint)
}
