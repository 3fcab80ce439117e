package bytebpe

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/cputime"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
)

func cpuSeconds() float64 { return cputime.Process().Seconds() }

func benchModel(b *testing.B, name string) *Model {
	switch name {
	case "cl100k":
		return loadRanks(b, "cl100k_base.tiktoken", CL100K)
	case "o200k":
		return loadRanks(b, "o200k_base.tiktoken", O200K)
	}
	return suite.Load(b, name)
}

// BenchmarkCorpus measures MB of text per CPU-second: cold with a fresh encoder for each pass, warm
// with one that has seen the corpus.
func BenchmarkCorpus(b *testing.B) {
	for _, name := range []string{"gpt2", "cl100k-hf", "cl100k", "o200k"} {
		for _, c := range corpora {
			b.Run(name+"/"+c, func(b *testing.B) {
				m := benchModel(b, name)
				text := readCorpus(b, c)
				docs := enginetest.Documents(text)
				b.SetBytes(int64(len(text)))
				ids := make([]uint32, 0, 64<<10)
				cold, warm := math.Inf(1), math.Inf(1)
				for b.Loop() {
					e := m.NewEncoder(0)
					for pass := range 2 {
						t := cpuSeconds()
						for _, d := range docs {
							ids = e.Append(ids[:0], d, true, true)
						}
						s := cpuSeconds() - t
						if pass == 0 {
							cold = min(cold, s)
						} else {
							warm = min(warm, s)
						}
					}
				}
				b.ReportMetric(float64(len(text))/1e6/cold, "cold-MB/s")
				b.ReportMetric(float64(len(text))/1e6/warm, "warm-MB/s")
			})
		}
	}
}

// BenchmarkLevels measures each set of kernels the machine has, cold, with the GPT-2 vocabulary.
func BenchmarkLevels(b *testing.B) {
	m := benchModel(b, "gpt2")
	for _, level := range kernelLevels() {
		for _, c := range corpora {
			b.Run(level+"/"+c, func(b *testing.B) {
				defer useKernels(level)()
				text := readCorpus(b, c)
				docs := enginetest.Documents(text)
				ids := make([]uint32, 0, 64<<10)
				best := math.Inf(1)
				for b.Loop() {
					e := m.NewEncoder(0)
					t := cpuSeconds()
					for _, d := range docs {
						ids = e.Append(ids[:0], d, true, true)
					}
					best = min(best, cpuSeconds()-t)
				}
				b.ReportMetric(float64(len(text))/1e6/best, "cold-MB/s")
			})
		}
	}
}

// hostile inputs: none may cost much more a byte than text does.
func hostile() map[string][]byte {
	const n = 1 << 20
	rep := func(s string) []byte { return bytes.Repeat([]byte(s), n/len(s)) }
	r := rand.New(rand.NewPCG(10, 10))
	letters := make([]byte, n)
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	noise := make([]byte, n)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	words := slices.Clone(letters)
	for i := 9; i < n; i += 10 {
		words[i] = ' '
	}
	caps := slices.Clone(letters)
	for i := range caps {
		if r.IntN(2) == 0 {
			caps[i] -= 32
		}
	}
	return map[string][]byte{
		"one letter": rep("a"), "spaces": rep(" "), "digits": rep("7"), "combining marks": rep("\u0301"),
		"emoji joiners": rep("👩\u200d"), "pairs": rep("ab"),
		"quotes": rep("'"), "contractions": rep("'s"), "newlines": rep("\n"), "newline space": rep("\n "),
		"zeros": rep("\x00"), "zero letter": rep("a\x00"), "bad bytes": rep("\xff"),
		"equal signs": rep("="), "letters": letters, "noise": noise, "new words": words, "case": rep("aB"),
		"cases": caps, "caseless": rep("a中A"), "cjk": rep("中文"), "slashes": rep("!\n/"),
	}
}

func BenchmarkHostile(b *testing.B) {
	inputs := hostile()
	for _, name := range []string{"gpt2", "cl100k", "o200k"} {
		for _, input := range slices.Sorted(maps.Keys(inputs)) {
			b.Run(name+"/"+input, func(b *testing.B) {
				m := benchModel(b, name)
				text := inputs[input]
				b.SetBytes(int64(len(text)))
				e := m.NewEncoder(0)
				ids := e.Append(nil, text, true, true)
				best := math.Inf(1)
				for b.Loop() {
					t := cpuSeconds()
					ids = e.Append(ids[:0], text, true, true)
					best = min(best, cpuSeconds()-t)
				}
				b.ReportMetric(float64(len(text))/1e6/best, "cpu-MB/s")
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, name := range []string{"r50k_base", "cl100k_base", "o200k_base"} {
		b.Run(name, func(b *testing.B) {
			c := readRanks(b, name+".tiktoken", GPT2)
			b.ReportAllocs()
			best := math.Inf(1)
			for b.Loop() {
				t := cpuSeconds()
				m, err := newListed(c)
				if err != nil {
					b.Fatal(err)
				}
				best = min(best, cpuSeconds()-t)
				b.ReportMetric(float64(m.ResidentBytes())/1e6, "resident-MB")
			}
			b.ReportMetric(best*1e3, "cpu-ms")
		})
	}
	b.Run("NewEncoder", func(b *testing.B) {
		m := benchModel(b, "cl100k")
		m.NewEncoder(0)
		for b.Loop() {
			m.NewEncoder(0)
		}
	})
	b.Run("seeds", func(b *testing.B) {
		m := benchModel(b, "gpt2")
		for b.Loop() {
			m.findSeeds()
		}
	})
}
