//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
)

// hostileLimit ends a case that does not end by itself. It is not a measure of speed.
const hostileLimit = 10 * time.Minute

// A hostileCase is a configuration designed to take more memory than the cap.
type hostileCase struct {
	kind  string
	cap   int64    // MiB
	args  []string // of build or serve, without --memory
	feed  func(stdin io.Writer)
	crowd func(t *testing.T, socket string) // connects to a server; nil for a build
}

// A hostileMaker draws configurations of one kind. Files go to dir.
type hostileMaker struct {
	t   *testing.T
	rnd *rand.Rand
	dir string
	n   int64 // files made
}

// TestHostileConfigurations draws configurations of every kind of input. It runs each in a control
// group of its cap plus 8 MiB, where the kernel kills what takes more. None may be killed, hang or
// crash; each may be refused or succeed. DSLOAD_HOSTILE sets how many are drawn (13, one of each kind),
// DSLOAD_HOSTILE_SEED the seed (1). DSLOAD_HOSTILE_CASE runs one of them alone, DSLOAD_HOSTILE_KIND
// those of one kind.
func TestHostileConfigurations(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it runs the program under a control group again and again")
	}
	count, seed, only := effort.Count(t, "DSLOAD_HOSTILE", 13, 13, 1000),
		effort.Count(t, "DSLOAD_HOSTILE_SEED", 1, 1, 1),
		effort.Count(t, "DSLOAD_HOSTILE_CASE", -1, -1, -1)
	t.Logf("DSLOAD_HOSTILE=%d DSLOAD_HOSTILE_SEED=%d", count, seed)
	needCgroup(t, 64<<20)
	exe := builtProgram(t)
	served := filepath.Join(t.TempDir(), "served")
	if out, err := exec.Command(exe, "build", "synth://wikitext?seed=1", "--max-examples", "2000", "--out", served,
		"--progress", "none").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sources := manySources(t, exe)
	makers := []struct {
		kind string
		draw func(*hostileMaker) hostileCase
	}{
		{"template", (*hostileMaker).template}, {"tokenizer", (*hostileMaker).tokenizer},
		{"folder", (*hostileMaker).folder}, {"regex", (*hostileMaker).regex},
		{"data", (*hostileMaker).data}, {"line", (*hostileMaker).line}, {"bomb", (*hostileMaker).bomb},
		{"server", func(m *hostileMaker) hostileCase { return m.server(served) }},
		{"csv", (*hostileMaker).csv}, {"json", (*hostileMaker).json}, {"vocabulary", (*hostileMaker).vocabulary},
		{"tree", (*hostileMaker).tree},
		{"tcp", func(m *hostileMaker) hostileCase { return m.tcp(served, sources) }},
	}
	kinds := map[string]int{}
	for i := range count {
		maker := makers[i%len(makers)]
		if kind := os.Getenv("DSLOAD_HOSTILE_KIND"); only >= 0 && i != only || kind != "" && kind != maker.kind {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := &hostileMaker{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), uint64(i))), dir: t.TempDir()}
			c := maker.draw(m)
			c.kind = maker.kind
			kinds[c.kind]++
			c.run(t, exe, m.dir)
		})
	}
	t.Logf("drawn: %v", kinds)
}

// run starts the program inside a control group and judges how it ends.
func (c *hostileCase) run(t *testing.T, exe, dir string) {
	group, err := newCgroup(t, (c.cap+8)<<20)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), hostileLimit)
	defer cancel()
	args := append(c.args, "--memory", fmt.Sprintf("%dMiB", c.cap))
	socket := filepath.Join(dir, "s")
	if c.crowd != nil {
		args = append(args, "--socket", socket)
	} else {
		args = append(args, "--out", filepath.Join(dir, "out"), "--progress", "none")
	}
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, group.procs, exe},
		args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if c.feed != nil {
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() { c.feed(stdin); stdin.Close() }()
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := watchPeak(cmd.Process.Pid)
	if c.crowd != nil {
		awaitSocket(ctx, socket)
		c.crowd(t, socket)
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	_ = cmd.Wait() // the state is checked
	state, message := cmd.ProcessState, stderr.String()
	status, _ := state.Sys().(syscall.WaitStatus)
	t.Logf("%s: cap %d MiB, peak %d MiB, %v: %.200s", c.kind, c.cap, peak()>>20, state, message)
	switch {
	case ctx.Err() != nil:
		t.Errorf("it did not end within %v: dsload %q", hostileLimit, args)
	case status.Signaled():
		t.Errorf("killed by %v: dsload %q", status.Signal(), args)
	case state.ExitCode() > exitUnreachable || strings.Contains(message, "goroutine "):
		t.Errorf("exit code %d: %.2000s: dsload %q", state.ExitCode(), message, args)
	}
}

// watchPeak watches a process's memory until the function that it returns is called, which returns
// the peak. The kernel's own figure for an ended process includes the process that it was forked
// from.
func watchPeak(pid int) func() int64 {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
				if _, rest, found := strings.Cut(string(data), "VmHWM:"); found {
					var kib int64
					if _, err := fmt.Sscan(rest, &kib); err == nil {
						most = max(most, kib<<10)
					}
				}
			}
			select {
			case <-stop:
				result <- most
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(stop); return <-result }
}

// manySources builds a dataset whose manifest is several MiB long.
func manySources(t *testing.T, exe string) string {
	dir := t.TempDir()
	m := &hostileMaker{t: t, dir: dir}
	one, tree, out := m.file(".txt", "hi\n"), filepath.Join(dir, "tree"), filepath.Join(dir, "many")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 10000 {
		if err := os.Link(one, filepath.Join(tree, fmt.Sprintf("%d%s.txt", i, strings.Repeat("f", 150)))); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(exe, "build", tree, "--out", out, "--progress", "none").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return out
}

// awaitSocket waits until a server answers, ctx ends, or it is clear that no server will answer.
// The caller's run finds out why.
func awaitSocket(ctx context.Context, socket string) {
	for range 400 {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func pick[T any](m *hostileMaker, of ...T) T { return of[m.rnd.IntN(len(of))] }

func (m *hostileMaker) caps() int64 { return pick[int64](m, 64, 64, 96, 128) }

// tokenizer draws tokenizer files whose parts make text longer, and large vocabularies.
func (m *hostileMaker) tokenizer() hostileCase {
	j := plainTokenizer()
	replace := func(from, to string, n int) map[string]any {
		return map[string]any{"type": "Replace", "pattern": map[string]string{"String": from},
			"content": strings.Repeat(to, n)}
	}
	switch m.rnd.IntN(5) {
	case 0:
		var chain []any
		for range 1 + m.rnd.IntN(4) {
			chain = append(chain, replace("a", "a", pick(m, 2, 300, 10000)))
		}
		j["normalizer"] = map[string]any{"type": "Sequence", "normalizers": chain}
	case 1:
		j["normalizer"] = map[string]any{"type": "Prepend", "prepend": strings.Repeat("b",
			pick(m, 100, 100000, 5000000))}
	case 2:
		added := []any{}
		for i := range pick(m, 100, 10000, 100000) {
			added = append(added, map[string]any{"id": 1000 + i, "content": fmt.Sprintf("<w%d>", i),
				"special": i%2 == 0, "normalized": false, "lstrip": false, "rstrip": false, "single_word": false})
		}
		j["added_tokens"] = added
	case 3:
		vocab := j["model"].(map[string]any)["vocab"].(map[string]int)
		for i := range pick(m, 1000, 100000, 500000) {
			vocab[fmt.Sprintf("w%d", i)] = len(vocab)
		}
	case 4:
		j["normalizer"] = map[string]any{"type": pick(m, "NFKD", "NFKC", "NFC", "Lowercase")}
	}
	data, err := json.Marshal(j)
	if err != nil {
		m.t.Fatal(err)
	}
	padding := times{" ", pick(m, 0, 0, 1<<20, 100<<20)}
	return hostileCase{cap: m.caps(), args: []string{"build", m.file(".txt", "a b aa bb\n",
		times{m.word(), pick(m, 4000, 400000)}, "\n"),
		"--format", "text", "--tokenizer", m.file(".json", padding, string(data)), "--max-length",
		fmt.Sprint(pick(m, 512, 1000000))}}
}

// plainTokenizer is a small tokenizer.json.
func plainTokenizer() map[string]any {
	vocab := map[string]int{}
	for c := '!'; c <= '~'; c++ {
		vocab[string(c)] = len(vocab)
	}
	return map[string]any{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{},
		"normalizer": nil, "pre_tokenizer": map[string]any{"type": "Whitespace"},
		"post_processor": nil, "decoder": nil, "model": map[string]any{"type": "BPE", "dropout": nil,
			"unk_token": "?", "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []any{}}}
}

// folder draws trees of many small files with long names.
func (m *hostileMaker) folder() hostileCase {
	root := filepath.Join(m.dir, "tree")
	one := m.file(".txt", "hi\n")
	dirs, files, pad := 1+m.rnd.IntN(20), pick(m, 10, 300, 1000), m.rnd.IntN(180)
	for d := range dirs {
		dir := filepath.Join(root, fmt.Sprintf("%d%s", d, strings.Repeat("d", pad)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			m.t.Fatal(err)
		}
		for f := range files {
			if err := os.Link(one, filepath.Join(dir, fmt.Sprintf("%d%s.txt", f,
				strings.Repeat("f", pad)))); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	return hostileCase{cap: m.caps(), args: []string{"build", root}}
}

// server draws clients that ask for much and read nothing.
func (m *hostileMaker) server(dataset string) hostileCase {
	n := pick(m, 10, 200, 800)
	request := pick(m, "GET /healthz HTTP/1.1\r\nHost: dsload\r\nX: "+strings.Repeat("a", 12000),
		"GET /v1/batches?epochs=0&batch_size=64 HTTP/1.1\r\nHost: dsload\r\n\r\n",
		"GET /v1/dataset HTTP/1.1\r\nHost: dsload\r\n\r\n",
		"GET /v1/batches?epochs=0&batch_size=100000&bucket=2000 HTTP/1.1\r\nHost: dsload\r\n\r\n",
		"GET / HTTP/1.1\r\n"+strings.Repeat("A: b\r\n", 500),
		"POST /v1/batches HTTP/1.1\r\nHost: dsload\r\nContent-Length: 99999999\r\n\r\n"+strings.Repeat("x", 10000),
		"\x16\x03\x01garbage")
	again := m.rnd.IntN(3)
	return hostileCase{cap: pick[int64](m, 32, 48, 64), args: []string{"serve", dataset, "--drain", "1s"},
		crowd: func(t *testing.T, socket string) {
			var open []net.Conn
			for range n {
				c, err := net.DialTimeout("unix", socket, time.Second)
				if err != nil {
					break
				}
				open = append(open, c)
				for range 1 + again {
					_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
					if _, err := io.WriteString(c, request); err != nil {
						break
					}
				}
			}
			// A stream that is served shows that the others had their turn.
			if c, err := net.DialTimeout("unix", socket, time.Second); err == nil {
				_ = c.SetDeadline(time.Now().Add(2 * time.Second))
				_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: dsload\r\nConnection: close\r\n\r\n")
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}
			for _, c := range open {
				c.Close()
			}
		}}
}
