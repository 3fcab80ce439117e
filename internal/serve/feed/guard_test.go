package feed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/budget"
)

// startTCP runs a server on the loopback address and returns host and port.
func startTCP(t *testing.T, o Options) string {
	t.Helper()
	o.Ledger, o.Log = budget.New(32<<20), slog.New(slog.DiscardHandler)
	s := NewServer(o)
	l, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// exchange sends a request as it is and reads the response.
func exchange(t *testing.T, network, address, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	return resp
}

// Without a token, only a request that names this machine is answered: a page whose name was
// pointed at the loopback address (DNS rebinding) would read the corpus otherwise.
func TestForeignHostsAreRefused(t *testing.T) {
	address := startTCP(t, Options{Backend: &fakeBackend{rows: 10}})
	_, port, _ := net.SplitHostPort(address)
	for _, path := range []string{"/", "/metrics", "/healthz", "/v1/stats", "/v1/dataset", "/v1/batches", "/nothing"} {
		for host, served := range map[string]bool{
			"127.0.0.1:" + port: true, "localhost:" + port: true, "localhost": true, "LOCALHOST.": true, "[::1]:" +
				port: true, "[::1]": true, "127.0.0.1": true,
			"localhost:9999": true, "127.9.9.9": true, "[::ffff:127.0.0.1]": true, // by way of a forwarded port
			"evil.example": false, "evil.example:" + port: false, "127.0.0.1.evil.example:" + port: false,
			"localhost.evil.example": false, "10.0.0.1": false,
			"0.0.0.0": false, "[::]": false, "127.1": false, "127.0.0.1@evil.example": false,
			"localhost.localdomain": false, "x": false, "[::1": false,
		} {
			resp := exchange(t, "tcp", address,
				fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host))
			if ok := resp.StatusCode == 200 || resp.StatusCode == 404; ok != served || !served &&
				resp.StatusCode != 421 && resp.StatusCode != 400 {
				t.Errorf("%s for Host %s: %s", path, host, resp.Status)
			}
		}
	}
	for request, want := range map[string]int{
		"GET / HTTP/1.0\r\n\r\n": 400, "GET / HTTP/1.1\r\n\r\n": 400, "GET / HTTP/1.1\r\nHost:\r\n\r\n": 400,
		"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n": 421,
	} {
		if resp := exchange(t, "tcp", address, request); resp.StatusCode != want {
			t.Errorf("%q: %s, want %d", request, resp.Status, want)
		}
	}
}

// A page of another site gets nothing, whether or not the server asks for a token; the dashboard's
// own requests and links to it work.
func TestOtherSitesPagesAreRefused(t *testing.T) {
	for _, token := range []string{"", "secret"} {
		address := startTCP(t, Options{Backend: &fakeBackend{rows: 10}, Token: token})
		for _, c := range []struct {
			headers string
			status  int
		}{
			{"", 200}, {"Sec-Fetch-Site: none", 200}, {"Sec-Fetch-Site: same-origin", 200},
			{"Origin: http://" + address, 200},
			{"Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate", 200},
			{"Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors", 403}, {"Sec-Fetch-Site: cross-site", 403},
			{"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate", 403}, {"Sec-Fetch-Site: whatever", 403},
			{"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", 403},
			{"Origin: http://evil.example", 403}, {"Origin: null", 403}, {"Origin: http://127.0.0.1:1", 403},
			{"Origin: http://" + address + "\r\nOrigin: http://evil.example", 403}, {"Origin: %zz", 403},
		} {
			for _, path := range []string{"/", "/metrics", "/v1/dataset", "/v1/batches", "/healthz"} {
				request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer secret\r\nConnection: close\r\n", path, address)
				if c.headers != "" {
					request += c.headers + "\r\n"
				}
				if resp := exchange(t, "tcp", address, request+"\r\n"); resp.StatusCode != c.status {
					t.Errorf("%s with %q: %s, want %d", path, c.headers, resp.Status, c.status)
				}
			}
		}
	}
}

// The socket's mode guards it: any Host will do there, and clients of HTTP/1.0 need none.
func TestAnyHostOverTheSocket(t *testing.T) {
	_, _, path := start(t, Options{Backend: &fakeBackend{rows: 10}})
	for _, request := range []string{"GET /v1/dataset HTTP/1.1\r\nHost: whatever.example\r\n\r\n",
		"GET /v1/dataset HTTP/1.0\r\n\r\n"} {
		if resp := exchange(t, "unix", path, request); resp.StatusCode != 200 {
			t.Errorf("%q: %s", request, resp.Status)
		}
	}
}

// Streams, pages and refusals alike say which dataset they are about.
func TestSealComesWithEveryResponse(t *testing.T) {
	f := &fakeBackend{rows: 10}
	s, _, path := start(t, Options{Backend: f})
	address := startTCP(t, Options{Backend: f, Token: "secret"})
	check := func(network, where, request string, status int) {
		t.Helper()
		resp := exchange(t, network, where, request)
		if resp.StatusCode != status || resp.Header.Get(SealHeader) != f.Seal() {
			t.Errorf("%.60q: %s with seal %q", request, resp.Status, resp.Header.Get(SealHeader))
		}
	}
	for target, status := range map[string]int{
		"/": 200, "/healthz": 200, "/metrics": 200, "/v1/stats": 200, "/v1/dataset": 200, "/v1/batches": 200,
		"/v1/batches?epochs=2&batch_size=3": 200,
		"/v1/batches?batch_size=0":          400, "/v1/batches?split=val": 400, "/nothing": 404, "/v1/batches?" +
			strings.Repeat("b", 8200): 414,
	} {
		check("unix", path, "GET "+target+" HTTP/1.1\r\nHost: x\r\n\r\n", status)
	}
	check("unix", path, "HEAD /v1/batches HTTP/1.1\r\nHost: x\r\n\r\n", 200)
	check("unix", path, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", 413)
	check("unix", path, "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", 405)
	check("tcp", address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 401)
	check("tcp", address, "GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403)
	f.sick = errDamaged
	check("unix", path, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 503)
	s.draining.Store(true)
	check("unix", path, "GET /v1/batches HTTP/1.1\r\nHost: x\r\n\r\n", 503)
}

// A body is refused before it is read, also one whose length nobody knows: waiting for its end could be for ever.
func TestBodiesAreNotWaitedFor(t *testing.T) {
	_, _, path := start(t, Options{Backend: &fakeBackend{rows: 10}})
	for _, request := range []string{
		"POST /v1/dataset HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
		"GET /v1/batches HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhe",
	} {
		resp := exchange(t, "unix", path, request)
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 413 || !resp.Close || !strings.Contains(string(body), "no body") {
			t.Errorf("%q: %s %s %v", request, resp.Status, body, err)
		}
	}
}
