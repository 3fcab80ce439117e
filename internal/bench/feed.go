package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// FeedFigures are the figures of a feed: a server in its own process, and one client that reads and
// discards.
type FeedFigures struct {
	MBPerCPUSecond    float64 `json:"mb_per_cpu_s"` // bytes on the wire per CPU-second of server and client
	MBPerSecond       float64 `json:"mb_per_s"`
	TokensPerSec      float64 `json:"tokens_per_s"` // before padding
	PeakRSSBytes      int64   `json:"peak_rss_bytes"`
	ServerMicros      float64 `json:"server_us_per_sample"`
	ServerCPUSeconds  float64 `json:"server_cpu_s"`
	ClientCPUSeconds  float64 `json:"client_cpu_s"`
	WallSeconds       float64 `json:"wall_s"`
	Samples           int64   `json:"samples"`
	Bytes             int64   `json:"bytes"`
	PaddingEfficiency float64 `json:"padding_efficiency"`
	// FirstBatchMillis is the time from a request to its first batch, for streams that start at the
	// first row, in the middle and near the end: each the median of 21.
	FirstBatchMillis [3]float64 `json:"first_batch_ms"`
	Rows             int64      `json:"rows"`
	Memory           int64      `json:"memory_cap_bytes"`
	Query            string     `json:"query"`
}

// FeedOptions are those of a feed to measure.
type FeedOptions struct {
	Dataset      string // "" to make up one of Rows rows with Tokens tokens each
	Rows, Tokens int64
	BatchSize    int
	Query        string // more parameters of batches, as name=value&name=value
	Memory       int64  // the server's
	For          time.Duration
	Stderr       io.Writer // the server's
}

// Feed measures a server in a process of its own with one client.
func Feed(ctx context.Context, o FeedOptions) (_ *FeedFigures, err error) {
	dir, err := os.MkdirTemp("", "dsload-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	dataset := o.Dataset
	if dataset == "" {
		dataset = filepath.Join(dir, "data")
		if err := makeUp(ctx, dataset, o.Rows, int(o.Tokens)); err != nil {
			return nil, err
		}
	}
	server, err := startServer(ctx, dataset, filepath.Join(dir, "s"), &o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if server.command.ProcessState == nil {
			err = errors.Join(err, server.stop())
		}
	}()
	query := fmt.Sprintf("batch_size=%d&epochs=0", o.BatchSize)
	if o.Query != "" {
		query += "&" + o.Query
	}
	figures, err := server.measure(query, o.For)
	if err != nil {
		return nil, err
	}
	figures.Memory = o.Memory
	if err := server.stop(); err != nil {
		return nil, err
	}
	figures.PeakRSSBytes = peakOfEnded(server.command.ProcessState)
	return figures, nil
}

// makeUp builds a dataset with rows of random ids.
func makeUp(ctx context.Context, dir string, rows int64, tokens int) error {
	const vocabulary = 50257
	b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, dataset.BuilderOptions{Schema: shard.Schema{VocabSize: vocabulary},
		MaxRowTokens: tokens})
	if err != nil {
		return err
	}
	defer b.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	example := dataset.Example{InputIDs: make([]uint32, tokens)}
	for i := range rows {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for j := range example.InputIDs {
			example.InputIDs[j] = uint32(rng.Uint64N(vocabulary))
		}
		example.Document = i
		if err := b.Row("train", &example); err != nil {
			return err
		}
	}
	_, err = b.Finish(dataset.Provenance{Tokenizer: shard.TokenizerInfo{Name: "random", Fingerprint: "random",
		VocabSize: vocabulary}})
	return err
}

// serverProcess is a server under measurement.
type serverProcess struct {
	command *exec.Cmd
	stdin   io.Closer
	client  *http.Client
}

func startServer(ctx context.Context, dataset, socket string, o *FeedOptions) (*serverProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program to measure it: %w", err)
	}
	s := &serverProcess{command: exec.CommandContext(ctx, self, "serve",
		"--socket", socket, "--json", "--log-level", "error", "--exit-with-stdin",
		"--memory", strconv.FormatInt(o.Memory, 10), "--", dataset)}
	s.command.Stderr = o.Stderr
	if s.stdin, err = s.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	// The server prints its addresses once the socket answers.
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return nil, fault.Kindf(fault.Unreachable, "the server did not start: %w", errors.Join(err, s.stop()))
	}
	transport := feed.Transport(socket)
	transport.ReadBufferSize = 256 << 10
	s.client = &http.Client{Transport: transport}
	return s, nil
}

func (s *serverProcess) stop() error {
	return errors.Join(s.stdin.Close(), s.command.Wait())
}

// serverStats is the part of /v1/stats that the benchmark reads.
type serverStats struct {
	Rows, Tokens, Bytes int64
	Efficiency          float64 `json:"padding_efficiency"`
}

func (s *serverProcess) stats() (out serverStats, err error) {
	resp, err := s.client.Get("http://dsload/v1/stats")
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

// measure times first batches, then reads batches for a while.
func (s *serverProcess) measure(query string, d time.Duration) (*FeedFigures, error) {
	rows, err := s.numRows()
	if err != nil {
		return nil, err
	}
	f := &FeedFigures{Rows: rows, Query: query}
	for i, start := range []int64{0, rows / 2, max(0, rows-100)} {
		if f.FirstBatchMillis[i], err = s.firstBatch(fmt.Sprintf("%s&start=%d", query, start)); err != nil {
			return nil, err
		}
	}
	before, err := s.stats()
	if err != nil {
		return nil, err
	}
	serverCPU, clientCPU, began := processCPU(s.command.Process.Pid), processCPU(os.Getpid()), time.Now()
	resp, err := s.open(query)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 1<<20)
	for time.Since(began) < d {
		if _, err := resp.Body.Read(buf); err != nil {
			return nil, fmt.Errorf("read the feed: %w", err)
		}
	}
	f.ServerCPUSeconds, f.ClientCPUSeconds = processCPU(s.command.Process.Pid)-serverCPU,
		processCPU(os.Getpid())-clientCPU
	f.WallSeconds = time.Since(began).Seconds()
	after, err := s.stats() // before the stream ends and is counted again
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	f.Samples, f.Bytes = after.Rows-before.Rows, after.Bytes-before.Bytes
	f.ServerMicros = f.ServerCPUSeconds / float64(f.Samples) * 1e6
	f.MBPerSecond = float64(f.Bytes) / 1e6 / f.WallSeconds
	f.MBPerCPUSecond = float64(f.Bytes) / 1e6 / (f.ServerCPUSeconds + f.ClientCPUSeconds)
	f.TokensPerSec = float64(after.Tokens-before.Tokens) / f.WallSeconds
	f.PaddingEfficiency = after.Efficiency
	return f, nil
}

func (s *serverProcess) open(query string) (*http.Response, error) {
	resp, err := s.client.Get("http://dsload/v1/batches?" + query)
	if err != nil {
		return nil, fault.Kindf(fault.Unreachable, "%w", err)
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // part of it is enough for a message
		resp.Body.Close()
		return nil, fmt.Errorf("the feed answered %s: %s", resp.Status, body)
	}
	return resp, nil
}

// firstBatch returns the median time in milliseconds from a request to its first batch. The server
// sends header, schema and first batch together, so the batch has arrived when the second chunk
// has.
func (s *serverProcess) firstBatch(query string) (float64, error) {
	const times = 21
	var taken []float64
	for range times {
		began := time.Now()
		resp, err := s.open(query)
		if err != nil {
			return 0, err
		}
		// Whatever follows the schema's message belongs to the batch.
		if _, err := io.ReadFull(resp.Body, make([]byte, 4<<10)); err != nil {
			return 0, errors.Join(err, resp.Body.Close())
		}
		taken = append(taken, float64(time.Since(began).Microseconds())/1e3)
		resp.Body.Close()
	}
	slices.Sort(taken)
	return taken[times/2], nil
}

func (s *serverProcess) numRows() (int64, error) {
	resp, err := s.client.Get("http://dsload/v1/dataset")
	if err != nil {
		return 0, fault.Kindf(fault.Unreachable, "%w", err)
	}
	defer resp.Body.Close()
	var m shard.Manifest
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		return 0, fmt.Errorf("read the manifest: %w", err)
	}
	if split := m.Split("train"); split != nil {
		return split.Examples, nil
	}
	return 0, fmt.Errorf("the dataset has no split train")
}
