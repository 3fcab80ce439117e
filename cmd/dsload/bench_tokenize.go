package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/tokenize"
	"github.com/spf13/cobra"
)

// documentRuns lists the values of --documents.
var documentRuns = []string{"runs", "lines"}

// tokenizeFigures are the figures of the best round. In a cold pass, fresh encoders encode the
// whole text; in the warm pass the same encoders do it again. CPU time is the kernel's, user and
// system, of the whole process during the pass.
type tokenizeFigures struct {
	MBPerCPUSecond float64 `json:"mb_per_cpu_s"`
	MBPerSecond    float64 `json:"mb_per_s"`
	TokensPerSec   float64 `json:"tokens_per_s"`
	PeakRSSBytes   int64   `json:"peak_rss_bytes"` // of the process, the text included
	AllocsPerDoc   float64 `json:"allocs_per_doc"` // in the warm pass
	WarmMBPerCPU   float64 `json:"warm_mb_per_cpu_s"`
	WarmMBPerSec   float64 `json:"warm_mb_per_s"`
	WarmTokensPerS float64 `json:"warm_tokens_per_s"`
	LoadMillis     float64 `json:"load_ms"`
	Documents      int     `json:"documents"`
	TextBytes      int64   `json:"text_bytes"`
	Tokens         int64   `json:"tokens"`
	Workers        int     `json:"workers"`
	Rounds         int     `json:"rounds"`
	CacheBytes     int64   `json:"cache_bytes"` // of each worker
	ResidentBytes  int64   `json:"resident_bytes"`
	EncoderBytes   int64   `json:"encoder_bytes"`
	Tokenizer      string  `json:"tokenizer"`
}

type benchTokenizeFlags struct {
	asJSON          bool
	tokenizer       tokenizerFlags
	documents       string
	workers, rounds int
	cache, memory   int64
}

func newBenchTokenizeCommand() *cobra.Command {
	f := benchTokenizeFlags{cache: tokenize.DefaultCacheBytes}
	cmd := &cobra.Command{
		Use:   "tokenize FILE...",
		Short: "Measure tokenizing: text per CPU-second, cold and warm, allocations, memory",
		Long: `Reads the files into memory and encodes them several times: each round first with fresh
encoders, whose caches hold the vocabulary (cold), then again with the same ones (warm). The best cold round counts.
Documents are runs of whole lines of at least 2 KiB; ids go to a reused buffer.`,
		Example: "  dsload bench tokenize corpus.txt\n" +
			"  dsload bench tokenize corpus.txt --tokenizer tokenizer.json --workers 1 --json",
		Args: minArgs(1, "at least one file"),
		RunE: func(cmd *cobra.Command, args []string) error { return runBenchTokenize(cmd, &f, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	f.tokenizer.add(cmd)
	flags.IntVar(&f.workers, "workers", 0, "concurrent encoders (default the CPU quota)")
	flags.IntVar(&f.rounds, "rounds", 7, "cold rounds, of which the best counts")
	flags.StringVar(&f.documents, "documents", "runs", "runs (of whole lines, 2 KiB or more) or lines")
	flags.Var(sizeValue{&f.cache, false}, "cache", "size of each encoder's cache")
	flags.Var(sizeValue{&f.memory, false}, "memory",
		"limit on memory for text, tokenizer and encoders (default half of the control group's or machine's)")
	inGroup(flags, groupMeasurement, "rounds", "documents")
	inGroup(flags, groupLimits, "cache")
	return cmd
}

func runBenchTokenize(cmd *cobra.Command, f *benchTokenizeFlags, paths []string) error {
	if f.rounds < 1 {
		return usagef("--rounds %d: must be at least 1", f.rounds)
	}
	if cmd.Flags().Changed("workers") && f.workers < 1 {
		return usagef("--workers %d: must be at least 1", f.workers)
	}
	least := 2048
	switch f.documents {
	case "runs":
	case "lines":
		least = 1
	default:
		return usagef("--documents %s: %s", f.documents, spelling.OneOf(f.documents, documentRuns))
	}
	f.workers = cmp.Or(f.workers, runtime.GOMAXPROCS(0))
	start := time.Now()
	t, err := openTokenizer(&f.tokenizer, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	loaded := time.Since(start)
	b := &tokenizeBench{t: t, workers: f.workers, cache: int(f.cache)}
	if err := b.readDocuments(paths, least, f.textBytes(t)); err != nil {
		return err
	}
	figures := &tokenizeFigures{
		LoadMillis: float64(loaded.Microseconds()) / 1000, Documents: len(b.docs), TextBytes: b.bytes,
		Workers: f.workers, Rounds: f.rounds, CacheBytes: f.cache, ResidentBytes: t.Details().ResidentBytes(),
		EncoderBytes: t.Details().EncoderBytes(tokenize.EncoderOptions{CacheBytes: int(f.cache)}),
		Tokenizer:    f.tokenizer.name,
	}
	for range f.rounds {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if err := b.round(figures); err != nil {
			return err
		}
	}
	figures.PeakRSSBytes = ownPeak()
	if f.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(figures)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "cold %.1f MB per CPU-second, %.1f MB/s, %s tokens/s; "+
		"warm %.1f MB per CPU-second, %.2f allocations a document; peak memory %s (best of %d, %s)\n",
		figures.MBPerCPUSecond, figures.MBPerSecond, formatCount(int64(figures.TokensPerSec)), figures.WarmMBPerCPU,
		figures.AllocsPerDoc,
		formatSize(figures.PeakRSSBytes), f.rounds, plural(f.workers, "worker"))
	return err
}

// textBytes returns how much text may be held: what --memory leaves after the tokenizer, its
// encoders and the process itself.
func (f *benchTokenizeFlags) textBytes(t *tokenize.Tokenizer) int64 {
	const processBytes = 24 << 20
	limit := cmp.Or(f.memory, halfOfMemory())
	encoder := t.Details().EncoderBytes(tokenize.EncoderOptions{CacheBytes: int(f.cache)}) + 4<<16
	return limit - processBytes - t.Details().ResidentBytes() - int64(f.workers)*encoder
}

// halfOfMemory returns half of what the control group or the machine allows.
func halfOfMemory() int64 {
	limit, _ := systemMemory()
	if group, err := memlimit.FromCgroup(); err == nil && (limit == 0 || int64(group) < limit) {
		limit = int64(group)
	}
	if limit == 0 {
		return math.MaxInt64 / 2 // the system does not say
	}
	return limit / 2
}

// documentBytes is the memory of a document besides its text.
const documentBytes = 24

// readDocuments reads the documents of files, which must hold some text. The documents and their
// bookkeeping take at most limit bytes.
func (b *tokenizeBench) readDocuments(paths []string, least int, limit int64) error {
	left := limit
	for _, path := range paths {
		data, err := readLimitedFile(path, left)
		if errors.Is(err, fs.ErrNotExist) {
			return usagef("bench tokenize: %v", err)
		}
		if err != nil {
			return fmt.Errorf("bench tokenize: %w", err)
		}
		before := len(b.docs)
		b.docs = appendDocuments(b.docs, data, least)
		if left -= int64(len(data)) + documentBytes*int64(len(b.docs)-before); left < 0 {
			return tooMuchText(path)
		}
	}
	for _, d := range b.docs {
		b.bytes += int64(len(d))
	}
	if b.bytes == 0 {
		return fault.Kindf(fault.Corrupt, "bench tokenize: the files hold no text")
	}
	return nil
}

// readLimitedFile reads a file of at most limit bytes.
func readLimitedFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, tooMuchText(path)
	}
	var out bytes.Buffer
	out.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := out.ReadFrom(io.LimitReader(f, max(0, limit)+1)); err != nil {
		return nil, err
	}
	if int64(out.Len()) > limit {
		return nil, tooMuchText(path)
	}
	return out.Bytes(), nil
}

func tooMuchText(path string) error {
	return fault.Kindf(fault.Limit, "with %s the text is more than --memory leaves for it; "+
		"measure a part of it, such as 'head -c 100M', or raise --memory", path)
}

// appendDocuments cuts data into runs of whole lines, including line ends, each as short as the
// minimum size allows.
func appendDocuments(docs [][]byte, data []byte, least int) [][]byte {
	for start := 0; start < len(data); {
		end := min(start+least-1, len(data))
		if n := bytes.IndexByte(data[end:], '\n'); n >= 0 {
			end += n + 1
		} else {
			end = len(data)
		}
		docs = append(docs, data[start:end])
		start = end
	}
	return docs
}

type tokenizeBench struct {
	t       *tokenize.Tokenizer
	docs    [][]byte
	bytes   int64
	workers int
	cache   int
}

// benchBatch is how many documents a worker takes at once.
const benchBatch = 32

// round measures fresh encoders cold and warm, and keeps the figures if the cold pass is the best
// so far.
func (b *tokenizeBench) round(best *tokenizeFigures) error {
	encoders := make([]*tokenize.Encoder, b.workers)
	for i := range encoders {
		encoders[i] = b.t.NewEncoder(tokenize.EncoderOptions{CacheBytes: b.cache})
		encoders[i].Warm() // part of loading, which is not measured
	}
	buffers := make([][]uint32, b.workers)
	for i := range buffers {
		buffers[i] = make([]uint32, 0, 1<<16)
	}
	runtime.GC()
	cold := b.pass(encoders, buffers)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	warm := b.pass(encoders, buffers)
	runtime.ReadMemStats(&after)
	if cold.tokens != warm.tokens {
		return fmt.Errorf("bench tokenize: %d tokens cold, %d warm: the encoder is broken", cold.tokens, warm.tokens)
	}
	mb := float64(b.bytes) / 1e6
	if rate := mb / cold.cpu; rate > best.MBPerCPUSecond {
		best.MBPerCPUSecond, best.MBPerSecond, best.TokensPerSec = rate, mb/cold.wall, float64(cold.tokens)/cold.wall
		best.Tokens = cold.tokens
	}
	if rate := mb / warm.cpu; rate > best.WarmMBPerCPU {
		best.WarmMBPerCPU, best.WarmMBPerSec, best.WarmTokensPerS = rate, mb/warm.wall, float64(warm.tokens)/warm.wall
	}
	// A pass starts workers and a clock. Their few allocations are not the encoder's.
	best.AllocsPerDoc = float64(after.Mallocs-before.Mallocs) / float64(len(b.docs))
	return nil
}

type passCost struct {
	cpu, wall float64 // seconds
	tokens    int64
}

func (b *tokenizeBench) pass(encoders []*tokenize.Encoder, buffers [][]uint32) passCost {
	var next, tokens atomic.Int64
	work := func(enc *tokenize.Encoder, kept *[]uint32) {
		buffer, n := *kept, int64(0)
		for {
			start := int(next.Add(benchBatch)) - benchBatch
			if start >= len(b.docs) {
				break
			}
			for _, d := range b.docs[start:min(start+benchBatch, len(b.docs))] {
				buffer = enc.AppendTokens(buffer[:0], d)
				n += int64(len(buffer))
			}
		}
		*kept = buffer
		tokens.Add(n)
	}
	cpu, start := cputime.Process(), time.Now()
	if len(encoders) == 1 {
		work(encoders[0], &buffers[0])
	} else {
		var wg sync.WaitGroup
		for i := range encoders {
			wg.Go(func() { work(encoders[i], &buffers[i]) })
		}
		wg.Wait()
	}
	wall := time.Since(start).Seconds()
	spent := (cputime.Process() - cpu).Seconds()
	return passCost{cpu: max(spent, 1e-6), wall: max(wall, 1e-9), tokens: tokens.Load()}
}
