package bench

import (
	"bytes"
	"context"
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

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/tokenize"
)

// TokenizeFigures are the figures of the best round. In a cold pass, fresh encoders encode the
// whole text; in the warm pass the same encoders do it again. CPU time is the kernel's, user and
// system, of the whole process during the pass.
type TokenizeFigures struct {
	MBPerCPUSecond float64 `json:"mb_per_cpu_s"`
	MBPerSecond    float64 `json:"mb_per_s"`
	TokensPerSec   float64 `json:"tokens_per_s"`
	PeakRSSBytes   int64   `json:"peak_rss_bytes"` // the whole process, text included
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
	CacheBytes     int64   `json:"cache_bytes"` // each worker's
	ResidentBytes  int64   `json:"resident_bytes"`
	EncoderBytes   int64   `json:"encoder_bytes"`
	Tokenizer      string  `json:"tokenizer"`
}

// TokenizeOptions are those of tokenizing to measure, all of them needed but Memory.
type TokenizeOptions struct {
	Workers, Rounds int
	Lines           bool  // whether documents are lines, rather than runs of whole lines of runBytes
	CacheBytes      int64 // each encoder's
	Memory          int64 // limits text, tokenizer and encoders; 0 for half of what the system allows
}

// runBytes is the smallest document, if documents are runs of lines.
const runBytes = 2048

// Tokenize measures t on the text of files.
func Tokenize(ctx context.Context, t *tokenize.Tokenizer, paths []string, o TokenizeOptions) (*TokenizeFigures, error) {
	least := runBytes
	if o.Lines {
		least = 1
	}
	b := &tokenizeBench{t: t, workers: o.Workers, cache: int(o.CacheBytes)}
	if err := b.readDocuments(paths, least, o.textBytes(t)); err != nil {
		return nil, err
	}
	figures := &TokenizeFigures{
		Documents: len(b.docs), TextBytes: b.bytes, Workers: o.Workers, Rounds: o.Rounds, CacheBytes: o.CacheBytes,
		ResidentBytes: t.Details().ResidentBytes(),
		EncoderBytes:  t.Details().EncoderBytes(tokenize.EncoderOptions{CacheBytes: int(o.CacheBytes)}),
	}
	for range o.Rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := b.round(figures); err != nil {
			return nil, err
		}
	}
	figures.PeakRSSBytes = ownPeak()
	return figures, nil
}

// textBytes returns how much text may be held: what Memory leaves after the tokenizer, its encoders and the process
// itself.
func (o *TokenizeOptions) textBytes(t *tokenize.Tokenizer) int64 {
	const processBytes = 21 << 20
	limit := o.Memory
	if limit == 0 {
		if limit = resident.Limit() / 2; limit == 0 {
			limit = math.MaxInt64 / 2 // the system does not say
		}
	}
	encoder := t.Details().EncoderBytes(tokenize.EncoderOptions{CacheBytes: int(o.CacheBytes)}) + 4<<16
	return limit - processBytes - t.Details().ResidentBytes() - int64(o.Workers)*encoder
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
			return fault.Kindf(fault.Usage, "bench tokenize: %v", err)
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
func (b *tokenizeBench) round(best *TokenizeFigures) error {
	encoders, buffers := make([]*tokenize.Encoder, b.workers), make([][]uint32, b.workers)
	for i := range encoders {
		encoders[i] = b.t.NewEncoder(tokenize.EncoderOptions{CacheBytes: b.cache})
		encoders[i].Warm() // part of loading, which is not measured
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
