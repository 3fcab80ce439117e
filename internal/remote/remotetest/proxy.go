package remotetest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Proxy sits between a program and a bucket's server. It delays each answer, as distance does,
// and records requests. Set its fields before the first request.
type Proxy struct {
	Delay time.Duration

	mu       sync.Mutex
	requests []Request
	now      int
	most     int
}

// Via returns the bucket as seen through a new proxy, which ends with the test.
func (b Bucket) Via(t testing.TB) (Bucket, *Proxy) {
	t.Helper()
	p := &Proxy{}
	through := b
	through.Env = nil
	for _, e := range b.Env {
		name, value, _ := strings.Cut(e, "=")
		if name == "AWS_ENDPOINT_URL" || name == "STORAGE_EMULATOR_HOST" || name == "AZURE_STORAGE_BLOB_ENDPOINT" && value != "" {
			target, err := url.Parse(value)
			if err != nil {
				t.Fatal(err)
			}
			path := target.Path // part of what the requests are signed with
			target.Path = ""
			server := httptest.NewServer(p.to(target, name == "STORAGE_EMULATOR_HOST"))
			t.Cleanup(server.Close)
			e = name + "=" + server.URL + path
		}
		through.Env = append(through.Env, e)
	}
	return through, p
}

// to forwards to a server. The signature of S3 is over the host that the program asked.
func (p *Proxy) to(target *url.URL, ownHost bool) http.Handler {
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if !ownHost {
			r.Out.Host = r.In.Host
		}
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		at := len(p.requests)
		p.requests = append(p.requests, Request{Method: r.Method, Path: r.URL.Path, Range: r.Header.Get("Range"),
			Query: r.URL.RawQuery})
		p.now++
		p.most = max(p.most, p.now)
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			p.now--
			p.mu.Unlock()
		}()
		if p.Delay > 0 {
			time.Sleep(p.Delay)
		}
		forward.ServeHTTP(&countedWriter{w, p, at}, r)
	})
}

type countedWriter struct {
	http.ResponseWriter
	p  *Proxy
	at int
}

func (w *countedWriter) Write(data []byte) (int, error) {
	n, err := w.ResponseWriter.Write(data)
	w.p.mu.Lock()
	w.p.requests[w.at].Sent += n
	w.p.mu.Unlock()
	return n, err
}

func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Requests returns the requests so far.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

// MostAtOnce returns the maximum number of concurrent requests so far.
func (p *Proxy) MostAtOnce() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}
