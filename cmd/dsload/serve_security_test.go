//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
)

func TestTokens(t *testing.T) {
	for file, want := range map[string]string{
		"s3cret": "s3cret", "s3cret\n": "s3cret", "s3cret\r\n": "s3cret", "two words": "two words",
		"": "", "\n": "", " \r\n": "", "a\nb": "", "a\rb": "", "a\r\nX-Evil: 1\r\n": "", "a\x00b": "", "a\tb": "",
		"a\x7fb": "", "\xff": "", "ä": "",
	} {
		if got, err := parseToken([]byte(file)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", file, got, err)
		}
	}
}

// TestSecretsAreBounded checks that a pipe that nobody writes to does not block a server that is
// asked to stop, and that an endless file is refused.
func TestSecretsAreBounded(t *testing.T) {
	t.Parallel() // most of it is waiting
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readSecret(ctx, io.Discard, "--token-file", pipe); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe: %v", err)
	}
	if _, _, err := readWaiting(ctx, "--tls-cert", pipe, maxChainBytes); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe as certificate: %v", err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // unblocks the read
	if err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if _, err := readSecret(t.Context(), io.Discard, "--token-file", "/dev/zero"); exitCode(err) != exitUsage {
		t.Errorf("a file without end: %v", err)
	}
	f := serveFlags{listen: "127.0.0.1:0", tlsCert: "/dev/zero", tlsKey: "/dev/zero"}
	if _, err := f.security(t.Context(), io.Discard); exitCode(err) != exitUsage {
		t.Errorf("a certificate without end: %v", err)
	}
}

// TestServerKeepsItsCapInACgroup runs a server of 48 MiB in a control group of 56 MiB, which counts
// socket buffers too. Clients send hundreds of headers that never end, and ask for streams and
// manifests that nobody reads, over the socket and over TCP. The server is not killed, stays under
// its cap, and answers afterwards.
func TestServerKeepsItsCapInACgroup(t *testing.T) {
	if testing.Short() {
		t.Skip("short: hundreds of connections")
	}
	const capBytes = 48 << 20
	group := needCgroup(t, capBytes+8<<20)
	exe, dir := builtProgram(t), t.TempDir()
	data := filepath.Join(dir, "data")
	if out, err := exec.Command(exe, "build", "synth://wikitext?seed=1", "--max-examples", "2000", "--out", data,
		"--progress", "none").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	requests := []string{
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 8000),
		"GET /v1/batches?epochs=0&batch_size=64 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/batches?epochs=0&batch_size=8&bucket=512 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/dataset HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" + "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n",
	}
	socket := filepath.Join(dir, "s")
	listen, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		t.Fatal(err)
	}
	address := listen.Addr().String()
	listen.Close()
	server := exec.Command(exe, "serve", data, "--socket", socket, "--listen", address, "--memory",
		strconv.Itoa(capBytes), "--drain", "1ms")
	log, err := os.Create(filepath.Join(dir, "stderr")) // a file can be read while the server writes to it
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	server.Stderr = log
	said := func() string {
		data, _ := os.ReadFile(log.Name()) // only for a message
		return string(data)
	}
	ended := make(chan error, 1)
	pid := filepath.Join(dir, "pid")
	go func() { ended <- group.runAs(server, pid) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	healthy := func() bool {
		resp, err := client.Get("http://localhost/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	}
	effort.Await(t, healthy, "the server does not answer")
	var conns []net.Conn
	for i := range 700 {
		network, to := "unix", socket
		if i%2 == 0 {
			network, to = "tcp", address
		}
		conn, err := net.DialTimeout(network, to, time.Second)
		if err != nil {
			continue // the queue is full, which is an answer
		}
		conns = append(conns, conn)
		conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := io.WriteString(conn, requests[i%len(requests)]); err != nil {
			conn.Close()
		}
	}
	if len(conns) < 300 {
		t.Errorf("only %d connections", len(conns))
	}
	peak := peakOf(t, pid)
	for _, conn := range conns {
		conn.Close()
	}
	effort.Await(t, healthy, "the server does not answer any more: "+said())
	if peak = max(peak, peakOf(t, pid)); peak > capBytes {
		t.Errorf("peak resident set %d bytes above the cap of %d", peak, capBytes)
	}
	t.Logf("peak resident set %.1f MiB with %d connections", float64(peak)/(1<<20), len(conns))
	if err := syscall.Kill(pidIn(t, pid), syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := <-ended; err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitInterrupted) {
		t.Errorf("%v %s", err, said())
	}
}

// runAs is like run, but first writes the command's process id into a file.
func (g *cgroup) runAs(cmd *exec.Cmd, pid string) error {
	shell := exec.Command("sh", append([]string{"-c",
		`echo $$ > "$0" && pid=$1 && shift && echo $$ > "$pid" && exec "$@"`, g.procs, pid, cmd.Path},
		cmd.Args[1:]...)...)
	shell.Stdout, shell.Stderr = cmd.Stdout, cmd.Stderr
	return shell.Run()
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// peakOf returns the largest resident set that a process has had.
func peakOf(t *testing.T, pidFile string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pidIn(t, pidFile)))
	if err != nil {
		t.Fatalf("the server is gone: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if kib, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
