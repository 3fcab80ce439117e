package feed

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/budget"
)

func TestTokenGuardsTCP(t *testing.T) {
	s := NewServer(Options{Backend: &fakeBackend{rows: 10}, Ledger: budget.New(16 << 20), Token: "secret",
		Log: slog.New(slog.DiscardHandler)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Shutdown(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/batches", "", 401}, {"/v1/batches", "Bearer wrong", 401}, {"/v1/batches", "Bearer ", 401},
		{"/v1/batches", "secret", 401},
		{"/v1/batches", "Bearer secret", 200}, {"/v1/batches", "bearer secret", 200},
		{"/v1/batches", "BEARER secret", 200}, {"/v1/batches", "Bearers secret", 401}, {"/", "Basic OnNlY3JldA==", 200},
		{"/metrics", "", 401},
		{"/healthz", "", 200}, {"/v1/stats", "Bearer secret2", 401},
	} {
		req, err := http.NewRequest("GET", "http://"+l.Addr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			req.Header.Set("Authorization", c.header)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.header, resp.StatusCode, c.status)
		}
	}
}

func TestHealthTellsTheTruth(t *testing.T) {
	f := &fakeBackend{rows: 10}
	s, client, _ := start(t, Options{Backend: f})
	status := func() int {
		resp, err := client.Get("http://dsload/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if got := status(); got != 200 {
		t.Errorf("healthy: %d", got)
	}
	f.sick = errDamaged
	if got := status(); got != 503 {
		t.Errorf("damaged: %d", got)
	}
	f.sick = nil
	s.draining.Store(true)
	if got := status(); got != 503 {
		t.Errorf("draining: %d", got)
	}
}

func TestStaleSocketIsTakenOver(t *testing.T) {
	path := t.TempDir() + "/s"
	// What a killed server leaves: the file without anybody behind it.
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := ListenUnix(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a live socket: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for _, left := range []string{path, path + ".lock"} {
		if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
}

func TestForeignServersAndFilesAreNotTakenOver(t *testing.T) {
	dir := t.TempDir()
	foreign, err := net.Listen("unix", dir+"/live") // knows nothing of our lock
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if _, err := ListenUnix(dir + "/live"); !errors.Is(err, ErrInUse) {
		t.Errorf("a live foreign server: %v", err)
	}
	if err := os.WriteFile(dir+"/file", []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(dir + "/file"); err == nil {
		t.Error("a file was taken over")
	}
	if data, err := os.ReadFile(dir + "/file"); err != nil || string(data) != "precious" {
		t.Errorf("the file is now %q, %v", data, err)
	}
	if _, err := ListenUnix(dir + strings.Repeat("/x", 60)); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a long path: %v", err)
	}
}

// Many servers start at once over a stale socket: exactly one gets it.
func TestOneOfManyGetsTheSocket(t *testing.T) {
	path := t.TempDir() + "/s"
	for range 20 {
		dead, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		dead.(*net.UnixListener).SetUnlinkOnClose(false)
		dead.Close()
		got := make(chan net.Listener, 8)
		for range cap(got) {
			go func() {
				l, err := ListenUnix(path)
				if err != nil && !errors.Is(err, ErrInUse) {
					t.Error(err)
				}
				got <- l
			}()
		}
		var winners []net.Listener
		for range cap(got) {
			if l := <-got; l != nil {
				winners = append(winners, l)
			}
		}
		if len(winners) != 1 {
			t.Fatalf("%d listeners", len(winners))
		}
		winners[0].Close()
	}
}
