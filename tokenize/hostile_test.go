package tokenize

import (
	"os"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/cputime"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// BenchmarkHostile encodes a megabyte of what engines like least with a fresh encoder, for every
// tokenizer of the shared data and for the general pipeline in place of its engine. It tells MB of
// text per CPU-second, the best of the rounds, and how many times longer than the prose corpus a
// byte takes, which is to stay below 5.
func BenchmarkHostile(b *testing.B) {
	prose, err := os.ReadFile(refdata.Path(b, "corpora/prose/peps.txt"))
	if err != nil {
		b.Fatal(err)
	}
	const size = 1 << 20
	prose = prose[:4*size]
	hostile := enginetest.HostileTexts(size)
	run := func(name string, load func(testing.TB) *Tokenizer) {
		b.Run(name, func(b *testing.B) {
			tok := load(b)
			normal := perByte(tok, prose, size)
			for range 4 {
				normal = min(normal, perByte(tok, prose, size))
			}
			for _, h := range hostile {
				b.Run(h.Name, func(b *testing.B) {
					best := perByte(tok, h.Text, size)
					for b.Loop() {
						best = min(best, perByte(tok, h.Text, size))
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(1e3/best, "cold-MB/cpu-s")
					b.ReportMetric(best/normal, "x-prose")
				})
			}
		})
	}
	for _, name := range append(goldenNames(b), "gpt2.tiktoken", "cl100k_base.tiktoken") {
		run(name, func(b testing.TB) *Tokenizer {
			tok, err := Load(refdata.Path(b, "tokenizers/"+name))
			if err != nil {
				b.Fatal(err)
			}
			return tok
		})
		if !strings.Contains(name, ".") {
			run(name+"-general", func(b testing.TB) *Tokenizer {
				return loadGeneral(b,
					refdata.Path(b, "tokenizers/"+name+"/tokenizer.json"))
			})
		}
	}
}

// perByte returns the nanoseconds of CPU time a byte that a fresh encoder takes for documents of
// the given size.
func perByte(tok *Tokenizer, text []byte, size int) float64 {
	enc := tok.NewEncoder(EncoderOptions{})
	ids := make([]uint32, 5*size) // written to: page faults of the output are not the engine's
	start := cputime.Process()
	for rest := text; len(rest) > 0; {
		n := min(size, len(rest))
		ids = enc.AppendTokens(ids[:0], rest[:n])
		rest = rest[n:]
	}
	return float64((cputime.Process() - start).Nanoseconds()) / float64(len(text))
}
